"""The only reader of the environment. Every setting is a variable of the same name in capitals, or a line of `.env`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from agent.limits import TurnLimits
from ingest.limits import MEGABYTE, FileLimits

_TURN = TurnLimits()
_FILE = FileLimits()


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", extra="ignore", env_ignore_empty=True, frozen=True)

    # where
    data_dir: Path = Field(Path("data"), description="everything that is kept lies here")
    host: str = Field("127.0.0.1", description="address of the page")
    port: int = Field(8420, ge=0, le=65535, description="port of the page")
    web_token: SecretStr | None = Field(
        None, description="what the page asks for; needed on an address beyond loopback"
    )
    admins: str = Field("", description="users who may manage every channel, with commas")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="how much is logged")

    # Slack
    slack_bot_token: SecretStr | None = Field(None, description="turns on Slack: the app's bot token, `xoxb-…`")
    slack_app_token: SecretStr | None = Field(None, description="its app-level token for Socket Mode, `xapp-…`")
    slack_api_url: str | None = Field(None, description="another server that speaks Slack's API, for tests")

    # models
    openai_api_key: SecretStr | None = Field(None, description="turns on answers written by a model")
    openai_base_url: str | None = Field(None, description="any OpenAI-compatible endpoint: Ollama, vLLM, DeepSeek …")
    openai_model: str = Field("gpt-4.1-mini", description="the model, or several with commas: the next one stands in")
    embedding_model: str | None = Field(None, description="an endpoint's embeddings instead of the bundled model's")
    embedding_base_url: str | None = Field(None, description="that endpoint, where it isn't `OPENAI_BASE_URL`")
    embedding_api_key: SecretStr | None = Field(None, description="its key, where it isn't `OPENAI_API_KEY`")
    cohere_api_key: SecretStr | None = Field(None, description="turns on reranking")
    cohere_base_url: str | None = Field(None, description="any server with Cohere's rerank API: vLLM, Jina …")
    cohere_model: str = Field("rerank-v3.5", description="the rerank model")

    # where passages are kept
    weaviate_url: str | None = Field(None, description="keeps the passages on this server: `http://host:8080`")
    weaviate_grpc_port: int = Field(50051, ge=1, le=65535, description="its port for gRPC")
    weaviate_api_key: SecretStr | None = Field(None, description="its key, where it asks for one")

    # search
    fusion: Literal["relative", "rrf"] = Field("relative", description="relative scores, or reciprocal rank (k = 60)")
    dense_weight: float | None = Field(
        None, ge=0, le=1, description="of the vectors in the fusion; unset: the model's own"
    )
    not_found_threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="confidence below which the bot says that it found nothing; unset: the model's own",
    )

    # a turn
    turn_seconds: float = Field(_TURN.seconds, gt=0, description="the longest turn")
    turn_model_calls: int = Field(_TURN.model_calls, gt=0, description="calls of a model in one turn")
    turn_searches: int = Field(_TURN.searches, gt=0, description="searches of the knowledge in one turn")
    turn_tokens: int = Field(_TURN.tokens, gt=0, description="tokens read and written in one turn")
    model_silent_seconds: float = Field(_TURN.silent_seconds, gt=0, description="without a word from a model")
    rerank_seconds: float = Field(_TURN.rerank_seconds, gt=0, description="the longest rerank")
    clarification_hours: float = Field(24, gt=0, description="how long a clarification waits")

    # a person
    questions_per_minute: int = Field(10, gt=0, description="of one person")
    question_characters: int = Field(4000, gt=0, description="the longest question")

    # a file
    file_megabytes: float = Field(_FILE.size / MEGABYTE, gt=0, description="the largest file")
    file_seconds: float = Field(_FILE.seconds, gt=0, description="the longest conversion")
    file_memory_megabytes: float = Field(_FILE.memory / MEGABYTE, gt=0, description="memory of a conversion")
    file_unpacked_megabytes: float = Field(
        _FILE.unpacked / MEGABYTE, gt=0, description="an archive's or Office file's contents"
    )
    file_entries: int = Field(_FILE.entries, gt=0, description="entries of an archive or Office file")
    file_passages: int = Field(_FILE.passages, gt=0, description="passages of one file")

    # running
    turns_at_once: int = Field(16, gt=0, description="turns that run side by side")
    files_at_once: int = Field(2, gt=0, description="files that are read side by side")
    retention_days: int = Field(90, gt=0, description="how long finished journal rows are kept")

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @field_validator("weaviate_url")
    @classmethod
    def _host_alone(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            at = urlsplit(value)
            is_whole = at.scheme in ("http", "https") and bool(at.hostname) and at.port != 0
        except ValueError:
            is_whole = False
        if not is_whole or at.path.strip("/") or at.query or at.fragment or at.username is not None:
            raise ValueError("it must be http:// or https:// with a host and a port, and nothing after them")
        return value.rstrip("/")

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they are tried; none where no endpoint is configured."""
        if self.openai_api_key is None and self.openai_base_url is None:
            return ()
        return tuple(name.strip() for name in self.openai_model.split(",") if name.strip())

    @property
    def turn_limits(self) -> TurnLimits:
        return TurnLimits(
            seconds=self.turn_seconds,
            model_calls=self.turn_model_calls,
            searches=self.turn_searches,
            tokens=self.turn_tokens,
            silent_seconds=self.model_silent_seconds,
            rerank_seconds=self.rerank_seconds,
        )

    @property
    def file_limits(self) -> FileLimits:
        return FileLimits(
            size=int(self.file_megabytes * MEGABYTE),
            seconds=self.file_seconds,
            memory=int(self.file_memory_megabytes * MEGABYTE),
            unpacked=int(self.file_unpacked_megabytes * MEGABYTE),
            entries=self.file_entries,
            passages=self.file_passages,
        )
