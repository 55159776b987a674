"""Text that was cut inside a character: JavaScript counts UTF-16 units, of which a character may have two."""

from __future__ import annotations


def joined_pairs(text: str) -> str:
    """The text with each surrogate pair as the character that it is. Halves without the other one stay."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def half_of(text: str) -> str:
    """The first half of a character at the end of a text, or nothing."""
    return text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
