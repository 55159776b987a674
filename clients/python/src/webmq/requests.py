"""Requests to the server that are answered once, with the messages that follow the answer: section 4."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import WebMQError, error_of
from .listening import Item, message_of
from .wire import Options, Payload, ServerMessage, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .listening import Listener

RETRY_S = 1.0
MAX_REPLAY_MESSAGES = 100_000
MAX_REPLAY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `messages` are those of its replay."""

    id: str
    options: Mapping[str, str]
    messages: tuple[Item, ...] = ()
    result: Any = None
    error: WebMQError | None = None


@dataclass(slots=True)
class _Pending:
    id: str
    data: str | bytes
    on_reply: Callable[[Reply], None]
    is_resent: bool


@dataclass(slots=True)
class _Replay:
    pending: _Pending
    ok: ServerMessage
    messages: list[Item] = field(default_factory=list)
    bytes: int = 0


class Requests:
    def __init__(self, send: Callable[[str | bytes], None]) -> None:
        self._send = send
        self._pending: dict[str, _Pending] = {}
        self._count = 0
        self._replay: _Replay | None = None
        self.is_live = False
        self.connection = 0
        """Which of the client's connections it is: ids of the server mean something else on the next one."""
        self.error: WebMQError | None = None
        """Why the client has ended."""
        self.leave: Callable[[Listener], Any]
        """Ends a listen; set by the client, which knows the others of its pattern."""
        self.ended: Callable[[Listener], None]
        """Is told of each listener that has ended, by whomever."""

    def next_id(self) -> str:
        self._count += 1
        return f"{self._count:x}"

    def ask(
        self,
        verb: str,
        *fields: str,
        on_reply: Callable[[Reply], None],
        payload: Payload | None = None,
        is_resent: bool = False,
        options: Options | None = None,
    ) -> str:
        """Sends a request; `on_reply` is called within the turn of its last message. Returns its id.

        With `is_resent` it waits for a connection, and is sent again on the next one if the answer did not come. Others
        are forgotten with their connection.
        """
        id = self.next_id()
        pending = _Pending(id, encode(verb, id, *fields, payload=payload, options=options), on_reply, is_resent)
        if self.error is not None:
            on_reply(Reply(id, {}, error=self.error))
            return id
        if not self.is_live and not is_resent:
            on_reply(Reply(id, {}, error=WebMQError("E_OFFLINE", "not connected", retryable=True)))
            return id
        self._pending[id] = pending
        if self.is_live:
            self._send(pending.data)
        return id

    async def call(
        self,
        verb: str,
        *fields: str,
        payload: Payload | None = None,
        is_resent: bool = True,
        options: Options | None = None,
    ) -> Reply:
        """Sends a request and waits for its answer.

        Raises:
            WebMQError: the server has refused it, or the client is closed.
        """
        done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def take(reply: Reply) -> None:
            if not done.done():
                done.set_result(reply)

        id = self.ask(verb, *fields, on_reply=take, payload=payload, is_resent=is_resent, options=options)
        try:
            reply = await done
        finally:
            self._pending.pop(id, None)
        if reply.error is not None:
            raise reply.error
        return reply

    def tell(self, verb: str, *fields: str, options: Options) -> asyncio.Future[None]:
        """Sends what is over with any answer, or without one. To await it is not needed."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ask(verb, *fields, on_reply=lambda _: None if done.done() else done.set_result(None), options=options)
        return done

    def later(self, listener: Listener, delay_s: float) -> None:
        """Lets a listener ask again."""
        asyncio.get_running_loop().call_later(delay_s, lambda: listener.again() if self.is_live else None)

    def opened(self) -> None:
        self.is_live = True
        self.connection += 1
        for pending in self._pending.values():
            self._send(pending.data)

    def lost(self) -> None:
        self.is_live = False
        self._replay = None
        for pending in [*self._pending.values()]:
            if not pending.is_resent:
                del self._pending[pending.id]
                error = WebMQError("E_DISCONNECTED", "the connection was lost before the answer", retryable=True)
                pending.on_reply(Reply(pending.id, {}, error=error))

    def failed(self, error: WebMQError) -> None:
        self.is_live = False
        self.error = error
        for pending in [*self._pending.values()]:
            pending.on_reply(Reply(pending.id, {}, error=error))
        self._pending.clear()

    def take(self, message: ServerMessage) -> bool:
        """Takes an answer, or a message of a replay. Returns whether it was one."""
        if self._replay is not None and message.verb == "message":
            self._take_replayed(self._replay, message)
            return True
        if message.verb == "message":
            # Of a replay that nobody waits for any more.
            return "replay" in message.options
        if message.verb not in ("ok", "error"):
            return False
        pending = self._pending.get(message.fields[0])
        if pending is None:
            return False
        if message.verb == "ok" and message.number("replayed") > 0:
            self._replay = _Replay(pending, message)
            if message.number("replayed") > MAX_REPLAY_MESSAGES:
                self._refuse(self._replay, f"a replay of more than {MAX_REPLAY_MESSAGES} messages")
            return True
        del self._pending[pending.id]
        if message.verb == "ok":
            pending.on_reply(Reply(pending.id, message.options, (), message.body))
        else:
            pending.on_reply(Reply(pending.id, {}, error=error_of(message.fields[1], message.body)))
        return True

    def _take_replayed(self, replay: _Replay, message: ServerMessage) -> None:
        replay.bytes += len(message.payload)
        replay.messages.append(message_of(message))
        if replay.bytes > MAX_REPLAY_BYTES:
            self._refuse(replay, f"a replay of more than {MAX_REPLAY_BYTES} bytes")
        elif len(replay.messages) == replay.ok.number("replayed"):
            self._answer(
                replay.pending, Reply(replay.pending.id, replay.ok.options, (*replay.messages,), replay.ok.body)
            )

    def _refuse(self, replay: _Replay, reason: str) -> None:
        """It is kept until it is whole: a server must not fill this program with it."""
        error = WebMQError("E_MESSAGE_INVALID", f"the server sends {reason} at once")
        self._answer(replay.pending, Reply(replay.pending.id, {}, error=error))

    def _answer(self, pending: _Pending, reply: Reply) -> None:
        self._replay = None
        # Whoever has given up has taken it away.
        if self._pending.pop(pending.id, None) is not None:
            pending.on_reply(reply)
