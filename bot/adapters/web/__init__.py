"""The web page and its HTTP interface: `Web` is the platform, `Desk` what it is given."""

from bot.adapters.web.desk import Desk, Operations, WebNotStarted, WebOptions
from bot.adapters.web.platform import Web

__all__ = ["Desk", "Operations", "Web", "WebNotStarted", "WebOptions"]
