"""Messages of the protocol `webmq.v1`: section 2. A message is a header of one line and, for some verbs, a body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import WebMQError

Payload = bytes | str
"""The body as it came: `str` of a text frame, `bytes` of a binary one."""

Options = Mapping[str, str | int | bool | None]

Kind = Literal["none", "json", "object", "maybe", "payload"]

_VERBS: Mapping[str, tuple[int, Kind]] = {
    # Number of fields that are required, and the body.
    "welcome": (0, "object"),
    "ok": (1, "maybe"),
    "error": (2, "object"),
    "message": (2, "payload"),
    "presence": (1, "object"),
    "task": (3, "payload"),
    "reply": (1, "payload"),
    "ended": (2, "object"),
    "gap": (2, "none"),
    "expiring": (1, "none"),
    "pong": (0, "none"),
    "bye": (1, "none"),
}
_NUMBERS = ("replayed", "within", "time")


@dataclass(frozen=True, slots=True)
class ServerMessage:
    verb: str
    fields: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    """Options by name; the value of one without is empty."""
    payload: Payload = ""
    body: Any = None
    """The JSON of verbs that have it."""

    def number(self, name: str) -> int:
        return int(self.options.get(name) or 0)


class Unreadable(Exception):
    """A message that is not of this protocol, or of a later version. `code` as in the vectors."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


def decode(data: str | bytes) -> ServerMessage:
    """Reads a message of a server.

    Raises:
        Unreadable: the client reports it and goes on [P-10.5].
    """
    end = data.find("\n") if isinstance(data, str) else data.find(b"\n")
    head = data if end < 0 else data[:end]
    rest: Payload | None = None if end < 0 else data[end + 1 :]
    try:
        header = head if isinstance(head, str) else head.decode()
    except UnicodeDecodeError as error:
        raise Unreadable("E_MESSAGE_INVALID", "the header is no UTF-8") from error
    verb, *parts = header.split(" ")
    form = _VERBS.get(verb)
    if form is None:
        raise Unreadable("E_VERB_UNKNOWN", verb[:40])
    count, kind = form
    if len(parts) < count or not all(parts):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: a field is missing")
    fields, options = parts[:count], {}
    if verb == "bye" and len(parts) > 1 and parts[1].isdecimal():
        fields.append(parts[1])
    for part in parts[len(fields) :]:
        name, _, value = part.partition("=")
        options[name] = value
    if verb in ("expiring", "bye") and not all(number.isdecimal() for number in fields):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: not a number")
    if any(name in options and not options[name].isdecimal() for name in _NUMBERS):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: an option is no number")
    if kind == "payload" and rest is None:
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: without a payload")
    message = ServerMessage(verb, tuple(fields), options, rest or ("" if isinstance(data, str) else b""))
    if kind in ("none", "payload") or (kind == "maybe" and rest is None):
        return message
    try:
        body = json.loads(rest or "")
    except ValueError as error:
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: the body is no JSON") from error
    _check_body(verb, kind, body)
    return ServerMessage(verb, message.fields, options, "", body)


def _check_body(verb: str, kind: Kind, body: Any) -> None:
    if kind == "object" and not isinstance(body, dict):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: the body is no object")
    needed = {"welcome": ("protocol", "auth", "session"), "error": ("message",)}.get(verb, ())
    if not all(isinstance(body.get(name), str) for name in needed):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: a member is missing")


def encode(verb: str, *fields: str, payload: Payload | None = None, options: Options | None = None) -> str | bytes:
    """Writes a message of a client. Options that are `None` or `False` are left out; `True` is one without a value."""
    parts = [verb, *fields]
    for name, value in (options or {}).items():
        if value is None or value is False:
            continue
        parts.append(name if value is True else f"{name}={value}")
    header = " ".join(parts)
    if payload is None:
        return header
    if isinstance(payload, bytes):
        return header.encode() + b"\n" + payload
    return f"{header}\n{payload}"


def payload_of(value: Any) -> Payload:
    """`bytes` stay bytes; everything else becomes JSON text.

    Raises:
        WebMQError: `E_PAYLOAD_INVALID`.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise WebMQError("E_PAYLOAD_INVALID", f"the payload is not JSON: {error}") from error


def value_of(payload: Payload) -> Any:
    """What a payload says: bytes of a binary frame, parsed JSON of a text frame, `None` for an empty one [P-7.6].

    Raises:
        ValueError: the text is no JSON.
    """
    if isinstance(payload, bytes):
        return payload
    return json.loads(payload) if payload else None
