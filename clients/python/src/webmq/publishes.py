"""Publishes that wait for their answer: sent again after a lost connection, and in their order: section 7."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from .errors import WebMQError, error_of
from .wire import Options, ServerMessage, encode

OVERHEAD_BYTES = 256
MIN_RETRY_S = 0.25
"""[P-10.7]"""
MIN_WINDOW = 8
"""Publishes sent after a refusal; each answer lets one more go [P-10.7]. All at once would be refused again."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The broker has the message."""

    position: str | None
    """Its place in the log, if there is one."""
    is_duplicate: bool
    """A message with this id was accepted before; this one was not delivered again."""


@dataclass(slots=True, eq=False)
class _Publish:
    id: str
    data: str | bytes
    done: asyncio.Future[Accepted] = field(repr=False)
    sent_at: tuple[float, float] | None = None
    """When it was first sent, by both clocks; `None` while the server cannot have it."""
    cost_bytes: int = 0
    """What it takes of those that may wait."""

    @property
    def age_s(self) -> float:
        """By the clock that says more: one stands still while a machine sleeps."""
        return max(now - then for now, then in zip(_clocks(), self.sent_at or _clocks(), strict=True))


def _clocks() -> tuple[float, float]:
    return time.monotonic(), time.time()


class Publishes:
    """The queue of publishes. Those refused with a time [P-10.7] are sent again before any other."""

    def __init__(self, send: Callable[[str | bytes], None], max_bytes: int, dedupe_s: Callable[[], float]) -> None:
        self._send = send
        self._dedupe_s = dedupe_s
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: deque[_Publish] = deque()
        self._sent: dict[str, _Publish] = {}
        self._refused: list[_Publish] = []
        self._retry_after_s = 0.0
        self._retry: asyncio.TimerHandle | None = None
        self._window = inf
        """Most unanswered publishes, until nothing waits after a refusal."""
        self._is_live = False

    async def publish(self, id: str, key: str, payload: str | bytes, options: Options) -> Accepted:
        done: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        publish = _Publish(id, encode("publish", id, key, payload=payload, options=options), done)
        publish.cost_bytes = len(publish.data) + OVERHEAD_BYTES
        if self._bytes + publish.cost_bytes > self._max_bytes:
            raise WebMQError(
                "E_QUEUE_FULL",
                f"{len(self._waiting) + len(self._sent)} publishes wait for their answer; "
                f"together they may have {self._max_bytes} bytes (max_pending_bytes)",
                retryable=True,
            )
        self._bytes += publish.cost_bytes
        self._waiting.append(publish)
        self._flush()
        try:
            return await done
        except asyncio.CancelledError:
            # Not sent yet: nobody wants it any more. One that was sent counts until its answer.
            if publish in self._waiting:
                self._waiting.remove(publish)
            if publish.id not in self._sent:
                self._release(publish)
            raise
        finally:
            if not done.cancelled():
                self._release(publish)

    def _release(self, publish: _Publish) -> None:
        self._bytes -= publish.cost_bytes
        publish.cost_bytes = 0

    def opened(self) -> None:
        self._is_live = True
        self._flush()

    def lost(self) -> None:
        """What had no answer goes first on the next connection, as it was."""
        self._is_live = False
        self._window = inf
        self._take_back([*self._refused, *self._sent.values()])
        self._sent.clear()

    def failed(self, error: WebMQError) -> None:
        for publish in (*self._sent.values(), *self._refused, *self._waiting):
            if not publish.done.done():
                publish.done.set_exception(error)
        if self._retry is not None:
            self._retry.cancel()

    def take(self, message: ServerMessage) -> bool:
        """Takes an answer. Returns whether it was one of these."""
        publish = self._sent.pop(message.fields[0], None)
        if publish is None:
            return False
        if publish.done.cancelled():
            self._release(publish)
        if message.verb == "ok":
            self._window += 1
            if not publish.done.done():
                publish.done.set_result(Accepted(message.options.get("position"), "duplicate" in message.options))
        else:
            error = error_of(message.fields[1], message.body)
            if error.code == "E_RATE_LIMIT" or error.retry_after_ms is not None:
                publish.sent_at = None
                self._refused.append(publish)
                self._window = MIN_WINDOW
                self._retry_after_s = max(self._retry_after_s, (error.retry_after_ms or 0) / 1_000, MIN_RETRY_S)
            elif not publish.done.done():
                publish.done.set_exception(error)
        if self._refused and not self._sent and self._retry is None:
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(self._retry_after_s, self._try_again)
        self._flush()
        return True

    def _try_again(self) -> None:
        self._take_back(self._refused)
        self._flush()

    def _take_back(self, publishes: list[_Publish]) -> None:
        if self._retry is not None:
            self._retry.cancel()
        self._retry = None
        self._retry_after_s = 0.0
        self._refused = []
        for publish in publishes:
            if publish.done.cancelled():
                self._release(publish)
        # Ids grow, so this is the order of the calls.
        again = sorted((p for p in publishes if not p.done.done()), key=lambda p: (len(p.id), p.id))
        self._waiting.extendleft(reversed(again))

    def _flush(self) -> None:
        if self._refused:
            return
        while self._is_live and self._waiting:
            if len(self._sent) >= self._window:
                return
            publish = self._waiting.popleft()
            if publish.done.done():
                continue
            if publish.sent_at is not None and publish.age_s >= self._dedupe_s():
                reason = "no answer came, and the server would not know a second copy: it may have arrived"
                publish.done.set_exception(WebMQError("E_TIMEOUT", reason, retryable=True))
                continue
            publish.sent_at = publish.sent_at or _clocks()
            self._sent[publish.id] = publish
            self._send(publish.data)
        if not self._waiting:
            self._window = inf
