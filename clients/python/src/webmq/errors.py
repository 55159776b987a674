"""Errors of the client. Codes are those of docs/errors.md."""

from __future__ import annotations

from typing import Any


class WebMQError(Exception):
    """What the server, or this client, has refused.

    `code` is for programs, such as ``E_FORBIDDEN``. `retryable`: the same call may succeed later without any change.
    `retry_after_ms`: how long the same call is refused again, if that is known.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms


def error_of(code: str, body: Any) -> WebMQError:
    """The error that the JSON of an `error` says. Its text comes from another program: it is bounded."""
    members = body if isinstance(body, dict) else {}
    message = members.get("message")
    after = members.get("retryAfterMs")
    return WebMQError(
        code,
        str(message)[:500] if isinstance(message, str) else "no reason given",
        retryable=members.get("retryable") is True,
        retry_after_ms=after if isinstance(after, int) else None,
    )
