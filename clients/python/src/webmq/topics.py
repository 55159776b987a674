"""Keys and patterns: section 3 of the protocol."""

from __future__ import annotations

import re

from .errors import WebMQError

MAX_KEY_BYTES = 255
MAX_POSITION_BYTES = 1_600
_VISIBLE = re.compile("[!-~]+")
_BAD = re.compile("[\x00-\x20\x7f-\x9f\ud800-\udfff]")


def check_key(key: str) -> str:
    """Returns the key.

    Raises:
        WebMQError: `E_KEY_INVALID`.
    """
    reason = _defect(key)
    if reason is None and ("*" in key or "#" in key):
        reason = "a key has no wildcards"
    if reason is not None:
        raise WebMQError("E_KEY_INVALID", f"key is not valid: {reason}")
    return key


def check_pattern(pattern: str) -> str:
    """Returns the pattern.

    Raises:
        WebMQError: `E_PATTERN_INVALID`.
    """
    reason = _defect(pattern)
    if reason is None and any(len(word) > 1 and ("*" in word or "#" in word) for word in pattern.split(".")):
        reason = "a wildcard is a word of its own"
    if reason is not None:
        raise WebMQError("E_PATTERN_INVALID", f"pattern is not valid: {reason}")
    return pattern


def check_option(name: str, value: str | None, max_bytes: int) -> str | None:
    """Returns a value for a header, which is visible ASCII.

    Raises:
        WebMQError: `E_OPTION_INVALID`.
    """
    if value is not None and (len(value) > max_bytes or _VISIBLE.fullmatch(value) is None):
        raise WebMQError("E_OPTION_INVALID", f"{name}: 1 to {max_bytes} visible ASCII characters")
    return value


def _defect(text: str) -> str | None:
    if _BAD.search(text) is not None:
        return "it has a space or a control character"
    if not 1 <= len(text.encode()) <= MAX_KEY_BYTES:
        return f"it has 1 to {MAX_KEY_BYTES} bytes"
    return None


def matches(pattern: str, key: str) -> bool:
    """Whether a pattern matches a key [P-3.4]. Takes at most as many steps as the product of their words."""
    words = key.split(".")
    # The prefixes of the key, by their number of words, that the pattern so far matches.
    reached = {0}
    for word in pattern.split("."):
        if word == "#":
            reached = set(range(min(reached), len(words) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(words) and word in ("*", words[at])}
        if not reached:
            return False
    return len(words) in reached
