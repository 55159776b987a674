"""Who is present at a key, and to be present there: section 14 of the protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .errors import WebMQError, retry_s
from .wire import Options, Payload, payload_of

if TYPE_CHECKING:
    from types import TracebackType

    from .requests import Reply, Requests

log = logging.getLogger("webmq")

RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """Whoever is present."""

    id: str
    """Unique at the key, and the same over the reconnects of its client."""
    user_id: str | None = None
    """The user of its token; `None` of anonymous ones."""
    data: Any = None


Members = Mapping[str, Member]


@dataclass(frozen=True, slots=True)
class PresenceChange:
    entered: tuple[Member, ...]
    updated: tuple[Member, ...]
    """Members with other data."""
    left: tuple[Member, ...]
    """With their last data."""


class PresenceWatch:
    """The members of a key, kept up to date over reconnects. Iterate for the changes; a slow loop gets larger ones.

    Ends with the client, or raises why the server has ended it.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._given: Members = {}
        self._wake = asyncio.Event()
        self._error: WebMQError | None = None
        self._is_closed = False

    @property
    def members(self) -> Members:
        """Those at the last change that the iteration gave, by `id`."""
        return MappingProxyType(dict(self._given))

    def __aiter__(self) -> PresenceWatch:
        return self

    async def __anext__(self) -> PresenceChange:
        while True:
            change = self._change()
            if change is not None:
                return change
            if self._error is not None:
                raise self._error
            if self._is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()

    async def __aenter__(self) -> PresenceWatch:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if not self._is_closed:
            self.end(None)
            told = self._presence.left_by(self)
            if told is not None:
                await told

    def begin(self, members: Members) -> None:
        self._given = members

    def end(self, error: WebMQError | None) -> None:
        self._is_closed = True
        self._error = error
        self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    def _change(self) -> PresenceChange | None:
        if self._is_closed:
            return None
        before, now = self._given, self._presence.known
        self._given = now
        entered = tuple(member for id, member in now.items() if id not in before)
        updated = tuple(member for id, member in now.items() if id in before and _differs(before[id], member))
        left = tuple(member for id, member in before.items() if id not in now)
        return PresenceChange(entered, updated, left) if entered or updated or left else None


class Presence:
    """The presence at one key, and that of this client, from `Client.presence`. A client is present once at a key."""

    def __init__(self, requests: Requests, key: str, member: str, present: set[Presence]) -> None:
        self.key = key
        self.id: str | None = None
        """The `id` under which others see this client; `None` while it is not present."""
        self.error: WebMQError | None = None
        """Why the server has ended the presence of this client, or refused it after a reconnect."""
        self._requests = requests
        self._member = member
        self._data: Payload | None = None
        self._present = present
        """Those of the client that are present. It keeps them; others go when nobody has them."""
        self._watches: list[PresenceWatch] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._asked: str | None = None
        self._is_synced = False
        self.known: Members = {}

    async def enter(self, data: Any = None) -> None:
        """Makes this client present, or changes its data. It stays so over reconnects, until it leaves.

        Raises:
            WebMQError: it is not present: `E_FORBIDDEN`, `E_PAYLOAD_TOO_LARGE`, `E_PRESENCE_LIMIT` and others.
        """
        self._data = None if data is None else payload_of(data)
        try:
            reply = await self._requests.call("presence", self.key, payload=self._data, options=self._entry)
        except BaseException as error:
            if isinstance(error, WebMQError) or not self._is_present:
                self._is_present, self.id = False, None
                # The server may have let it enter, or have it with its data of before.
                self._tell("leave")
            raise
        self._is_present, self.error = True, None
        self._entered(reply)

    async def leave(self) -> None:
        """Is present no longer. Without a connection, others see it after the server's time to linger."""
        was_present, self._is_present, self.id = self._is_present, False, None
        if was_present:
            await self._tell("leave")

    async def get(self) -> tuple[Member, ...]:
        """Whoever is present now.

        Raises:
            WebMQError: `E_FORBIDDEN` and others.
        """
        if self._is_synced:
            return tuple(self.known.values())
        return tuple(_members_of(await self._requests.call("presence", self.key, options={"op": "get"})).values())

    async def watch(self) -> PresenceWatch:
        """Follows whoever is present: `async with await client.presence('room.1').watch() as watch`.

        Raises:
            WebMQError: `E_FORBIDDEN` and others.
        """
        if self._requests.error is not None:
            raise self._requests.error
        watch = PresenceWatch(self)
        self._watches.append(watch)
        if not self._is_synced:
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(ready)
            if self._requests.is_live and self._asked is None:
                self._ask()
            try:
                await ready
            except BaseException:
                watch.end(None)
                # Whoever is cancelled does not wait for the server.
                self.left_by(watch)
                raise
        watch.begin(self.known)
        return watch

    # -- what the client calls ------------------------------------------------------------------------------------

    def opened(self) -> None:
        if self._is_present:
            self._requests.ask("presence", self.key, on_reply=self._entered, payload=self._data, options=self._entry)
        if self._watches:
            self._ask()

    def lost(self) -> None:
        self._is_synced = False
        self._asked = None

    def changed(self, body: Mapping[str, Any]) -> None:
        # One that was sent before the answer is part of it.
        if not self._is_synced:
            return
        members = dict(self.known)
        for id in _list_of(body.get("leave")):
            if isinstance(id, str):
                members.pop(id, None)
        self._become(members | _members_in(body.get("enter")) | _members_in(body.get("update")))

    def missed(self) -> None:
        """A change cannot be read: the members are asked for again."""
        if self._is_synced and self._watches:
            self._is_synced = False
            self._later(RETRY_S, self._ask_again)

    def revoked(self) -> None:
        """The server has ended the entry, the watches or both: the answers tell which."""
        self.lost()
        self.id = None
        self.opened()

    def failed(self, error: WebMQError | None) -> None:
        """It ends with the client."""
        self.lost()
        self._is_present, self.id, self.error = False, None, error
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.end(error)
        self._settle(error or WebMQError("E_CLOSED", "the client is closed"))

    # -- within ---------------------------------------------------------------------------------------------------

    @property
    def _is_present(self) -> bool:
        return self in self._present

    @_is_present.setter
    def _is_present(self, is_present: bool) -> None:
        (self._present.add if is_present else self._present.discard)(self)

    @property
    def _entry(self) -> Options:
        return {"op": "enter", "member": self._member}

    def _entered(self, reply: Reply) -> None:
        if not self._is_present:
            return
        if reply.error is None:
            self.id = reply.result.get("id") if isinstance(reply.result, dict) else None
        elif reply.error.retryable:
            self._later(retry_s(reply.error, RETRY_S), lambda: self.opened() if self._is_present else None)
        else:
            log.warning("%s: no longer present: %s", self.key, reply.error)
            self._is_present, self.id, self.error = False, None, reply.error

    def _ask(self) -> None:
        self._asked = self._requests.ask("presence", self.key, on_reply=self._told, options={"op": "watch"})

    def _told(self, reply: Reply) -> None:
        if reply.id != self._asked and self._asked is not None:
            return
        self._asked = None
        if reply.error is None:
            self._is_synced = True
            self._become(_members_of(reply))
            self._settle(None)
        elif reply.error.retryable:
            self._later(retry_s(reply.error, RETRY_S), self._ask_again)
        else:
            watches, self._watches = self._watches, []
            for watch in watches:
                watch.end(reply.error)
            self._settle(reply.error)

    def _ask_again(self) -> None:
        if self._watches and not self._is_synced and self._asked is None:
            self._ask()

    def _later(self, delay_s: float, again: Callable[[], None]) -> None:
        # The next connection asks by itself.
        asyncio.get_running_loop().call_later(delay_s, lambda: again() if self._requests.is_live else None)

    def _become(self, members: Members) -> None:
        self.known = members
        for watch in self._watches:
            watch.wake()

    def _settle(self, error: WebMQError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            if not ready.done():
                if error is None:
                    ready.set_result(None)
                else:
                    ready.set_exception(error)

    def left_by(self, watch: PresenceWatch) -> asyncio.Future[None] | None:
        """A watch is closed. The last one tells the server."""
        if watch not in self._watches:
            return None
        self._watches.remove(watch)
        self._is_synced = self._is_synced and bool(self._watches)
        return None if self._watches else self._tell("unwatch")

    def _tell(self, op: str) -> asyncio.Future[None]:
        return self._requests.tell("presence", self.key, options={"op": op})


def _member_of(told: Mapping[str, Any]) -> Member:
    return Member(told["id"], told.get("userId"), told.get("data"))


def _members_of(reply: Reply) -> dict[str, Member]:
    return _members_in(reply.result.get("members")) if isinstance(reply.result, dict) else {}


def _members_in(told: Any) -> dict[str, Member]:
    members = [member for member in _list_of(told) if isinstance(member, dict) and isinstance(member.get("id"), str)]
    return {member["id"]: _member_of(member) for member in members}


def _list_of(told: Any) -> list[Any]:
    return told if isinstance(told, list) else []


def _differs(before: Member, now: Member) -> bool:
    try:
        return before != now
    except RecursionError:
        # Data that is nested as deeply as Python reads.
        return True
