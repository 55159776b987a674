"""What is logged because of others: of each kind once a second, so that they cannot fill the log."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("webmq")

PACE_S = 1.0

_told_at: dict[str, float] = {}


def log_paced(level: int, text: str, *values: object, exc_info: bool = False) -> None:
    """Logs, unless the same text was logged less than a second ago. `text` MUST be a constant."""
    now = time.monotonic()
    if now - _told_at.get(text, -PACE_S) >= PACE_S:
        _told_at[text] = now
        log.log(level, text, *values, exc_info=exc_info)
