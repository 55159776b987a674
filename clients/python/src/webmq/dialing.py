"""The handshake, and what may answer it: [P-1.4], [P-1.7]."""

from __future__ import annotations

from websockets.asyncio.client import connect

from .errors import WebMQError, code_of, error_of
from .wire import parse_json

FINAL_REFUSALS = frozenset(
    (
        "E_HANDSHAKE_INVALID",
        "E_SUBPROTOCOL_UNSUPPORTED",
        "E_ORIGIN_FORBIDDEN",
        "E_INSECURE",
        "E_PATH_NOT_FOUND",
        "E_HEADERS_TOO_LARGE",
    )
)
"""Codes with which a server refuses a handshake for good. They are not retryable."""


class Connect(connect):
    """A client that is sent elsewhere is not at a WebMQ server, and does not give its token there."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


def refusal_of(body: bytes | bytearray | None) -> WebMQError | None:
    """Why no further attempt can help. `None` unless WebMQ itself says so: a status may be of a proxy."""
    try:
        said = parse_json(bytes(body or b""))
    except ValueError:
        return None
    code = code_of(said, "")
    return error_of(code, said) if code in FINAL_REFUSALS else None
