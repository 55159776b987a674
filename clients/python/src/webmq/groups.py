"""Queue groups, and requests to whoever responds: section 16 of the protocol."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from .errors import WebMQError, code_of, error_of, retry_s
from .wire import Options, Payload, ServerMessage, encode, payload_of, value_of

if TYPE_CHECKING:
    from .requests import Reply, Requests

log = logging.getLogger("webmq")

Handler = Callable[[Any, str], Any | Awaitable[Any]]
"""Gets the payload and the key. What it returns is the reply of a request."""

RETRY_S = 1.0
MAX_RUNNING = 256
"""Handlers of a membership that run at the same time. Further requests are refused, messages dropped and counted."""


class Membership:
    """A membership in a queue group. It continues after a reconnect, until it is closed."""

    def __init__(
        self,
        requests: Requests,
        send: Callable[[str | bytes], None],
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
        """Messages that came while as many handlers ran as may. They are lost, as those of a member that is gone."""
        self._requests = requests
        self._send = send
        self._handler = handler
        self._running: set[asyncio.Task[None]] = set()
        self.is_closed = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    def opened(self) -> None:
        if self.is_closed:
            return
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
                lambda: self.opened() if self._requests.is_live else None,
            )
        else:
            self.failed(reply.error)

    def failed(self, error: WebMQError) -> None:
        self.is_closed = True
        self.error = error
        if not self.ready.done():
            self.ready.set_exception(error)

    def take(self, task: ServerMessage) -> None:
        """A message, or a request, for this member."""
        request = task.options.get("request")
        if len(self._running) >= MAX_RUNNING:
            log.warning("%s: more than %d messages are being handled", self.pattern, MAX_RUNNING)
            if request is None:
                self.dropped_count += 1
            else:
                self._refuse(
                    request, WebMQError("E_RATE_LIMIT", "the responder is busy"), self._requests.connection_count
                )
            return
        running = asyncio.create_task(self._handle(task, request, self._requests.connection_count))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def _handle(self, task: ServerMessage, request: str | None, connection: int) -> None:
        try:
            payload = value_of(task.payload)
        except ValueError as error:
            # One line: whoever sends such a payload must not fill the log.
            log.warning("a task of %s is not JSON: %s", self.pattern, error)
            invalid = WebMQError("E_PAYLOAD_INVALID", "the payload is not JSON, or nested too deeply")
            self._refuse(request, invalid, connection)
            return
        try:
            result = self._handler(payload, task.fields[2])
            if inspect.isawaitable(result):
                result = await result
            if request is not None:
                self._reply(connection, encode("reply", request, payload=payload_of(result)))
        except WebMQError as error:
            if request is None:
                log.exception("the handler of %s failed", self.pattern)
            self._refuse(request, error, connection)
        except Exception:
            log.exception("the handler of %s failed", self.pattern)
            self._refuse(request, WebMQError("E_RESPONSE", "the responder has failed"), connection)

    def _refuse(self, request: str | None, error: WebMQError, connection: int) -> None:
        if request is None:
            return
        body = json.dumps({"code": error.code, "message": error.message[:500]})
        self._reply(connection, encode("reply", request, payload=body, options={"error": True}))

    def _reply(self, connection: int, reply: str | bytes) -> None:
        # On another connection its id may be that of another request.
        if self._requests.is_live and connection == self._requests.connection_count:
            self._send(reply)

    async def close(self) -> None:
        """Ends the membership. Handlers that run may finish."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._requests.is_live:
            options: Options = {"group": self.group, "respond": self.responds}
            try:
                await self._requests.call("unlisten", self.pattern, is_resent=False, options=options)
            except WebMQError as error:
                # The connection is lost, or the membership has ended: it is over either way.
                log.debug("%s: %s", self.pattern, error)


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

        within_ms = max(1, min(int(timeout_s * 1_000), 300_000))
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

    def lost(self) -> None:
        error = WebMQError("E_DISCONNECTED", "the connection was lost: the request may have been handled")
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(error)
