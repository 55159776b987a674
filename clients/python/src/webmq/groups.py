"""Queue groups, and requests to whoever responds: section 16 of the protocol."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from .errors import WebMQError, code_of, error_of, retry_s
from .paced import log_paced
from .wire import Payload, ServerMessage, encode, payload_of, value_of

if TYPE_CHECKING:
    from .requests import Reply, Requests

Handler = Callable[[Any, str], Any | Awaitable[Any]]
"""Gets the payload and the key. What it returns is the reply of a request."""

RETRY_S = 1.0
MAX_RUNNING = 256
"""Handlers of a membership that run at the same time, with replies that a stalled connection has not taken. Further
requests are refused, messages wait."""
MAX_WAITING_BYTES = 16 * 1024 * 1024
"""Messages that wait for a handler. Those beyond are dropped, and counted."""
OVERHEAD_BYTES = 256
"""What a message that waits counts besides its payload."""
MAX_UNWRITTEN = 1_024
"""Replies and refusals that wait on a stalled connection. Further requests are left to their timeouts."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A request that waits for its reply, on the connection that brought it."""

    id: str
    connection: int


class Membership:
    """A membership in a queue group. It continues after a reconnect, until it is closed."""

    def __init__(
        self,
        requests: Requests,
        send: Callable[[str | bytes, Callable[[], None]], None],
        pattern: str,
        group: str,
        handler: Handler,
        responds: bool,
    ) -> None:
        self.pattern = pattern
        self.group = group
        self.responds = responds
        self.error: WebMQError | None = None
        self.dropped_count = 0
        """Messages that came while others had no handler yet, and took all the room. They are lost."""
        self._requests = requests
        self._send = send
        self._handler = handler
        self._running: set[asyncio.Task[None]] = set()
        self._unwritten = 0
        self._waiting: deque[ServerMessage] = deque()
        self._waiting_bytes = 0
        self.is_closed = False
        self._end = asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    def opened(self) -> None:
        self._unwritten = 0
        self._requests.ask(
            "listen",
            self.pattern,
            on_reply=self._joined,
            options={"group": self.group, "respond": self.responds},
        )

    def _joined(self, reply: Reply) -> None:
        if self.is_closed or (reply.error is not None and reply.error.code == "E_DISCONNECTED"):
            return
        if reply.error is None:
            if not self.ready.done():
                self.ready.set_result(None)
        elif reply.error.retryable:
            asyncio.get_running_loop().call_later(
                retry_s(reply.error, RETRY_S),
                lambda: self.opened() if self._requests.is_live and not self.is_closed else None,
            )
        else:
            self.failed(reply.error)

    async def ended(self) -> None:
        """Waits for the end of the membership.

        Raises:
            WebMQError: it was not `close`: the server has ended it, such as `E_FORBIDDEN`, or the client has ended.
        """
        await self._end.wait()
        if self.error is not None:
            raise self.error

    def failed(self, error: WebMQError) -> None:
        self.is_closed = True
        self.error = error
        self._end.set()
        if not self.ready.done():
            self.ready.set_exception(error)

    def take(self, task: ServerMessage) -> None:
        """A message, or a request, for this member."""
        id = task.options.get("request")
        question = None if id is None else _Question(id, self._requests.connection)
        if len(self._running) + self._unwritten < MAX_RUNNING:
            self._start(task, question)
        elif question is not None:
            log_paced(logging.WARNING, "%s: more than %d requests are being handled", self.pattern, MAX_RUNNING)
            if self._unwritten < MAX_UNWRITTEN:
                self._refuse(question, WebMQError("E_RATE_LIMIT", "the responder is busy"))
        elif self._waiting_bytes + _cost_bytes(task) <= MAX_WAITING_BYTES:
            # They may come faster than handlers begin.
            self._waiting.append(task)
            self._waiting_bytes += _cost_bytes(task)
        else:
            log_paced(logging.WARNING, "%s: more messages wait than may; they are dropped", self.pattern)
            self.dropped_count += 1

    def _start(self, task: ServerMessage, question: _Question | None) -> None:
        running = asyncio.create_task(self._handle(task, question))
        self._running.add(running)
        running.add_done_callback(self._finished)

    def _finished(self, running: asyncio.Task[None]) -> None:
        self._running.discard(running)
        if self._waiting and self._requests.error is None:
            task = self._waiting.popleft()
            self._waiting_bytes -= _cost_bytes(task)
            self._start(task, None)

    async def _handle(self, task: ServerMessage, question: _Question | None) -> None:
        try:
            payload = value_of(task.payload)
        except ValueError as error:
            log_paced(logging.WARNING, "a task of %s is not JSON: %s", self.pattern, error)
            self._refuse(question, WebMQError("E_PAYLOAD_INVALID", "the payload is not JSON, or nested too deeply"))
            return
        try:
            result = self._handler(payload, task.fields[2])
            if inspect.isawaitable(result):
                result = await result
            if question is not None:
                self._reply(question, payload_of(result), False)
        except WebMQError as error:
            if question is None:
                log_paced(logging.ERROR, "the handler of %s failed", self.pattern, exc_info=True)
            self._refuse(question, error)
        except Exception:
            log_paced(logging.ERROR, "the handler of %s failed", self.pattern, exc_info=True)
            self._refuse(question, WebMQError("E_RESPONSE", "the responder has failed"))

    def _refuse(self, question: _Question | None, error: WebMQError) -> None:
        if question is not None:
            self._reply(question, json.dumps({"code": error.code, "message": error.message[:500]}), True)

    def _reply(self, question: _Question, payload: Payload, is_error: bool) -> None:
        # On another connection the id may be that of another request.
        if self._requests.is_live and self._requests.connection == question.connection:
            self._unwritten += 1
            message = encode("reply", question.id, payload=payload, options={"error": is_error})
            self._send(message, self._written)

    def _written(self) -> None:
        self._unwritten -= 1

    async def close(self) -> None:
        """Ends the membership. Handlers that run may finish."""
        if not self.is_closed:
            await self.leave()

    def leave(self) -> asyncio.Future[None]:
        """As `close`, without waiting. What comes before the answer was handed to it, and is handled."""
        self.is_closed = True
        self._end.set()
        return self._requests.tell("unlisten", self.pattern, options={"group": self.group, "respond": self.responds})


def _cost_bytes(task: ServerMessage) -> int:
    return len(task.payload) + OVERHEAD_BYTES


class Asked:
    """Requests of this client that wait for their reply."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def ask(self, key: str, payload: Payload, timeout_s: float) -> Any:
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda done: done.cancelled() or done.exception())

        def answered(answer: Reply) -> None:
            if answer.error is not None and not reply.done():
                reply.set_exception(answer.error)

        within_ms = max(1, min(ceil(timeout_s * 1_000), 300_000))
        id = self._requests.ask("request", key, on_reply=answered, payload=payload, options={"within": within_ms})
        self._waiting[id] = reply
        try:
            # The server answers at the end of its time; this is for a connection that hangs.
            return await asyncio.wait_for(reply, timeout_s + 2)
        except TimeoutError as error:
            raise WebMQError("E_TIMEOUT", "no reply in time", retryable=True) from error
        finally:
            self._waiting.pop(id, None)

    def take(self, message: ServerMessage) -> None:
        reply = self._waiting.get(message.fields[0])
        if reply is None or reply.done():
            return
        try:
            value = value_of(message.payload)
        except ValueError:
            reply.set_exception(WebMQError("E_RESPONSE", "the reply is not JSON"))
            return
        if "error" in message.options:
            reply.set_exception(error_of(code_of(value, "E_RESPONSE"), value))
        else:
            reply.set_result(value)

    def failed(self, error: WebMQError) -> None:
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(error)
