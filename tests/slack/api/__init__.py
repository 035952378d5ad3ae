"""The methods of the Web API. Importing this package registers them."""

from tests.slack.api import apps, assistants, chat, conversations, files, reactions, streams, users, views

__all__ = ["apps", "assistants", "chat", "conversations", "files", "reactions", "streams", "users", "views"]
