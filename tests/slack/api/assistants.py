from __future__ import annotations

import time

from tests.slack.api.call import Request, method
from tests.slack.errors import SlackError
from tests.slack.workspace import Channel, Json, Status

MOST_LOADING_MESSAGES = 10
MOST_PROMPTS = 4


@method("assistant.threads.setStatus", "assistant:write", "chat:write")
def set_status(request: Request) -> Json:
    """Shown below the thread until the app posts there, or takes it away, or two minutes have passed."""
    channel, thread = _thread(request)
    loading = request.structure("loading_messages", "invalid_arguments", [])
    if len(loading) > MOST_LOADING_MESSAGES:
        raise SlackError("invalid_arguments")
    status = Status(request.text("status"), loading, time.monotonic(), request.caller)
    if status.text:
        channel.statuses[thread] = status
    else:
        channel.statuses.pop(thread, None)
    request.slack.statuses.append((channel, thread, status))
    return {}


@method("assistant.threads.setTitle", "assistant:write")
def set_title(request: Request) -> Json:
    channel, thread = _thread(request)
    channel.titles[thread] = request.required("title")
    return {}


@method("assistant.threads.setSuggestedPrompts", "assistant:write")
def set_suggested_prompts(request: Request) -> Json:
    channel, thread = _thread(request, optional=True)
    prompts = request.structure("prompts", "invalid_arguments", [])
    if len(prompts) > MOST_PROMPTS or not all({"title", "message"} <= prompt.keys() for prompt in prompts):
        raise SlackError("invalid_arguments")
    channel.prompts[thread] = prompts
    return {}


def _thread(request: Request, optional: bool = False) -> tuple[Channel, str]:
    channel = request.entered("channel_id")
    ts = request.text("thread_ts") if optional else request.required("thread_ts")
    if ts and ts not in channel.messages:
        raise SlackError("invalid_thread_ts")
    return channel, ts
