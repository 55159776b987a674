"""Errors of the client. Codes are those of docs/errors.md."""

from __future__ import annotations

import re
from math import ceil
from typing import Any

DOCS_URL = "https://github.com/webmq/webmq/blob/main/docs/errors.md"
MAX_RETRY_AFTER_MS = 3_600_000
MAX_MESSAGE_CHARACTERS = 500
MIN_RETRY_S = 0.1
"""Nothing is asked again sooner, whatever the server says."""

_CODE = re.compile("E_[A-Z0-9_]{1,40}")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class WebMQError(Exception):
    """What the server, or this client, has refused.

    `code` is for programs, such as ``E_FORBIDDEN``. `retryable`: the same call may succeed later without any change.
    `retry_after_ms`: how long the same call is refused again, if that is known. `docs`: link to the cause and the fix,
    which a traceback shows, too.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        # Applications have codes of their own: those are in no table.
        self.add_note(f"All codes of WebMQ: {self.docs}")

    @property
    def docs(self) -> str:
        return f"{DOCS_URL}#{self.code.lower()}"


def error_of(code: str, body: Any) -> WebMQError:
    """The error that the JSON of an `error` says. Its text comes from another program: it is one line, and bounded."""
    members = body if isinstance(body, dict) else {}
    message = members.get("message")
    return WebMQError(
        code,
        _UNPRINTABLE.sub(" ", message[:MAX_MESSAGE_CHARACTERS]) if isinstance(message, str) else "no reason given",
        retryable=members.get("retryable") is True,
        retry_after_ms=count_of(members.get("retryAfterMs"), MAX_RETRY_AFTER_MS),
    )


def code_of(body: Any, otherwise: str) -> str:
    """The code that the JSON of a peer says [P-10.4]."""
    code = body.get("code") if isinstance(body, dict) else None
    return code if isinstance(code, str) and _CODE.fullmatch(code) is not None else otherwise


def count_of(value: Any, most: int, least: int = 0) -> int | None:
    """A number of a server, within these bounds. `None`: it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return ceil(max(least, min(value, most)))


def retry_s(error: WebMQError, otherwise_s: float) -> float:
    """When to ask again after an error."""
    after_ms = error.retry_after_ms
    return otherwise_s if after_ms is None else max(after_ms / 1_000, MIN_RETRY_S)
