"""How a reader says how far it is."""

from collections.abc import Callable

Report = Callable[[int, int], None]
"""Called with how many pages, slides or sheets are done, and how many there are."""
