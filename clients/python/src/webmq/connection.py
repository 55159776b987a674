"""One connection to a server at a time, and the next one after it: sections 1, 5, 9 and 10 of the protocol."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Protocol

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.typing import Subprotocol

from .dialing import Connect, refusal_of
from .errors import WebMQError, count_of, error_of
from .paced import log_paced
from .topics import check_option
from .wire import ServerMessage, Unreadable, decode, encode

log = logging.getLogger("webmq")

Token = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that gives the present one; it is asked again when a token expires."""

FINAL_CODES = frozenset((1002, 1003, 1007, 1009, 1010))
HEARTBEAT_ANSWER_S = 10
OPEN_TIMEOUT_S = 10
TOKEN_TIMEOUT_S = 10
CLOSE_TIMEOUT_S = 2
LASTING_S = 5.0
"""A shorter connection counts as a failed attempt: what the client sends may have ended it."""
BACKOFF_MIN_S = 0.5
BACKOFF_MAX_S = 20.0
EARLY_ATTEMPTS = 24
"""Attempts in about the first minute: a service that is back is found within `BACKOFF_EARLY_S`."""
BACKOFF_EARLY_S = 5.0
MAX_RETRY_AFTER_MS = 600_000
MIN_HEARTBEAT_MS = 1_000
MAX_HEARTBEAT_MS = 3_600_000
RENEWAL_S = 1.0
"""A token is asked for at most once in this time, however often the server says that the present one expires."""
MAX_TOKEN_BYTES = 8_192
MAX_FRAME_BYTES = 64 * 1024 * 1024
LOGIN_ID = "login"

_TOKEN_CODES = {4009: "E_TOKEN_EXPIRED", 4501: "E_TOKEN_INVALID"}
_FINAL_ERRORS = {
    4500: "E_PROTOCOL_VIOLATION",
    4502: "E_TOKEN_REVOKED",
    4503: "E_DISCONNECTED_BY_OPERATOR",
    4504: "E_CONNECTION_REFUSED",
}


class Events(Protocol):
    """Who is told what happens on a connection. No call may block."""

    def opened(self) -> None: ...
    def received(self, message: ServerMessage) -> None: ...
    def unreadable(self, error: Unreadable) -> None: ...
    def lost(self) -> None: ...
    def failed(self, error: WebMQError) -> None: ...


def backoff_limit_s(attempt: int) -> float:
    """Largest wait before an attempt, counted from 0. Full jitter below it spreads the clients of a restarted server
    [P-10.1]."""
    most = BACKOFF_EARLY_S if attempt < EARLY_ATTEMPTS else BACKOFF_MAX_S
    return min(most, BACKOFF_MIN_S * 2.0 ** min(attempt, 10))


class Connection:
    """Connects, logs in, keeps the connection alive, and connects again until it is closed or refused for good."""

    def __init__(self, url: str, token: Token | None, events: Events) -> None:
        # `http://` is what back ends know of a server, and the same address.
        self._url = re.sub(r"^http", "ws", url)
        self._token = token
        self._events = events
        self._socket: ClientConnection | None = None
        self._outgoing: asyncio.Queue[tuple[str | bytes, Callable[[], None] | None]] = asyncio.Queue()
        self._heartbeat_s = 0.0
        self._received_at = self._sent_at = self._live_since = 0.0
        self._renewed_at = -RENEWAL_S
        self._needs_login = False
        self._is_welcome = False
        self._is_closing = False
        self._reason: WebMQError | None = None
        self._retry_after_s = 0.0
        self._told_reason = ""
        self._task: asyncio.Task[None] | None = None
        self._renewal: asyncio.Task[None] | None = None
        self.welcome: dict[str, Any] = {}
        self.token_limits: dict[str, Any] = {}
        """Those of the present token alone."""
        self.is_live = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"webmq {self._url}")

    def send(self, message: str | bytes, on_written: Callable[[], None] | None = None) -> None:
        """Sends on the present connection. Only while it is live."""
        self._outgoing.put_nowait((message, on_written))

    async def close(self) -> None:
        """Closes with 1000, after what was sent before."""
        self._is_closing = True
        if self._renewal is not None:
            self._renewal.cancel()
        socket = self._socket
        try:
            if socket is not None:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._flush(socket)
                    await socket.close(1000)
        except TimeoutError:
            log.debug("the server reads no more")
        finally:
            if socket is not None:
                socket.transport.abort()
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        attempt = 0
        token_tries = 0
        while not self._is_closing:
            self._retry_after_s = 0.0
            self._reason = None
            code, final = await self._attempt()
            was_live, self.is_live = self.is_live, False
            # Before the client ends: what has ended is not lost any more.
            if was_live and not self._is_closing:
                self._events.lost()
            if final is not None:
                self._events.failed(final)
                return
            if was_live and time.monotonic() - self._live_since >= LASTING_S:
                attempt = 0
            token_tries = 0 if was_live else token_tries
            if code in _TOKEN_CODES and callable(self._token) and token_tries == 0:
                token_tries += 1
            elif code in _TOKEN_CODES or code in FINAL_CODES or 4500 <= code < 5000:
                name = _TOKEN_CODES.get(code) or _FINAL_ERRORS.get(code, "E_PROTOCOL_VIOLATION")
                self._events.failed(self._reason or WebMQError(name, f"the server closed with {code}"))
                return
            await asyncio.sleep(self._retry_after_s + random.random() * backoff_limit_s(attempt))
            attempt += 1

    async def _attempt(self) -> tuple[int, WebMQError | None]:
        """One connection. Returns its close code, and why no further attempt can help."""
        try:
            return await self._session(), None
        except WebMQError as error:
            if not error.retryable:
                return 1006, error
            log.warning("%s", error)
            return 1006, None
        except Exception as error:
            log.exception("the client has failed")
            return 1006, WebMQError("E_INTERNAL", f"the client has failed: {error!r}")
        finally:
            if self._renewal is not None:
                self._renewal.cancel()
                self._renewal = None

    async def _session(self) -> int:
        """One connection, until its end. Returns its close code.

        Raises:
            WebMQError: there is no connection; unless it is retryable, no further attempt can help.
        """
        self._outgoing = asyncio.Queue()
        self._is_welcome = False
        try:
            async with Connect(
                self._url,
                subprotocols=[Subprotocol("webmq.v1")],
                open_timeout=OPEN_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                ping_interval=None,
                max_size=MAX_FRAME_BYTES,
            ) as socket:
                return await self._talk(socket)
        except InvalidStatus as error:
            refusal = refusal_of(error.response.body)
            if refusal is not None:
                raise refusal from error
            # A proxy, in front of a server that starts, or is being replaced.
            self._tell(f"it answered with {error.response.status_code}.")
        except InvalidURI as error:
            raise WebMQError("E_OPTION_INVALID", f"url: {error}") from error
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else 1006
        except (OSError, WebSocketException, TimeoutError, EOFError) as error:
            log.debug("%s: %r", self._url, error)
            tls = ", with TLS (wss://)" if self._url.startswith("wss:") else ""
            self._tell(f"{type(error).__name__}; is the address right, and does the server run{tls}?")
        return 1006

    def _tell(self, reason: str) -> None:
        """Warns that there is no connection: of each outage once, and again when the reason is another one."""
        if reason != self._told_reason:
            self._told_reason = reason
            log.warning("no connection to %s: %s The client tries again", self._url, reason)

    async def _talk(self, socket: ClientConnection) -> int:
        self._socket = socket
        self.token_limits = {}
        self._received_at = self._sent_at = time.monotonic()
        token = await self._present_token()
        self._needs_login = token is not None
        if token is not None:
            await socket.send(encode("auth", LOGIN_ID, payload=token))
        helpers = [asyncio.create_task(help(socket)) for help in (self._write, self._beat, self._watch_opening)]
        try:
            async for data in socket:
                self._received_at = time.monotonic()
                try:
                    message = decode(data)
                except Unreadable as error:
                    if error.code != "E_VERB_UNKNOWN":
                        log_paced(logging.WARNING, "unreadable message of the server: %s", error)
                        self._events.unreadable(error)
                    continue
                self._take(message)
            return 1000
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else 1006
        finally:
            self._socket = None
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    def _take(self, message: ServerMessage) -> None:
        verb = message.verb
        if verb == "welcome":
            self.welcome = message.body
            # 0, and what is no time, is none [P-9.2].
            interval_ms = count_of(message.body.get("heartbeatMs"), MAX_HEARTBEAT_MS) or 0
            self._heartbeat_s = max(interval_ms, MIN_HEARTBEAT_MS) / 1_000 if interval_ms > 0 else 0.0
            if message.body["auth"] == "required" and not self._needs_login:
                raise WebMQError("E_UNAUTHENTICATED", "the server asks for a token: pass `token`")
            self._is_welcome = True
            self._open_if_ready()
        elif verb in ("ok", "error") and message.fields[0] == LOGIN_ID:
            self._take_login(message)
        elif verb == "expiring":
            if callable(self._token) and (self._renewal is None or self._renewal.done()):
                end_at = time.monotonic() + int(message.fields[0]) / 1_000
                self._renewal = asyncio.create_task(self._renew(end_at))
        elif verb == "bye":
            after = message.fields[1] if len(message.fields) > 1 else "0"
            self._retry_after_s = min(int(after), MAX_RETRY_AFTER_MS) / 1_000
        else:
            if verb == "error" and message.fields[0] == "-":
                self._reason = error_of(message.fields[1], message.body)
            self._events.received(message)

    def _take_login(self, message: ServerMessage) -> None:
        if message.verb == "ok":
            said = message.body.get("limits") if isinstance(message.body, dict) else None
            self.token_limits = said if isinstance(said, dict) else {}
            self._needs_login = False
            self._open_if_ready()
        else:
            self._reason = error_of(message.fields[1], message.body)
            if self.is_live:
                log.warning("the new token was refused: %s", self._reason)

    def _open_if_ready(self) -> None:
        if self._is_welcome and not self._needs_login and not self.is_live:
            self.is_live = True
            self._told_reason = ""
            self._live_since = time.monotonic()
            self._events.opened()

    async def _present_token(self) -> str | None:
        try:
            token = self._token() if callable(self._token) else self._token
            async with asyncio.timeout(TOKEN_TIMEOUT_S):
                given: str | None = await token if inspect.isawaitable(token) else token
            return check_option("token", given, MAX_TOKEN_BYTES)
        except Exception as error:
            raise WebMQError(
                "E_TOKEN_UNAVAILABLE", f"there is no token: {error!r}", retryable=callable(self._token)
            ) from error

    async def _renew(self, end_at: float) -> None:
        """There is one at a time. It tries until the present token expires."""
        for attempt in count():
            await asyncio.sleep(self._renewed_at + RENEWAL_S - time.monotonic())
            self._renewed_at = time.monotonic()
            try:
                token = await self._present_token()
            except WebMQError as error:
                log.warning("%s", error)
                if time.monotonic() >= end_at:
                    return
                await asyncio.sleep(random.random() * backoff_limit_s(attempt))
                continue
            if token is not None and self.is_live:
                self.send(encode("auth", LOGIN_ID, payload=token))
            return

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            message, on_written = await self._outgoing.get()
            await socket.send(message)
            self._sent_at = time.monotonic()
            if on_written is not None:
                on_written()

    async def _flush(self, socket: ClientConnection) -> None:
        try:
            while not self._outgoing.empty():
                await socket.send(self._outgoing.get_nowait()[0])
        except ConnectionClosed:
            log.debug("the connection was lost while it was being closed")

    async def _watch_opening(self, socket: ClientConnection) -> None:
        """A server that greets nobody is as one that does not answer."""
        await asyncio.sleep(OPEN_TIMEOUT_S)
        if not self.is_live:
            socket.transport.abort()

    async def _beat(self, socket: ClientConnection) -> None:
        """[P-9.2]"""
        while True:
            await asyncio.sleep(max(self._heartbeat_s / 4, 1))
            now = time.monotonic()
            quiet_s = now - min(self._received_at, self._sent_at)
            if self._heartbeat_s == 0 or quiet_s < self._heartbeat_s or not self.is_live:
                continue
            # It does not wait, and nothing is closed in order: a peer that reads no more would stop both for ever.
            self.send("ping")
            self._sent_at = now
            await asyncio.sleep(HEARTBEAT_ANSWER_S)
            if self._received_at < now:
                socket.transport.abort()
                return
