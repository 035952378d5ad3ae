"""Models of an OpenAI-compatible endpoint: a chain of names, each standing in for the one before it.

Whatever a model does wrong, a caller gets an answer or None, never an exception of a client.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

import openai
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr, ValidationError

from agent.budget import Account, Budget, BudgetSpent, estimated_tokens
from agent.limits import TurnLimits

_log = logging.getLogger(__name__)

_OPENAI = "https://api.openai.com/v1"
_DECISION_TOKENS = 800
_ANSWER_TOKENS = 1500
_RETRIES = 1

_FAILURES = (
    openai.OpenAIError,
    TimeoutError,
    OSError,
    # what the clients raise over replies that aren't what the protocol says
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    RecursionError,
)

Decision = TypeVar("Decision", bound=BaseModel)
Chat = Runnable[Any, Any]


class _Silent(Exception):
    """The model said nothing for too long, or broke off."""


class Sink(Protocol):
    """What takes a model's words as they come."""

    @property
    def begun(self) -> bool:
        """Whether anything was shown already: then no other model begins anew."""

    async def feed(self, words: str) -> None: ...

    def restart(self) -> None:
        """Forget what was fed: another model begins."""


class Models:
    """The configured chain. `calls` gives one turn's view of it."""

    def __init__(self, names: Sequence[str], base_url: str | None, api_key: str | None, limits: TurnLimits) -> None:
        self.names = tuple(names)
        self._limits = limits
        self._http = openai.DefaultAsyncHttpxClient(timeout=limits.silent_seconds)
        self._settings: dict[str, Any] = {
            "base_url": base_url or _OPENAI,
            "api_key": SecretStr(api_key or "none"),
            "http_async_client": self._http,
            "timeout": limits.silent_seconds,
        }
        self._clients: dict[str, ChatOpenAI] = {}
        self._forms: dict[str, int] = {}  # the first form of structured output that an endpoint took

    def calls(self, preferred: str, budget: Budget) -> ModelCalls:
        names = [preferred, *self.names] if preferred else list(self.names)
        return ModelCalls(self, tuple(dict.fromkeys(names)), budget, self._limits.silent_seconds)

    def client(self, name: str) -> ChatOpenAI:
        if name not in self._clients:
            self._clients[name] = ChatOpenAI(
                model=name,
                temperature=0,
                max_retries=_RETRIES,
                streaming=True,
                stream_usage=True,
                stream_chunk_timeout=None,  # silence is measured in words here, not in chunks
                use_responses_api=False,
                **self._settings,
            )
        return self._clients[name]

    def forms(self, name: str) -> range:
        return range(self._forms.get(name, 0), len(_FORMS))

    def took(self, name: str, form: int) -> None:
        self._forms[name] = form

    async def close(self) -> None:
        await self._http.aclose()


class ModelCalls:
    """One turn's calls. A model that failed isn't asked again in this turn."""

    def __init__(self, models: Models, names: tuple[str, ...], budget: Budget, silent_seconds: float) -> None:
        self._models = models
        self._names = list(names)
        self._budget = budget
        self._silent_seconds = silent_seconds

    async def decide(
        self, schema: type[Decision], messages: Sequence[BaseMessage], account: Account
    ) -> Decision | None:
        """A decision in this form, or None where no model came to one."""
        for name in tuple(self._names):
            try:
                return await self._decision(name, schema, messages, account)
            except BudgetSpent:
                return None
            except ValidationError:
                return None  # asked twice: the caller makes the safe choice
            except (_Silent, *_FAILURES) as error:
                self._failed(name, error, account)
        return None

    async def write(self, messages: Sequence[BaseMessage], sink: Sink, account: Account) -> str | None:
        """Have the first model that can write into `sink`: its name, or None where none did."""
        for name in tuple(self._names):
            try:
                words = self._words(self._models.client(name), messages, _ANSWER_TOKENS, account)
                async with aclosing(words) as chunks:
                    async for chunk in chunks:
                        await sink.feed(chunk.text)
            except BudgetSpent:
                return None
            except (_Silent, *_FAILURES) as error:
                self._failed(name, error, account, broke_off=sink.begun)
                if not sink.begun:
                    sink.restart()
                    continue
            return name
        return None

    def _failed(self, name: str, error: Exception, account: Account, broke_off: bool = False) -> None:
        _log.warning("the model %s failed: %r", name, error)
        self._names.remove(name)
        account.degraded.append(f"the model {name} {'broke off' if broke_off else 'could not be reached'}")

    async def _decision(
        self, name: str, schema: type[Decision], messages: Sequence[BaseMessage], account: Account
    ) -> Decision:
        for form in self._models.forms(name):
            asked = list(messages)
            try:
                reply = await self._reply(name, form, schema, asked, account)
                self._models.took(name, form)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                if form + 1 == len(_FORMS):
                    raise
                continue  # this endpoint doesn't know that form
            try:
                return _parsed(schema, reply)
            except ValidationError as error:
                asked += [reply, HumanMessage(_again(error))]
            return _parsed(schema, await self._reply(name, form, schema, asked, account))
        raise _Silent

    async def _reply(
        self, name: str, form: int, schema: type[BaseModel], messages: Sequence[BaseMessage], account: Account
    ) -> AIMessageChunk:
        model = _FORMS[form](self._models.client(name), schema)
        whole: AIMessageChunk | None = None
        async for chunk in self._words(model, messages, _DECISION_TOKENS, account):
            whole = chunk if whole is None else whole + chunk
        if whole is None:
            raise _Silent
        return whole

    async def _words(
        self, model: Chat, messages: Sequence[BaseMessage], most: int, account: Account
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """The chunks of one call, bounded in silence, in time and in tokens."""
        prompt = sum(estimated_tokens(message.text) for message in messages)
        account.open(prompt)
        most = min(most, account.budget.tokens_left - prompt)
        written, usage = 0, None
        heard = time.monotonic()
        try:
            async with aclosing(model.astream(list(messages), max_tokens=most)) as chunks:  # type: ignore[type-var]
                while written <= most:
                    patience = min(heard + self._silent_seconds - time.monotonic(), self._budget.seconds_left)
                    async with asyncio.timeout(patience):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    usage = chunk.usage_metadata or usage
                    if chunk.text or chunk.tool_call_chunks:
                        heard = time.monotonic()
                        written += estimated_tokens(chunk.text) if len(chunk.text) > 8 else 1
                        yield chunk
        finally:
            account.charge(*((usage["input_tokens"], usage["output_tokens"]) if usage else (prompt, written)))
        if not written:
            raise _Silent


def _json_schema(client: ChatOpenAI, schema: type[BaseModel]) -> Chat:
    form = {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True}
    # as a plain stream: where the client itself knows of the form, it wants more of a server than the form
    return client.bind(extra_body={"response_format": {"type": "json_schema", "json_schema": form}})


def _function(client: ChatOpenAI, schema: type[BaseModel]) -> Chat:
    return client.bind_tools([schema], tool_choice=schema.__name__)


def _text(client: ChatOpenAI, schema: type[BaseModel]) -> Chat:
    return client  # the prompt names the form anyway


_FORMS = (_json_schema, _function, _text)


def _parsed(schema: type[Decision], reply: AIMessageChunk) -> Decision:
    if reply.tool_calls:
        return schema.model_validate(reply.tool_calls[0]["args"])
    text = reply.text
    return schema.model_validate_json(text[max(0, text.find("{")) : text.rfind("}") + 1])


def _again(error: ValidationError) -> str:
    faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'JSON'}: {fault['msg']}" for fault in error.errors()[:3])
    return f"That was not in the form that I asked for ({faults}). Reply with the JSON object alone."
