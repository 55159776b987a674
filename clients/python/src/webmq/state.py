"""State topics: the last message of each key: section 17 of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .listening import Gap, Item, Listener, Message

if TYPE_CHECKING:
    from .requests import Reply


@dataclass(frozen=True, slots=True)
class _Whole:
    """What follows in the queue, up to the next one that `is_end`, is the whole state."""

    is_end: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What changed. `is_whole`: it is everything; keys that are not in it are gone."""

    values: Mapping[str, Any]
    removed: frozenset[str]
    is_whole: bool


def _is_of_state(message: Message) -> bool:
    """Of a stream, only the whole text is part of the state [P-18.9]."""
    return message.stream is None or message.stream.endswith(":text")


class State(Listener):
    """The state of a pattern, kept up to date. Iterate for `Change`s; `values` has all at the last of them.

    There are no gaps: after one, the whole state comes anew.
    """

    _loading: dict[str, Any] | None = None
    _asks_whole = True
    _tells_whole = False

    @property
    def values(self) -> Mapping[str, Any]:
        return MappingProxyType(self._values)

    _values: dict[str, Any]

    def __aiter__(self) -> State:
        return self

    async def __anext__(self) -> Change:  # type: ignore[override]
        while True:
            item: object = await super().__anext__()
            if isinstance(item, _Whole):
                if not item.is_end:
                    self._loading = {}
                    continue
                self._values, self._loading = self._loading or {}, None
                return Change(dict(self._values), frozenset(), True)
            if not isinstance(item, Message) or not _is_of_state(item):
                continue
            target = self._values if self._loading is None else self._loading
            is_removal = item.payload is None or item.payload == b""
            if is_removal:
                target.pop(item.key, None)
            else:
                target[item.key] = item.payload
            if self._loading is None:
                return Change(
                    {} if is_removal else {item.key: item.payload},
                    frozenset([item.key] if is_removal else []),
                    False,
                )

    def gap(self, reason: str) -> None:
        # What was asked for, and has not begun to come, has all that is missing.
        is_coming = self._tells_whole and self._asked is not None
        if self._requests.is_live and not is_coming:
            self._ask_whole()

    def opened(self) -> None:
        if self._asks_whole:
            self._is_behind = False
            self._begin_pages()
            self._ask_whole()
        else:
            super().opened()

    def _restart(self, reason: str) -> None:
        self._ask_whole()

    def _ask_whole(self) -> None:
        self._asks_whole = self._tells_whole = True
        self._next_page = None
        self._is_live = False
        self._ask({})

    def _take(self, reply: Reply) -> None:
        # Without a position it is the whole, which nothing can be missing before.
        if self._asked == (reply.id, True) and "gap" in reply.options:
            self._asked, self._next_page, self._asks_whole = None, None, True
            self._is_live = False
            self._pause()
            return
        if self._tells_whole and reply.error is None and self._asked is not None:
            self._tells_whole = False
            self._put_mark(False)
        super()._take(reply)

    def _page_taken(self, reply: Reply, has_more: bool) -> None:
        super()._page_taken(reply, has_more)
        if not has_more and self._asks_whole:
            self._asks_whole = False
            self._put_mark(True)

    def _put_mark(self, is_end: bool) -> None:
        self._queue.append(_Whole(is_end))  # type: ignore[arg-type]
        self._wake.set()

    def _put(self, item: Item) -> None:
        # A gap is of a value that is not JSON, which the log names: its key stays as it is.
        if not isinstance(item, Gap):
            super()._put(item)

    def _deliver_unlogged(self, message: Item) -> None:
        """It is not part of the state [P-17.4]."""
