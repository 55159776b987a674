"""Messages of the protocol `webmq.v1`: section 2. A message is a header of one line and, for some verbs, a body."""

from __future__ import annotations

import json
import re
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
_NUMBER = re.compile("[0-9]{1,15}")
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    """A message that is not of this protocol, or of a later version. `code` as in the vectors.

    `verb` and `subject`, its first field, say what waits for it: a request, or a watch of presence.
    """

    def __init__(self, code: str, reason: str, verb: str = "", subject: str = "") -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.verb = verb
        self.subject = subject


def is_number(text: str) -> bool:
    """Whether it is a number of the protocol [P-2.6]. `int` refuses, or takes long for, one of thousands of digits."""
    return _NUMBER.fullmatch(text) is not None


def parse_json(text: Payload) -> Any:
    """Parses JSON that comes from others: everything of them that is parsed goes through here.

    Raises:
        ValueError: it is no JSON, or none that Python reads: lists in lists beyond its limit, a number of 5,000 digits.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


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
    subject = fields[0] if fields else ""
    if verb == "bye" and len(parts) > 1 and is_number(parts[1]):
        fields.append(parts[1])
    for part in parts[len(fields) :]:
        name, _, value = part.partition("=")
        options[name] = value
    if verb in ("expiring", "bye") and not all(is_number(number) for number in fields):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: not a number")
    if any(name in options and not is_number(options[name]) for name in _NUMBERS):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: an option is no number")
    if kind == "payload" and rest is None:
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: without a payload")
    message = ServerMessage(verb, tuple(fields), options, rest or ("" if isinstance(data, str) else b""))
    if kind in ("none", "payload") or (kind == "maybe" and rest is None):
        return message
    try:
        body = parse_json(rest or "")
    except ValueError as error:
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: the body is no JSON", verb, subject) from error
    if not _has_members(verb, kind, body):
        raise Unreadable("E_MESSAGE_INVALID", f"{verb}: the body is no object, or has not what it must", verb, subject)
    return ServerMessage(verb, message.fields, options, "", body)


def _has_members(verb: str, kind: Kind, body: Any) -> bool:
    if kind == "object" and not isinstance(body, dict):
        return False
    needed = {"welcome": ("protocol", "auth", "session"), "error": ("message",)}.get(verb, ())
    return all(isinstance(body.get(name), str) for name in needed)


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
    """`bytes` stay bytes; everything else becomes JSON text. Half a surrogate pair, which UTF-8 has not, is escaped.

    Raises:
        WebMQError: `E_PAYLOAD_INVALID`.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise WebMQError("E_PAYLOAD_INVALID", f"the payload is not JSON: {error}") from error
    return text if text.isascii() else _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def value_of(payload: Payload) -> Any:
    """What a payload says: bytes of a binary frame, parsed JSON of a text frame, `None` for an empty one [P-7.6].

    Raises:
        ValueError: the text is no JSON.
    """
    if isinstance(payload, bytes):
        return payload
    return parse_json(payload) if payload else None
