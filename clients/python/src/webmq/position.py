"""Positions in the log: [P-8.1]. They are opaque but for their order within an epoch."""

from __future__ import annotations


def epoch_of(position: str) -> str:
    return position.rpartition(":")[0]


def is_after(position: str, other: str | None) -> bool:
    """Whether a position is later than another one, or of another epoch: then it counts as new."""
    if other is None or epoch_of(position) != epoch_of(other):
        return True
    return _offset(position) > _offset(other)


def is_later(position: str, other: str | None) -> bool:
    """Whether a position is later than another one of the same epoch."""
    return other is not None and epoch_of(position) == epoch_of(other) and is_after(position, other)


def _offset(position: str) -> int:
    try:
        return int(position.rpartition(":")[2].partition(".")[0], 36)
    except ValueError:
        return -1
