"""What people do in Slack, and what they see there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.slack import channels, installing, interactions, posting, seeing, uploads
from tests.slack.api.views import checked, make_view, stack
from tests.slack.delivery import Deliveries, Delivery
from tests.slack.errors import SlackError
from tests.slack.events import Happening, announce
from tests.slack.posting import Draft
from tests.slack.rendering import Button, buttons, elements
from tests.slack.responding import respond
from tests.slack.seeing import Shown
from tests.slack.shapes import rich_text, user_json, view_json
from tests.slack.uploads import Upload
from tests.slack.wording import as_typed
from tests.slack.workspace import (
    App,
    Channel,
    File,
    Installation,
    Json,
    Kind,
    Message,
    ResponseUrl,
    Slack,
    Team,
    User,
    View,
)

T = TypeVar("T")
SECONDS = 10.0
MARGIN = 1.0  # beyond the time that an app has to acknowledge


class AppDidNotRespond(Exception):
    """Slack shows a warning sign beside what was clicked."""


class NotThere(AssertionError):
    """What somebody wanted to use isn't shown to them."""


class ViewRefused(Exception):
    """The app has sent the form back, with what is wrong with each block."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(str(errors))
        self.errors = errors


class Person:
    def __init__(self, slack: Slack, deliveries: Deliveries, user: User) -> None:
        self._slack = slack
        self._deliveries = deliveries
        self.user = user

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def name(self) -> str:
        return self.user.name

    @property
    def team(self) -> Team:
        return self.user.team

    @property
    def mention(self) -> str:
        return self.user.mention

    async def posts(
        self,
        channel: Channel,
        text: str = "",
        *,
        files: Sequence[Upload | File] = (),
        thread: Message | str = "",
        broadcast: bool = False,
    ) -> Message:
        self._must_be_in(channel)
        if channel.is_archived:
            raise SlackError("is_archived")
        uploaded = [file if isinstance(file, File) else uploads.upload(self._slack, self.user, file) for file in files]
        draft = Draft(as_typed(text), _ts(thread), files=uploaded, broadcast=broadcast)
        message = posting.post(self._slack, channel, self.user, draft)
        uploads.tell_of_shared(self._slack, message)
        return message

    async def edits(self, message: Message, text: str) -> None:
        self._must_own(message)
        draft = Draft(as_typed(text), blocks=rich_text(as_typed(text)), attachments=message.attachments)
        posting.rewrite(self._slack, message, self.user, draft)

    async def deletes(self, message: Message, *, with_files: bool = True) -> None:
        if not (self.user.is_admin or self.user.is_owner):
            self._must_own(message)
        posting.erase(self._slack, message)
        for file in message.files if with_files else []:
            uploads.delete(self._slack, file)

    async def deletes_file(self, file: File) -> None:
        uploads.delete(self._slack, file)

    async def reacts(self, message: Message, emoji: str) -> None:
        self._must_be_in(message.channel)
        posting.react(self._slack, message, self.user, emoji)

    async def unreacts(self, message: Message, emoji: str) -> None:
        posting.unreact(self._slack, message, self.user, emoji)

    async def stops(self, message: Message) -> None:
        """The answer that is being written: no more of it."""
        if message.stream is None or message.stream.state != "in_progress":
            raise NotThere("it isn't being written")
        message.stream.state = "stopped"
        self._slack.changes.notify()

    def direct(self, *others: Person | Installation) -> Channel:
        """Where this person and the others are alone."""
        with self._slack.lock:
            return self._slack.direct(self.user, *(_user(other) for other in others))

    def sees(self, message: Message) -> Shown:
        with self._slack.lock:
            return seeing.look(self._slack, message)

    def thread(self, of: Message) -> list[Shown]:
        """The root and its replies, and what is shown there to this person alone."""
        self._must_see(of.channel)
        with self._slack.lock:
            return seeing.thread(self._slack, of.channel, of.root_ts, self.user)

    def channel(self, channel: Channel) -> list[Shown]:
        """What stands in the channel itself."""
        self._must_see(channel)
        with self._slack.lock:
            return seeing.channel_itself(self._slack, channel, self.user)

    def status(self, of: Message) -> str:
        """What an app shows below the thread while it works."""
        with self._slack.lock:
            status = of.channel.statuses.get(of.root_ts)
            if status is None or time.monotonic() - status.at > self._slack.timing.status:
                return ""
            return status.text

    async def waits_in_thread(
        self, of: Message, find: Callable[[list[Shown]], T | None], seconds: float = SECONDS
    ) -> T:
        """What `find` makes of the thread, as soon as it is something."""
        return await self.waits_for(lambda: find(self.thread(of)), seconds)

    async def waits_in_channel(
        self, channel: Channel, find: Callable[[list[Shown]], T | None], seconds: float = SECONDS
    ) -> T:
        return await self.waits_for(lambda: find(self.channel(channel)), seconds)

    async def waits_for(self, find: Callable[[], T | None], seconds: float = SECONDS) -> T:
        return await self._slack.changes.until(find, seconds)

    async def gets_reply(self, to: Message, seconds: float = SECONDS) -> Shown:
        """The first message of an app in the thread that isn't being written any more."""

        def finished(thread: list[Shown]) -> Shown | None:
            return next((each for each in thread if each.by_app and each.ts > to.ts and not each.is_streaming), None)

        return await self.waits_in_thread(to, finished, seconds)

    async def clicks(self, shown: Shown, text: str, *, late: bool = False) -> Delivery:
        """A button, by its text or its action_id; `late`: before the screen shows that the message has changed."""
        message = shown.message
        self._must_see(message.channel)
        with self._slack.lock:
            now = shown if late else seeing.look(self._slack, message)
            button = _find(now.buttons, text)
            payload = interactions.block_action(self._slack, self.user, message, interactions.clicked(button))
        assert message.installation is not None
        return await self._sent(message.installation, "interactive", payload)

    async def chooses(self, shown: Shown, action_id: str, *options: str) -> Delivery:
        """In a menu, by the texts of the options."""
        message = shown.message
        self._must_see(message.channel)
        with self._slack.lock:
            action = _choice(message.blocks, action_id, list(options))
            payload = interactions.block_action(self._slack, self.user, message, action)
        assert message.installation is not None
        return await self._sent(message.installation, "interactive", payload)

    async def runs(self, command: str, channel: Channel, text: str = "") -> Delivery:
        """A slash command."""
        self._must_be_in(channel)
        with self._slack.lock:
            installation = self._offering(command, lambda app: app.commands)
            url = ResponseUrl(installation, self.user, channel, time.monotonic())
            payload = interactions.slash_command(self._slack, url, command, text)
        delivery = await self._sent(installation, "slash_commands", payload)
        answer = delivery.acked.answer if delivery.acked else None
        if answer and (answer.get("text") or answer.get("blocks")):
            respond(self._slack, url, answer)
        return delivery

    async def uses_shortcut(self, callback_id: str, message: Message | None = None) -> Delivery:
        with self._slack.lock:
            installation = self._offering(callback_id, lambda app: app.shortcuts)
            if message:
                payload = interactions.message_shortcut(self._slack, self.user, message, installation, callback_id)
            else:
                payload = interactions.global_shortcut(self._slack, self.user, installation, callback_id)
        return await self._sent(installation, "interactive", payload)

    async def opens_home(self, app: App, tab: str = "home") -> None:
        installation = app.in_team(self.team)
        home = self.home(app)
        event: Json = {
            "type": "app_home_opened",
            "user": self.id,
            "channel": self.direct(installation).id,
            "tab": tab,
            "event_ts": self._slack.clock.ts(),
        }
        if home and tab == "home":
            event["view"] = view_json(home)
        self._tell(event, app)

    def home(self, app: App) -> View | None:
        return self._slack.homes.get((app.id, self.id))

    def modal(self, app: App) -> View | None:
        """The topmost one."""
        with self._slack.lock:
            return next(reversed(self._slack.open_views(app, self.user)), None)

    async def clicks_in_view(self, view: View, text: str, values: dict[str, Any] | None = None) -> Delivery:
        with self._slack.lock:
            button = _find(buttons(view.content["blocks"]), text)
            state = _state(view, values or {})
            payload = interactions.view_action(self._slack, view, interactions.clicked(button), state)
        return await self._sent(view.installation, "interactive", payload)

    async def chooses_in_view(self, view: View, action_id: str, *options: str) -> Delivery:
        with self._slack.lock:
            action = _choice(view.content["blocks"], action_id, list(options))
            payload = interactions.view_action(self._slack, view, action, _state(view, {action_id: list(options)}))
        return await self._sent(view.installation, "interactive", payload)

    async def submits(self, view: View, values: dict[str, Any] | None = None) -> Delivery:
        """The form with these values by action_id. Raises ViewRefused."""
        if view.closed:
            raise NotThere("the view is closed")
        with self._slack.lock:
            payload = interactions.view_submission(self._slack, view, _state(view, values or {}))
        delivery = await self._sent(view.installation, "interactive", payload)
        self._follow(view, (delivery.acked.answer if delivery.acked else None) or {})
        return delivery

    async def closes(self, view: View) -> None:
        with self._slack.lock:
            view.closed = True
            payload = interactions.view_closed(self._slack, view)
        if view.content.get("notify_on_close"):
            await self._sent(view.installation, "interactive", payload)

    async def opens_assistant(self, app: App, looking_at: Channel | None = None) -> Message:
        """A new conversation in the assistant's pane; the message that it hangs on."""
        installation = app.in_team(self.team)
        draft = Draft("New Assistant Thread", subtype="assistant_app_thread")
        root = posting.post(self._slack, self.direct(installation), installation, draft)
        self._tell(self._assistant("started", root, looking_at), app)
        return root

    async def looks_elsewhere(self, app: App, root: Message, looking_at: Channel) -> None:
        self._tell(self._assistant("context_changed", root, looking_at), app)

    async def creates_channel(self, name: str, *, private: bool = False) -> Channel:
        return channels.create(self._slack, self.user, name, private=private)

    async def joins(self, channel: Channel) -> None:
        if channel.is_private:
            raise SlackError("method_not_supported_for_channel_type")
        if self._is_guest:
            raise SlackError("user_is_restricted")
        channels.join(self._slack, channel, self.user)

    async def leaves(self, channel: Channel) -> None:
        channels.leave(self._slack, channel, self.user)

    async def invites(self, channel: Channel, *others: Person | Installation) -> None:
        self._must_be_in(channel)
        for other in others:
            channels.join(self._slack, channel, _user(other), self.user)

    async def removes(self, channel: Channel, other: Person | Installation) -> None:
        channels.leave(self._slack, channel, _user(other), self.user)

    async def archives(self, channel: Channel) -> None:
        channels.archive(self._slack, channel, self.user)

    async def unarchives(self, channel: Channel) -> None:
        channels.unarchive(self._slack, channel, self.user)

    async def renames(self, channel: Channel, name: str) -> None:
        channels.rename(self._slack, channel, self.user, name)

    async def deletes_channel(self, channel: Channel) -> None:
        channels.delete(self._slack, channel)

    async def converts(self, channel: Channel, kind: Kind) -> None:
        """A public channel to a private one, or back."""
        channels.convert(self._slack, channel, self.user, kind)

    async def shares(self, channel: Channel, team: Team) -> None:
        """Slack Connect."""
        channels.share(self._slack, channel, team)

    async def unshares(self, channel: Channel, team: Team) -> None:
        channels.unshare(self._slack, channel, team)

    async def installs(self, app: App) -> Installation:
        with self._slack.lock:
            return self._slack.install(app, self.user)

    async def allows(self, app: App) -> str:
        """The code with which the app gets its token by OAuth."""
        return installing.authorize(self._slack, app, self.user)

    async def uninstalls(self, app: App) -> None:
        installing.uninstall(self._slack, app.in_team(self.team))

    async def revokes(self, app: App) -> None:
        """The app's token."""
        installing.revoke(self._slack, app.in_team(self.team))

    async def changes(self, **traits: Any) -> None:
        """What Slack knows of this person: is_admin, is_restricted, deleted, title, …"""
        with self._slack.lock:
            for name, value in traits.items():
                setattr(self.user, name, value)
            self.user.updated = int(time.time())
            self.tells_of_self("user_change")

    def tells_of_self(self, event: str) -> None:
        shape = {"type": event, "user": user_json(self.user), "cache_ts": int(time.time())}
        own = shape | {"event_ts": self._slack.clock.ts()}
        announce(self._slack, Happening(own, event, ("users:read",), teams=(self.team,)))
        self._slack.changes.notify()

    def _assistant(self, verb: str, root: Message, looking_at: Channel | None) -> Json:
        context: Json = {"channel_id": looking_at.id, "team_id": self.team.id} if looking_at else {}
        thread = {"user_id": self.id, "context": context, "channel_id": root.channel.id, "thread_ts": root.ts}
        event = {"type": f"assistant_thread_{verb}", "assistant_thread": thread}
        return event | {"event_ts": self._slack.clock.ts()}

    def _tell(self, event: Json, app: App) -> None:
        scopes = ("assistant:write",) if event["type"].startswith("assistant") else ()
        announce(self._slack, Happening(event, event["type"], scopes, teams=(self.team,), app=app))

    async def _sent(self, installation: Installation, kind: str, payload: Json) -> Delivery:
        delivery = self._deliveries.put(installation, kind, payload)

        def settled() -> Delivery | None:
            return delivery if delivery.is_settled else None

        await self._slack.changes.until(settled, self._slack.timing.ack + MARGIN)
        if not delivery.acked:
            raise AppDidNotRespond(delivery.attempts[-1].failure)
        return delivery

    def _follow(self, view: View, answer: Json) -> None:
        """What the app wants done with the form that was submitted."""
        with self._slack.lock:
            match answer.get("response_action"):
                case "errors":
                    view.errors = answer["errors"]
                    raise ViewRefused(answer["errors"])
                case "update":
                    make_view(self._slack, view.installation, self.user, checked(answer["view"], "modal"), view)
                case "push":
                    below = self._slack.open_views(view.installation.app, self.user)
                    content = checked(answer["view"], "modal")
                    stack(make_view(self._slack, view.installation, self.user, content), below)
                case "clear":
                    for each in self._slack.open_views(view.installation.app, self.user):
                        each.closed = True
                case _:
                    view.closed = True
        self._slack.changes.notify()

    def _offering(self, what: str, of: Callable[[App], Sequence[str]]) -> Installation:
        here = (found for found in self._slack.installations if found.team is self.team and not found.refusal)
        found = next((each for each in here if what in of(each.app) and each.may("commands")), None)
        if found is None:
            raise NotThere(f"no app here offers {what}")
        return found

    @property
    def _is_guest(self) -> bool:
        return self.user.is_restricted or self.user.is_ultra_restricted

    def _must_be_in(self, channel: Channel) -> None:
        if self.user not in channel.members:
            raise SlackError("not_in_channel")

    def _must_see(self, channel: Channel) -> None:
        is_open = channel.kind == "public" and self.team in channel.teams and not self._is_guest
        if self.user not in channel.members and not is_open:
            raise NotThere(f"{self.name} doesn't see {channel.name}")

    def _must_own(self, message: Message) -> None:
        if message.user is not self.user:
            raise SlackError("cant_update_message")


def _user(who: Person | Installation) -> User:
    return who.user if isinstance(who, Person) else who.bot


def _ts(thread: Message | str) -> str:
    return thread if isinstance(thread, str) else thread.root_ts


def _find(shown: Sequence[Button], text: str) -> Button:
    found = next((button for button in shown if text in (button.text, button.action_id)), None)
    if found is None:
        raise NotThere(f"no button {text!r} among {[button.text for button in shown]}")
    return found


def _choice(blocks: list[Json], action_id: str, options: list[str]) -> Json:
    for block, element in elements(blocks):
        if element.get("action_id") == action_id:
            return interactions.chosen(block, element, options)
    raise NotThere(f"no element {action_id!r}")


def _state(view: View, values: dict[str, Any]) -> Json:
    """The state of a view's inputs, with these values by action_id."""
    state: Json = {}
    for block, element in elements(view.content["blocks"]):
        name = element.get("action_id", "")
        if element["type"] == "button" or (block["type"] != "input" and name not in values):
            continue
        given = values.get(name, [])
        chosen = interactions.input_value(element, [given] if isinstance(given, str) else list(given))
        state.setdefault(block["block_id"], {})[name] = {"type": element["type"]} | chosen
    return state
