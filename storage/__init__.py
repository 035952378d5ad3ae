"""Storage: the application's tables, the knowledge store and the checkpoints."""
