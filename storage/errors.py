"""What can go wrong in storage.

StorageError
├── StoreUnavailable     the knowledge store can't be reached; asking again later may work
├── EmbeddingUnavailable the embedding endpoint can't be reached or answers with errors
├── EmbeddingChanged     the vectors on disk are of another model; `reembed` repairs it
├── DataDirInUse         another process has the data directory
├── DatabaseDamaged      a database file can't be read
└── LeaseLost            this worker's lease was taken over: it may neither write nor post
"""

MOVE_AWAY = "Move the file away, with the -wal and -shm beside it"  # what a log of the damaged one would do to another


class StorageError(Exception):
    """Its text is fit for a log line and an operator, and says what to do."""


class StoreUnavailable(StorageError): ...


class EmbeddingUnavailable(StorageError): ...


class EmbeddingChanged(StorageError): ...


class DataDirInUse(StorageError): ...


class DatabaseDamaged(StorageError): ...


class LeaseLost(StorageError): ...
