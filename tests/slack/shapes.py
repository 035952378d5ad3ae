"""What Slack keeps, as it looks in JSON."""

from __future__ import annotations

import re
from typing import Any

from tests.slack.workspace import Channel, File, Installation, Json, Message, Slack, Team, User, View

MENTION_OR_LINK = re.compile(r"<([@#!]?)([^|>]+)(?:\|([^>]*))?>")
PRETTY_TYPES = {
    "pdf": "PDF",
    "docx": "Word Document",
    "xlsx": "Excel Spreadsheet",
    "text": "Plain Text",
    "md": "Markdown",
}


def user_json(user: User) -> Json:
    shape: Json = {
        "id": user.id,
        "team_id": user.team.id,
        "name": user.name,
        "deleted": user.deleted,
        "real_name": user.name.capitalize(),
        "tz": "Europe/Amsterdam",
        "tz_label": "Central European Time",
        "tz_offset": 3600,
        "profile": _profile(user),
        "is_bot": user.is_bot,
        "is_app_user": False,
        "is_email_confirmed": not user.is_bot,
        "updated": user.updated,
        "locale": "en-US",
    }
    if user.deleted:
        return shape
    return shape | {
        "is_admin": user.is_admin or user.is_owner,
        "is_owner": user.is_owner,
        "is_primary_owner": False,
        "is_restricted": user.is_restricted or user.is_ultra_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
    }


def user_json_for(user: User, team: Team) -> Json:
    """As a team sees it: of people from elsewhere it sees less."""
    shape = user_json(user)
    if user.team is team:
        return shape
    profile = {name: value for name, value in shape["profile"].items() if name != "email"}
    return shape | {"profile": profile, "is_stranger": False}


def _profile(user: User) -> Json:
    name = user.name.capitalize()
    shape: Json = {
        "real_name": name,
        "real_name_normalized": name,
        "display_name": user.name,
        "display_name_normalized": user.name,
        "title": user.title,
        "team": user.team.id,
        "avatar_hash": "g0",
        "image_72": f"https://secure.gravatar.com/avatar/{user.id}.jpg",
    }
    return shape if user.is_bot else shape | {"email": f"{user.name}@{user.team.domain}.example"}


def team_json(team: Team) -> Json:
    return {
        "id": team.id,
        "name": team.name,
        "url": team.url,
        "domain": team.domain,
        "email_domain": "",
        "icon": {"image_default": True},
        "is_verified": False,
    }


def channel_json(channel: Channel, viewer: Installation) -> Json:
    if channel.kind == "im":
        return _direct_json(channel, viewer)
    connected = [team.id for team in channel.teams if team is not viewer.team]
    return {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": channel.kind == "public",
        "is_group": channel.kind == "private",
        "is_im": False,
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_general": channel.is_general,
        "is_shared": channel.is_ext_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": False,
        "is_pending_ext_shared": False,
        "is_member": viewer.bot in channel.members,
        "created": channel.created,
        "updated": channel.created * 1000,
        "creator": channel.creator.id,
        "context_team_id": viewer.team.id,
        "conversation_host_id": channel.team.id,
        "shared_team_ids": [team.id for team in channel.teams],
        "connected_team_ids": connected if channel.is_ext_shared else [],
        "internal_team_ids": [],
        "pending_shared": [],
        "pending_connected_team_ids": [],
        "parent_conversation": None,
        "unlinked": 0,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": channel.purpose, "creator": "", "last_set": 0},
        "previous_names": channel.previous_names,
    }


def _direct_json(channel: Channel, viewer: Installation) -> Json:
    other = next((user for user in channel.members if user is not viewer.bot), viewer.bot)
    return {
        "id": channel.id,
        "created": channel.created,
        "is_im": True,
        "is_archived": False,
        "is_org_shared": False,
        "context_team_id": viewer.team.id,
        "user": other.id,
        "is_user_deleted": other.deleted,
        "priority": 0,
    }


def message_json(message: Message, slack: Slack, team: Team | None = None) -> Json:
    """A message as the API returns it; `team` is the one that reads it."""
    if message.subtype == "tombstone":
        return _tombstone(message) | _thread(message)
    shape = {"type": "message", "ts": message.ts, "text": message.text} | _author(message) | message.extra
    if message.subtype:
        shape["subtype"] = message.subtype
    return shape | _content(message, slack, team) | _thread(message)


def _tombstone(message: Message) -> Json:
    return {
        "type": "message",
        "subtype": "tombstone",
        "text": "This message was deleted.",
        "user": "USLACKBOT",
        "hidden": True,
        "ts": message.ts,
    }


def _author(message: Message) -> Json:
    if message.subtype == "bot_message":
        return {}
    shape: Json = {"user": message.user.id, "team": message.user.team.id}
    if message.channel.is_ext_shared:
        shape |= {"user_team": message.user.team.id, "source_team": message.user.team.id}
    if message.client_msg_id:
        shape["client_msg_id"] = message.client_msg_id
    if message.installation:
        shape |= {
            "bot_id": message.installation.bot_id,
            "app_id": message.installation.app.id,
            "bot_profile": bot_json(message.installation) | {"team_id": message.installation.team.id},
        }
    return shape


def bot_json(installation: Installation) -> Json:
    return {
        "id": installation.bot_id,
        "app_id": installation.app.id,
        "user_id": installation.bot.id,
        "name": installation.app.name,
        "deleted": False,
        "updated": installation.bot.updated,
        "icons": {size: f"https://a.slack-edge.com/{size}.png" for size in ("image_36", "image_48", "image_72")},
    }


def _content(message: Message, slack: Slack, team: Team | None) -> Json:
    optional: Json = {
        "blocks": message.blocks,
        "attachments": message.attachments,
        "edited": message.edited,
        "metadata": message.metadata,
        "files": [file_in_message(file, slack, team) for file in message.files],
        "reactions": [
            {"name": name, "users": list(users), "count": len(users)} for name, users in message.reactions.items()
        ],
    }
    shape = {name: value for name, value in optional.items() if value}
    if message.files and not message.installation:
        shape |= {"upload": False, "display_as_bot": False}
    if message.stream:
        shape["streaming_state"] = "in_progress" if message.stream.state == "in_progress" else "completed"
    return shape


def _thread(message: Message) -> Json:
    if message.is_reply:
        root = message.channel.messages.get(message.thread_ts)
        return {"thread_ts": message.thread_ts} | ({"parent_user_id": root.user.id} if root else {})
    replies = message.channel.replies(message.ts)
    if not replies:
        return {"thread_ts": message.thread_ts} if message.thread_ts else {}
    users = list(dict.fromkeys(reply.user.id for reply in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users_count": len(users),
        "reply_users": users[:5],
        "latest_reply": replies[-1].ts,
        "is_locked": False,
        "subscribed": False,
    }


def file_in_message(file: File, slack: Slack, team: Team | None) -> Json:
    if file.deleted:
        return {"id": file.id, "mode": "tombstone"}
    if file.must_be_looked_up and team is not file.owner.team:
        return {"id": file.id, "created": file.created, "file_access": "check_file_info"}
    return file_json(file, slack)


def file_json(file: File, slack: Slack) -> Json:
    team = file.owner.team
    private = f"{slack.url}/files-pri/{team.id}-{file.id}"
    kinds = {ident: slack.channels[ident].kind for ident in file.channels}
    shape: Json = {
        "id": file.id,
        "created": file.created,
        "timestamp": file.created,
        "name": file.name,
        "title": file.title or file.name,
        "mimetype": file.mimetype,
        "filetype": file.filetype,
        "pretty_type": PRETTY_TYPES.get(file.filetype, file.filetype.upper()),
        "user": file.owner.id,
        "user_team": team.id,
        "editable": file.mode in ("snippet", "post"),
        "size": len(file.content),
        "mode": file.mode,
        "is_external": file.mode == "external",
        "external_type": "gdrive" if file.mode == "external" else "",
        "is_public": "public" in kinds.values(),
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": file.external_url or f"{private}/{file.name}",
        "permalink": f"{team.url}files/{file.owner.id}/{file.id}/{file.name}",
        "permalink_public": f"https://slack-files.com/{team.id}-{file.id}-0",
        "has_rich_preview": False,
        "file_access": "visible",
        "channels": [ident for ident, kind in kinds.items() if kind == "public"],
        "groups": [ident for ident, kind in kinds.items() if kind == "private"],
        "ims": [ident for ident, kind in kinds.items() if kind in ("im", "mpim")],
    }
    if file.mode != "external":
        shape["url_private_download"] = f"{private}/download/{file.name}"
    return shape | _preview(file)


def _preview(file: File) -> Json:
    if file.mode != "snippet":
        return {}
    lines = file.content.decode(errors="replace").splitlines()
    return {
        "preview": "\n".join(lines[:5]),
        "lines": len(lines),
        "lines_more": max(0, len(lines) - 5),
        "preview_is_truncated": len(lines) > 5,
    }


def view_json(view: View) -> Json:
    content = view.content
    return {
        "id": view.id,
        "team_id": view.user.team.id,
        "app_id": view.installation.app.id,
        "app_installed_team_id": view.installation.team.id,
        "bot_id": view.installation.bot_id,
        "type": content["type"],
        "title": content.get("title"),
        "submit": content.get("submit"),
        "close": content.get("close"),
        "blocks": content["blocks"],
        "private_metadata": content.get("private_metadata", ""),
        "callback_id": content.get("callback_id", ""),
        "external_id": content.get("external_id", ""),
        "clear_on_close": content.get("clear_on_close", False),
        "notify_on_close": content.get("notify_on_close", False),
        "state": {"values": {}},
        "hash": view.hash,
        "root_view_id": view.root_id or view.id,
        "previous_view_id": view.previous_id or None,
    }


def rich_text(text: str) -> list[Json]:
    """The block that Slack makes of what a person types."""
    elements: list[Json] = []
    end = 0
    for found in MENTION_OR_LINK.finditer(text):
        elements += _plain(text[end : found.start()])
        elements.append(_token(*found.groups()))
        end = found.end()
    elements += _plain(text[end:])
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": "rich", "elements": [section]}]


def _plain(text: str) -> list[Json]:
    return [{"type": "text", "text": unescaped(text)}] if text else []


def _token(sign: str, what: str, label: str | None) -> Json:
    match sign:
        case "@":
            return {"type": "user", "user_id": what}
        case "#":
            return {"type": "channel", "channel_id": what}
        case "!":
            return {"type": "broadcast", "range": what}
    link: dict[str, Any] = {"type": "link", "url": what}
    return link | {"text": label} if label else link


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
