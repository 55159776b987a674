"""Listening, with recovery: sections 6 and 8 of the protocol. Nothing is missing in silence: it comes again, or a
`Gap` says so."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import unquote

from .errors import WebMQError, retry_s
from .paced import log_paced
from .position import is_after, is_later
from .topics import matches
from .wire import Options, ServerMessage, value_of

if TYPE_CHECKING:
    from types import TracebackType

    from .requests import Reply, Requests

RETRY_S = 1.0
FREE_PAGES = 16
"""Pages without news that are asked for at once. A server that says `more` for ever cannot keep it busy."""
EMPTY_PAGE_S = 0.1


@dataclass(frozen=True, slots=True)
class Message:
    """A message that a listener got."""

    key: str
    payload: Any
    """Parsed JSON, `bytes` of a binary message, `None` for an empty one."""
    position: str | None = None
    """Its place in the log; `None` if it is in none."""
    is_replay: bool = False
    user_id: str | None = None
    time_ms: int | None = None
    id: str | None = None
    stream: str | None = None
    """Of which stream it is part: `id:number:kind` [P-18.1]."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages may be missing before the next one: load again what was derived from them.

    `reason` is one of [P-8.4], or `position-invalid`: the server could not read the position.
    """

    reason: str


Item = Message | Gap


def message_of(received: ServerMessage) -> Message | Gap:
    """The message; a gap (`refused`) when its payload is not JSON."""
    key, position = received.fields
    options = received.options
    try:
        payload = value_of(received.payload)
    except ValueError:
        log_paced(logging.WARNING, "a message at %s is not JSON", key)
        return Gap("refused")
    user = options.get("user")
    return Message(
        key,
        payload,
        None if position == "-" else position,
        "replay" in options,
        None if user is None else unquote(user),
        received.number("time") if "time" in options else None,
        options.get("id"),
        options.get("stream"),
    )


class LivePosition:
    """The last live position of the connection. It also moves the listens that had no message of their own [P-8.7]."""

    def __init__(self) -> None:
        self.count = 0
        self.position: str | None = None

    def take(self, position: str | None) -> None:
        if position is not None and position != "-":
            self.count += 1
            self.position = position


class Listener:
    """What a pattern matches: iterate over it. Ends with the client, or raises why the server has ended it."""

    def __init__(
        self,
        requests: Requests,
        live: LivePosition,
        pattern: str,
        options: dict[str, str | int | bool | None],
        max_waiting: int,
    ) -> None:
        self.pattern = pattern
        self._requests = requests
        self._live_position = live
        self._options = options
        self._start = {name: options.pop(name, None) for name in ("since", "last", "rewind")}
        self._max_waiting = max_waiting
        self._queue: deque[Item] = deque()
        self._wake = asyncio.Event()
        self._error: WebMQError | None = None
        self._is_closed = False
        self._cursor: str | None = None
        """Everything up to here is in the queue, or was taken from it."""
        self._handled: str | None = None
        self._is_live = False
        self._has_been_live = False
        self._live_count = 0
        self._asked: tuple[str, bool] | None = None
        """Id of the request under way, and whether it continues from a position."""
        self._due_gap: str | None = None
        """Told with the answer: whoever loads again after it misses nothing that is published meanwhile."""
        self._next_page: str | None = None
        self._empty_pages = 0
        """In a row: a page may be empty [P-6.11]."""
        self._is_pausing = False
        self._is_behind = False
        """The queue was full: what was left out is in the log."""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    @property
    def position(self) -> str | None:
        """Of the last message that the iteration gave, or the place where it began. A later `since`, also of another
        process, continues after it."""
        return self._handled

    @property
    def waiting(self) -> int:
        """Items that the iteration gives at once."""
        return len(self._queue)

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Item:
        while True:
            if self._queue:
                item = self._queue.popleft()
                if isinstance(item, Message) and item.position is not None:
                    self._handled = item.position
                if not self._queue:
                    self._drained()
                return item
            if self._error is not None:
                raise self._error
            if self._is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends it. What waits in it is dropped."""
        if self._is_closed:
            return
        self._queue.clear()
        self._end(None)
        await self._requests.leave(self)

    # -- what the client calls ------------------------------------------------------------------------------------

    def opened(self) -> None:
        """A connection is live."""
        self._is_behind = False
        self._next_page = None
        self._begin_pages()
        since = self._resume_position()
        if since is not None:
            self._ask({"since": since})
        elif self._has_been_live:
            self._restart("no-history")
        else:
            self._ask(self._start)

    def lost(self) -> None:
        if self._is_live and not self._is_behind:
            self._cursor = self._resume_position()
        self._is_live = False
        self._asked = None

    def deliver(self, message: Message | Gap, key: str, position: str | None) -> None:
        """A live message of the connection."""
        if not self._is_live or not matches(self.pattern, key):
            return
        if position is None:
            self._deliver_unlogged(message)
        elif not self._is_behind and (self._cursor is None or is_after(position, self._cursor)):
            if len(self._queue) >= self._max_waiting:
                self._is_behind = True
                return
            self._cursor = position
            self._put(message)

    def gap(self, reason: str) -> None:
        self._put(Gap(reason))

    def failed(self, error: WebMQError | None) -> None:
        """It ends: with an error, or with the client."""
        self._end(error)

    # -- within ---------------------------------------------------------------------------------------------------

    def _resume_position(self) -> str | None:
        live = self._live_position
        is_moved = self._is_live and not self._is_behind and live.count > self._live_count
        if is_moved and live.position is not None and is_later(live.position, self._cursor):
            return live.position
        return self._cursor

    def _ask(self, start: Options) -> None:
        id = self._requests.ask("listen", self.pattern, on_reply=self._take, options={**start, **self._options})
        self._asked = (id, "since" in start and start["since"] is not None)

    def _restart(self, reason: str) -> None:
        """Asks without a position: what came meanwhile is missing."""
        self._cursor = None
        self._due_gap = reason
        self._ask({})

    def _take(self, reply: Reply) -> None:
        """An answer, and in the same moment all of its replay."""
        if self._is_closed or self._asked is None or self._asked[0] != reply.id:
            return
        _, continues = self._asked
        self._asked = None
        if reply.error is not None:
            if reply.error.code == "E_POSITION_INVALID" and continues:
                self._restart("position-invalid")
            elif reply.error.retryable:
                self._requests.later(self, retry_s(reply.error, RETRY_S))
            else:
                self._end(reply.error)
            return
        options = reply.options
        if "state" in self._options and "state" not in options:
            self._end(WebMQError("E_UNSUPPORTED", "the server does not know state topics"))
            return
        gap = options.get("gap", self._due_gap)
        self._due_gap = None
        # Without `recovered` and without a gap, the messages in between count as lost.
        if gap is None and continues and "recovered" not in options:
            gap = "no-history"
        if gap is not None:
            self._put(Gap(gap))
        for message in reply.messages:
            self._put(message)
        position = options.get("position")
        is_news = bool(reply.messages) and (position is None or is_after(position, self._cursor))
        self._empty_pages = 0 if is_news else self._empty_pages + 1
        if position is not None:
            self._cursor = position
            if self._handled is None and not self._queue:
                self._handled = position
        if not self.ready.done():
            self.ready.set_result(None)
        self._page_taken(reply, "more" in options)

    def _page_taken(self, reply: Reply, has_more: bool) -> None:
        if has_more and self._cursor is not None:
            self._next_page = self._cursor
            if self._empty_pages > FREE_PAGES:
                self._pause()
            elif not self._queue:
                self._drained()
            return
        self._is_behind = False
        self._is_live = self._has_been_live = True
        self._live_count = self._live_position.count

    def _begin_pages(self) -> None:
        self._empty_pages = 0
        self._is_pausing = False

    def _pause(self) -> None:
        self._is_pausing = True
        self._requests.later(self, EMPTY_PAGE_S)

    def again(self) -> None:
        """After a refusal that may pass, or a pause."""
        self._is_pausing = False
        if self._asked is not None or self._is_closed:
            return
        if not self._is_live and self._next_page is None:
            self.opened()
        elif not self._queue:
            self._drained()

    def _drained(self) -> None:
        """The reader has taken everything: now there is room for what was left out."""
        if self._asked is not None or self._is_pausing or not self._requests.is_live:
            return
        if self._next_page is not None:
            page, self._next_page = self._next_page, None
            self._ask({"since": page})
        elif self._is_behind and self._is_live:
            self._ask({"since": self._cursor})

    def _deliver_unlogged(self, message: Message | Gap) -> None:
        # The log will not have it: while it is read, too, a gap tells of it.
        self._put(Gap("slow-consumer") if self._is_behind or len(self._queue) >= self._max_waiting else message)

    def _put(self, item: Item) -> None:
        # One gap says it all until the next message.
        is_told = isinstance(item, Gap) and bool(self._queue) and isinstance(self._queue[-1], Gap)
        if not self._is_closed and not is_told:
            self._queue.append(item)
            self._wake.set()

    def _end(self, error: WebMQError | None) -> None:
        self._is_closed = True
        self._error = error
        self._is_live = False
        self._requests.ended(self)
        self._wake.set()
        if not self.ready.done():
            self.ready.set_exception(error or WebMQError("E_CLOSED", "closed"))


L = TypeVar("L", bound=Listener)


class Pending(Generic[L]):
    """A listener that begins when it is awaited, or entered with `async with`."""

    def __init__(self, listener: L, begin: Callable[[Listener], Awaitable[None]]) -> None:
        self._listener = listener
        self._begin = begin

    def __await__(self) -> Generator[Any, None, L]:
        yield from self._begin(self._listener).__await__()
        return self._listener

    async def __aenter__(self) -> L:
        return await self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.close()
