"""The client: one connection to WebMQ, for asyncio."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from .connection import Connection, Token
from .errors import WebMQError, code_of, count_of, error_of
from .groups import Asked, Handler, Membership
from .listening import Item, Listener, LivePosition, Message, Pending, message_of
from .presence import Presence
from .publishes import Accepted, Publishes
from .requests import Requests
from .state import State
from .topics import MAX_POSITION_BYTES, check_key, check_option, check_pattern
from .wire import ServerMessage, Unreadable, payload_of

if TYPE_CHECKING:
    from types import TracebackType

    from .streams import StreamReader, StreamWriter

log = logging.getLogger("webmq")

MAX_LIMIT = 2**31 - 1
DEDUPE_WINDOW_MS = 120_000

Status = Literal["connecting", "connected", "closed"]


@dataclass(frozen=True, slots=True)
class History:
    """Messages of the log, oldest first unless asked in reverse."""

    messages: tuple[Message, ...]
    position: str | None
    """Up to here the answer is complete; `since` of the next one."""
    gap: str | None
    """Why messages may be missing; `None`: none are."""
    has_more: bool


class Client:
    """A client of a WebMQ server. It connects in the background, and again whenever the connection is lost.

    Use it in one event loop, as a context manager or with `close`.

    Args:
        url: `ws(s)://` or `http(s)://` and the path of the server, by default `/ws`.
        token: A token, or a function that gives one; it may be a coroutine function.
        max_pending_bytes: Publishes that may wait for their answer.
        on_status: Is told each change of `status`.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        max_pending_bytes: int = 4 * 1024 * 1024,
        on_status: Callable[[Status], None] | None = None,
    ) -> None:
        self._connection = Connection(url, token, self)
        self._requests = Requests(self._connection.send)
        self._requests.leave = self._leave
        self._requests.ended = self._listener_ended
        self._publishes = Publishes(self._connection.send, max_pending_bytes, self._dedupe_s)
        self._asked = Asked(self._requests)
        self._live_position = LivePosition()
        self._listeners: list[Listener] = []
        self._memberships: list[Membership] = []
        self._presences: WeakValueDictionary[str, Presence] = WeakValueDictionary()
        self._present: set[Presence] = set()
        self._member = secrets.token_urlsafe(16)
        self._on_status = on_status
        self._status: Status = "connecting"
        self._opened = asyncio.Event()
        self._error: WebMQError | None = None
        self._connection.start()

    @property
    def status(self) -> Status:
        return self._status

    @property
    def error(self) -> WebMQError | None:
        """Why the client has ended by itself."""
        return self._error

    @property
    def limits(self) -> dict[str, Any]:
        """`limits` of the server's `welcome` [P-4.4], with those of the token [P-5.2]; empty before."""
        limits = self._connection.welcome.get("limits")
        return {**limits, **self._connection.token_limits} if isinstance(limits, dict) else {}

    def limit(self, name: str, otherwise: int, least: int) -> int:
        """A limit of the server, as a number that this program can use."""
        return count_of(self.limits.get(name), MAX_LIMIT, least) or otherwise

    def _dedupe_s(self) -> float:
        """How long the server knows the id of a message [P-7.4]."""
        ids, window_ms = (count_of(self.limits.get(name), MAX_LIMIT) for name in ("dedupeMaxIds", "dedupeWindowMs"))
        return 0 if ids == 0 else (DEDUPE_WINDOW_MS if window_ms is None else window_ms) / 1_000

    async def connected(self) -> None:
        """Waits for a connection.

        Raises:
            WebMQError: there will be none: the server refuses this client.
        """
        await self._opened.wait()
        self._check_open()

    async def publish(
        self,
        key: str,
        payload: Any,
        *,
        message_id: str | None = None,
        no_echo: bool = False,
        ephemeral: bool = False,
    ) -> Accepted:
        """Publishes a message, and waits until the broker has it.

        Without a connection it waits for one. After a lost one it is sent again with the same id, so that it is
        delivered once; when the server may have forgotten its id, it ends with `E_TIMEOUT`. `bytes` are sent as they
        are, all else as JSON.

        Raises:
            WebMQError: `E_KEY_INVALID`, `E_PAYLOAD_INVALID`, `E_QUEUE_FULL`, and what the server refuses with.
        """
        self._check_open()
        return await self._publishes.publish(
            self._requests.next_id(),
            check_key(key),
            payload_of(payload),
            {
                "id": check_option("message_id", message_id, 64) or secrets.token_urlsafe(16),
                "noecho": no_echo,
                "ephemeral": ephemeral,
            },
        )

    def listen(
        self,
        pattern: str,
        *,
        since: str | None = None,
        last: int | None = None,
        rewind_ms: int | None = None,
        overflow: Literal["disconnect", "drop-oldest", "latest", "latest-told"] | None = None,
        meta: bool = False,
        max_waiting: int = 1_000,
    ) -> Pending[Listener]:
        """Listens to a pattern: `listener = await client.listen('chat.#')`, or `async with`. Then no message is missed.

        Args:
            since: Position after which to begin.
            last: Begin with that many messages of the log.
            rewind_ms: Begin with the messages of this time.
            meta: Asks who published each message and when.
            max_waiting: Messages that wait for the iteration. Those beyond come again from the log; without a log, a
                `Gap` says that they are missing.

        Raises:
            WebMQError: `E_PATTERN_INVALID`, and what the server refuses with, such as `E_FORBIDDEN`.
        """
        if sum(start is not None for start in (since, last, rewind_ms)) > 1:
            raise WebMQError("E_OPTION_INVALID", "give at most one of since, last and rewind_ms")
        if max_waiting < 1:
            raise WebMQError("E_OPTION_INVALID", "max_waiting: 1 or more")
        check_option("since", since, MAX_POSITION_BYTES)
        check_option("overflow", overflow, 64)
        options = {"since": since, "last": last, "rewind": rewind_ms, "overflow": overflow, "meta": meta}
        listener = Listener(self._requests, self._live_position, check_pattern(pattern), options, max_waiting)
        return Pending(listener, self._begin)

    def state(self, pattern: str, *, max_waiting: int = 1_000) -> Pending[State]:
        """Keeps the last message of each key that a pattern matches: `state = await client.state('prices.*')`.

        Raises:
            WebMQError: `E_UNSUPPORTED` if the server does not retain all of these keys.
        """
        options: dict[str, str | int | bool | None] = {"state": True}
        state = State(self._requests, self._live_position, check_pattern(pattern), options, max_waiting)
        state._values = {}
        return Pending(state, self._begin)

    async def history(
        self,
        key: str,
        *,
        since: str | None = None,
        before: str | None = None,
        rewind_ms: int | None = None,
        last: int | None = None,
        limit: int | None = None,
        reverse: bool = False,
        meta: bool = False,
    ) -> History:
        """Reads the log of a key [P-6.7].

        Raises:
            WebMQError: `E_UNSUPPORTED` without a log, `E_POSITION_INVALID`, `E_FORBIDDEN` and others.
        """
        self._check_open()
        reply = await self._requests.call(
            "history",
            check_key(key),
            options={
                "since": check_option("since", since, MAX_POSITION_BYTES),
                "rewind": rewind_ms,
                "before": check_option("before", before, MAX_POSITION_BYTES),
                "last": last,
                "limit": limit,
                "reverse": reverse,
                "meta": meta,
            },
        )
        messages = tuple(item for item in reply.messages if isinstance(item, Message))
        gap = reply.options.get("gap") or ("refused" if len(messages) < len(reply.messages) else None)
        return History(messages, reply.options.get("position"), gap, "more" in reply.options)

    async def request(self, key: str, payload: Any, *, timeout_s: float = 10) -> Any:
        """Asks whoever responds at a key, and returns the reply.

        Raises:
            WebMQError: `E_NO_RESPONDERS`, `E_TIMEOUT`, or the code with which the responder refuses.
        """
        self._check_open()
        check_key(key)
        content = payload_of(payload)
        end_at = time.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                while not self._requests.is_live:
                    await self.connected()
        except TimeoutError as error:
            raise WebMQError("E_TIMEOUT", "no connection in time", retryable=True) from error
        return await self._asked.ask(key, content, end_at - time.monotonic())

    async def respond(self, pattern: str, handler: Handler, *, group: str = "responders") -> Membership:
        """Answers requests whose key the pattern matches. Resolves when all nodes know it."""
        return await self._join(pattern, group, handler, responds=True)

    async def work(self, pattern: str, handler: Handler, *, group: str) -> Membership:
        """Handles messages as a member of a queue group: each goes to one member."""
        return await self._join(pattern, group, handler, responds=False)

    def presence(self, key: str) -> Presence:
        """Who is present at a key, and to be present there. The same object for each call with a key, while it is used.

        Raises:
            WebMQError: `E_KEY_INVALID`.
        """
        presence = self._presences.get(key)
        if presence is None:
            presence = self._presences[key] = Presence(self._requests, check_key(key), self._member, self._present)
        return presence

    async def open_stream(self, key: str, *, meta: Any = None, id: str | None = None) -> StreamWriter:
        """Begins a stream: a message that grows by appends until it ends.

        Raises:
            WebMQError: `E_STREAM_BUSY` while another one has not ended; `E_UNSUPPORTED` if the key is not logged.
        """
        from .streams import StreamWriter

        self._check_open()
        writer = StreamWriter(self, check_key(key), check_option("id", id, 36) or secrets.token_urlsafe(16))
        await writer.start(meta)
        return writer

    def read_stream(self, key: str) -> StreamReader:
        """Reads the last stream of a key, or waits for the first one."""
        from .streams import StreamReader

        return StreamReader(self, check_key(key))

    async def close(self) -> None:
        """Closes the connection after what was sent before, which takes 2 s at most.

        Publishes and requests without an answer fail with `E_CLOSED`; iterations end.
        """
        if self._status == "closed":
            return
        try:
            await self._connection.close()
        finally:
            self._ended(WebMQError("E_CLOSED", "the client is closed"), None)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- what the connection calls --------------------------------------------------------------------------------

    def opened(self) -> None:
        self._requests.opened()
        self._memberships = [member for member in self._memberships if not member.is_closed]
        for member in self._memberships:
            member.opened()
        for listener in [*self._listeners]:
            listener.opened()
        for presence in self._presences.values():
            presence.opened()
        self._publishes.opened()
        self._opened.set()
        self._set_status("connected")

    def lost(self) -> None:
        self._opened.clear()
        for listener in self._listeners:
            listener.lost()
        for presence in self._presences.values():
            presence.lost()
        self._publishes.lost()
        self._asked.failed(WebMQError("E_DISCONNECTED", "the connection was lost: the request may have been handled"))
        self._requests.lost()
        self._set_status("connecting")

    def failed(self, error: WebMQError) -> None:
        self._ended(error, error)

    def unreadable(self, error: Unreadable) -> None:
        """What waits for this message would wait for ever."""
        if error.verb == "presence":
            presence = self._presences.get(error.subject)
            if presence is not None:
                presence.missed()
        elif error.verb in ("ok", "error"):
            body = {"message": f"the answer cannot be read: {error}"}
            self.received(ServerMessage("error", (error.subject, error.code), body=body))

    def received(self, message: ServerMessage) -> None:
        if message.verb in ("ok", "error") and self._publishes.take(message):
            return
        if self._requests.take(message):
            return
        if message.verb == "message":
            self._deliver(message)
        elif message.verb == "pong":
            self._live_position.take(message.options.get("position"))
        elif message.verb == "gap":
            pattern, reason = message.fields
            for listener in self._listeners:
                if listener.pattern == pattern:
                    listener.gap(reason)
        elif message.verb == "presence":
            presence = self._presences.get(message.fields[0])
            if presence is not None:
                presence.changed(message.body)
        elif message.verb == "task":
            self._hand(message)
        elif message.verb == "reply":
            self._asked.take(message)
        elif message.verb == "ended":
            self._membership_ended(message)
        elif message.verb == "error":
            self._listen_ended(message)

    # -- within ---------------------------------------------------------------------------------------------------

    def _deliver(self, message: ServerMessage) -> None:
        key, at = message.fields
        position = None if at == "-" else at
        item: Item | None = None
        for listener in self._listeners:
            if item is None:
                item = message_of(message)
            listener.deliver(item, key, position)
        # After its listeners: it moves those which it does not match.
        self._live_position.take(position)

    def _hand(self, task: ServerMessage) -> None:
        group, pattern, _ = task.fields
        responds = "request" in task.options
        for member in self._memberships:
            if (member.group, member.pattern, member.responds) == (group, pattern, responds):
                member.take(task)
                return

    def _membership_ended(self, message: ServerMessage) -> None:
        group, pattern = message.fields
        code = code_of(message.body, "E_FORBIDDEN")
        for member in self._memberships:
            if (member.group, member.pattern, member.responds) == (group, pattern, "respond" in message.options):
                member.failed(error_of(code, message.body))

    def _listen_ended(self, message: ServerMessage) -> None:
        pattern, key = message.body.get("pattern"), message.body.get("key")
        presence = self._presences.get(key) if isinstance(key, str) else None
        if presence is not None:
            presence.revoked()
        for listener in [*self._listeners]:
            if listener.pattern == pattern:
                listener.failed(error_of(message.fields[1], message.body))

    async def _begin(self, listener: Listener) -> None:
        self._check_open()
        self._listeners.append(listener)
        if self._requests.is_live:
            listener.opened()
        try:
            await listener.ready
        except asyncio.CancelledError:
            # Whoever is cancelled does not wait for the server.
            listener.failed(None)
            if self._is_last(listener):
                self._requests.tell("unlisten", listener.pattern, options={})
            raise
        except WebMQError as error:
            if error.code == "E_UNSUPPORTED":
                # A server that knows no state topics took it for another listen.
                await self._leave(listener)
            raise

    def _listener_ended(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _is_last(self, listener: Listener) -> bool:
        return self._requests.is_live and all(other.pattern != listener.pattern for other in self._listeners)

    async def _leave(self, listener: Listener) -> None:
        if not self._is_last(listener):
            return
        try:
            await self._requests.call("unlisten", listener.pattern, is_resent=False)
        except WebMQError as error:
            if error.code not in ("E_NOT_LISTENING", "E_DISCONNECTED", "E_CLOSED"):
                raise

    async def _join(self, pattern: str, group: str, handler: Handler, responds: bool) -> Membership:
        self._check_open()
        check_option("group", group, 64)
        member = Membership(self._requests, self._connection.send, check_pattern(pattern), group, handler, responds)
        self._memberships = [other for other in self._memberships if not other.is_closed]
        names = [(other.group, other.pattern, other.responds) for other in self._memberships]
        if (group, pattern, responds) in names:
            raise WebMQError("E_OPTION_INVALID", f"this client is a member of {group} at {pattern} already")
        self._memberships.append(member)
        if self._requests.is_live:
            member.opened()
        try:
            await member.ready
        except asyncio.CancelledError:
            member.leave()
            raise
        return member

    def _ended(self, error: WebMQError, told: WebMQError | None) -> None:
        if self._status == "closed":
            return
        self._error = told
        self._requests.failed(error)
        self._publishes.failed(error)
        self._asked.failed(error)
        for listener in [*self._listeners]:
            listener.failed(told)
        for presence in self._presences.values():
            presence.failed(told)
        for member in self._memberships:
            if not member.is_closed:
                member.failed(error)
        self._memberships.clear()
        self._set_status("closed")
        self._opened.set()

    def _set_status(self, status: Status) -> None:
        if self._status == status:
            return
        self._status = status
        if self._on_status is not None:
            try:
                self._on_status(status)
            except Exception:
                log.exception("on_status failed")

    def _check_open(self) -> None:
        if self._status == "closed":
            raise self._error or WebMQError("E_CLOSED", "the client is closed")
