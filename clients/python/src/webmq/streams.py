"""Streams: messages that grow by appends until they end: section 18 of the protocol."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .characters import half_of, joined_pairs
from .errors import WebMQError, code_of, error_of, retry_s
from .listening import Message
from .wire import Payload, is_number, payload_of

if TYPE_CHECKING:
    from types import TracebackType

    from .client import Client
    from .groups import Membership
    from .requests import Reply

log = logging.getLogger("webmq")

StreamStatus = Literal["none", "active", "end", "fail", "stop", "lost"]

DEFAULT_LEASE_MS = 10_000
MIN_LEASE_MS = 100
DEFAULT_MAX_PAYLOAD_BYTES = 262_144
MAX_WAITING_BYTES = 4 * 1024 * 1024
RETRY_S = 0.5
AGAIN_S = 0.1
"""A reader that misses something reads again after this time, so that a server cannot keep it busy."""
STOP_S = 10
STOP_ATTEMPT_S = 2.5
KINDS = frozenset(("start", "append", "end", "fail", "stop", "lost", "close", "delete"))
"""A beat says nothing of the content, and others are of a later version."""
FAILED = '{"message":"the writer has failed"}'

Bytes = bytes | bytearray | memoryview


@dataclass(slots=True, eq=False)
class _Piece:
    kind: str
    content: str | bytes
    done: asyncio.Future[None] = field(repr=False)


class StreamWriter:
    """Writes a stream. One message is on its way at a time; what is appended meanwhile goes with the next one."""

    def __init__(self, client: Client, key: str, id: str) -> None:
        self.key = key
        self.id = id
        self.stopped = asyncio.Event()
        """Set once somebody has stopped the stream, or it can go on no longer."""
        self._client = client
        self._pieces: deque[_Piece] = deque()
        self._bytes = 0
        self._half = ""
        """Of a character, at the end of what was appended. It goes with the other half."""
        self._next = 0
        self._type: type | None = None
        self._is_ending = False
        self._is_stopped = False
        self._error: WebMQError | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._member: Membership | None = None
        self._on_message: Callable[[Any], Any] | None = None

    async def start(self, meta: Any) -> None:
        content = "" if meta is None else str(payload_of(meta))
        self._task = asyncio.create_task(self._run(), name=f"stream {self.key}")
        try:
            await self._put("start", content)
        except asyncio.CancelledError:
            # Nobody has this writer: no beat may keep its stream.
            self._task.cancel()
            raise
        try:
            self._member = await self._client.respond(self.key, self._asked, group="stream")
        except WebMQError as error:
            # It can be written all the same, and not be stopped.
            log.warning("the stream %s cannot be stopped by others: %s", self.key, error)
        except asyncio.CancelledError:
            self._is_ending = True
            self._put("fail", FAILED)
            raise

    async def append(self, content: str | Bytes) -> None:
        """Adds to the stream, which has either text or bytes. Resolves when the log has it; to await it is not needed.

        Half a surrogate pair at the end of a text waits for the next append, or the end.

        Raises:
            WebMQError: `E_STREAM_ENDED`, `E_STREAM_LIMIT`, `E_QUEUE_FULL`, `E_CLOSED` and others.
        """
        await self.put(content)

    def put(self, content: str | Bytes) -> asyncio.Future[None]:
        """As `append`, without waiting."""
        if not isinstance(content, (str, bytes, bytearray, memoryview)):
            raise WebMQError("E_PAYLOAD_INVALID", f"a stream has text or bytes, and no {type(content).__name__}")
        content = content if isinstance(content, str) else bytes(content)
        self._check_open()
        if self._type not in (None, type(content)):
            raise WebMQError("E_PAYLOAD_INVALID", "a stream has either text or bytes")
        if self._bytes + len(content) > MAX_WAITING_BYTES:
            raise WebMQError("E_QUEUE_FULL", f"stream {self.key}", retryable=True)
        if content:
            self._type = str if isinstance(content, str) else bytes
        if isinstance(content, str):
            content = joined_pairs(self._half + content)
            self._half = half_of(content)
            content = content.removesuffix(self._half)
        if not content:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        return self._put("append", content)

    async def end(self, result: Any = None) -> None:
        """Ends the stream; readers get the result."""
        await self._finish("end", "" if result is None else str(payload_of(result)))

    async def fail(self, error: BaseException | None = None) -> None:
        """Ends it as failed. Readers get the code and the text of a `WebMQError`, and of other errors nothing."""
        told = error if isinstance(error, WebMQError) else None
        body = json.dumps({"message": told.message[:512], "code": told.code}) if told else FAILED
        await self._finish("fail", body)

    def on_message(self, handler: Callable[[Any], Any]) -> None:
        """Answers what readers send. May be a coroutine function."""
        self._on_message = handler

    async def close(self) -> None:
        """Fails the stream, unless it has ended."""
        if not self._is_ending and self._error is None:
            await self.fail()

    async def __aenter__(self) -> StreamWriter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_ending and self._error is None:
            await self.fail(error)

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._is_ending:
            raise WebMQError("E_STREAM_ENDED", f"stream {self.key}")

    async def _finish(self, kind: str, payload: str) -> None:
        self._check_open()
        self._is_ending = True
        if self._half:
            self._put("append", self._half)
        await (self._put("stop", "") if self._is_stopped else self._put(kind, payload))

    def _put(self, kind: str, content: str | bytes) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whoever does not await it learns by the next call.
        done.add_done_callback(lambda put: put.cancelled() or put.exception())
        if self._error is not None:
            done.set_exception(self._error)
            return done
        self._bytes += len(content)
        self._pieces.append(_Piece(kind, content, done))
        self._wake.set()
        return done

    async def _run(self) -> None:
        pieces: list[_Piece] = []
        try:
            while True:
                self._wake.clear()
                if not self._pieces:
                    # Of the present server: none was known when the stream was opened without a connection.
                    lease_s = self._client.limit("streamLeaseMs", DEFAULT_LEASE_MS, MIN_LEASE_MS) / 1_000
                    try:
                        await asyncio.wait_for(self._wake.wait(), lease_s / 3)
                    except TimeoutError:
                        await self._write("beat", self._next - 1, "")
                    continue
                pieces, payload = self._take()
                await self._write(pieces[0].kind, self._next, payload)
                self._next += 1
                for piece in pieces:
                    if not piece.done.done():
                        piece.done.set_result(None)
                if pieces[0].kind not in ("start", "append"):
                    break
        except WebMQError as error:
            self._error = error
            for piece in (*pieces, *self._pieces):
                if not piece.done.done():
                    piece.done.set_exception(error)
            self._pieces.clear()
        finally:
            self._is_ending = self._is_ending or self._error is not None
            self.stopped.set()
            if self._member is not None and not self._member.is_closed:
                self._member.leave()

    def _take(self) -> tuple[list[_Piece], Payload]:
        """The next piece, with the appends behind it that fit into the same message."""
        first = self._pieces.popleft()
        pieces = [first]
        if first.kind != "append":
            self._bytes -= len(first.content)
            return pieces, first.content
        # JSON of a character has at most 12 bytes, as in \\ud83d\\ude00.
        limit = self._client.limit("maxPayloadBytes", DEFAULT_MAX_PAYLOAD_BYTES, 1)
        limit = limit if isinstance(first.content, bytes) else max((limit - 2) // 12, 1)
        length = len(first.content)
        if length > limit:
            rest = _Piece("append", first.content[limit:], first.done)
            self._pieces.appendleft(rest)
            self._bytes -= limit
            cut = _Piece("append", first.content[:limit], asyncio.get_running_loop().create_future())
            return [cut], _content([cut])
        while self._pieces and self._pieces[0].kind == "append" and length + len(self._pieces[0].content) <= limit:
            piece = self._pieces.popleft()
            length += len(piece.content)
            pieces.append(piece)
        self._bytes -= length
        return pieces, _content(pieces)

    async def _write(self, kind: str, sequence: int, payload: Payload) -> None:
        while True:
            try:
                await self._client._requests.call(
                    "stream",
                    self.key,
                    payload=payload,
                    options={"of": self.id, "seq": sequence, "kind": kind},
                )
                return
            except WebMQError as error:
                if not error.retryable or error.code == "E_STREAM_BUSY":
                    raise
                await asyncio.sleep(retry_s(error, RETRY_S))

    async def _asked(self, body: Any, key: str) -> Any:
        asked = body if isinstance(body, dict) else {}
        if asked.get("type") == "stop":
            if asked.get("stream") in (None, self.id):
                self._is_stopped = True
                self.stopped.set()
            return None
        if self._on_message is None:
            raise WebMQError("E_NO_RESPONDERS", "this writer takes no messages")
        answer = self._on_message(asked.get("data"))
        return await answer if asyncio.iscoroutine(answer) else answer


def _content(pieces: list[_Piece]) -> Payload:
    if isinstance(pieces[0].content, bytes):
        return b"".join(piece.content for piece in pieces if isinstance(piece.content, bytes))
    return payload_of("".join(piece.content for piece in pieces if isinstance(piece.content, str)))


@dataclass(frozen=True, slots=True)
class StreamPart:
    """What came: text, or bytes. `is_whole`: it replaces everything before."""

    content: str | bytes
    is_whole: bool


class StreamReader:
    """Reads the last stream of a key. Iterate for its parts, until it ends."""

    def __init__(self, client: Client, key: str) -> None:
        self.key = key
        self.id: str | None = None
        self.status: StreamStatus = "none"
        self.meta: Any = None
        self.result: Any = None
        self.error: WebMQError | None = None
        self.is_cut = False
        """The log no longer has the beginning."""
        self._client = client
        self._sequence = -1
        self._half = ""
        """Of a character, which came at the end of a part. It is given with the other half, or at the end."""

    def __aiter__(self) -> AsyncIterator[StreamPart]:
        return self._parts()

    async def content(self) -> str | bytes:
        """The whole, once it has ended.

        Raises:
            WebMQError: the stream failed, or was lost.
        """
        parts: list[str | bytes] = []
        async for part in self:
            if part.is_whole:
                parts.clear()
            parts.append(part.content)
        if self.error is not None:
            raise self.error
        if self.status in ("none", "active"):
            raise WebMQError("E_CLOSED", "the client was closed before the stream had ended")
        return _joined(parts)

    async def stop(self, reason: str | None = None) -> None:
        """Asks the writer to end. Returns when the writer knows, or the stream has ended.

        Raises:
            WebMQError: `E_NO_RESPONDERS` if nobody writes.
        """
        body = {"type": "stop"}
        if self.id is not None:
            body["stream"] = self.id
        if reason is not None:
            body["reason"] = reason
        end_at = time.monotonic() + STOP_S
        while True:
            try:
                await self._client.request(self.key, body, timeout_s=STOP_ATTEMPT_S)
                return
            except WebMQError as error:
                if self.status not in ("none", "active"):
                    return
                may_pass = error.code in ("E_NO_RESPONDERS", "E_RESPONSE", "E_DISCONNECTED", "E_TIMEOUT", "E_OFFLINE")
                if not may_pass or time.monotonic() > end_at:
                    raise
                await asyncio.sleep(RETRY_S / 2)

    async def send(self, data: Any) -> Any:
        """Sends a message to the writer, and returns its answer."""
        return await self._client.request(self.key, {"type": "message", "data": data})

    async def _parts(self) -> AsyncIterator[StreamPart]:
        has_more = True
        while has_more:
            reply = await self._read()
            whole = self._load(reply)
            if whole is not None:
                yield whole
            if self.status not in ("none", "active"):
                return
            has_more = False
            async with self._client.listen(self.key, since=reply.options.get("position")) as listener:
                while True:
                    try:
                        # The node may not know that it should watch the writer: to read again tells it.
                        async with asyncio.timeout(self._patience_s if self.status == "active" else None):
                            item = await anext(listener)
                    except TimeoutError:
                        has_more = True
                        break
                    except StopAsyncIteration:
                        return
                    if not isinstance(item, Message):
                        has_more = True
                        break
                    part = self._take(item)
                    if part is _AGAIN:
                        has_more = True
                        break
                    if part is not None:
                        yield part
                    if self.status not in ("none", "active"):
                        if self._half:
                            yield StreamPart(self._half, False)
                        return
            await asyncio.sleep(AGAIN_S)

    @property
    def _patience_s(self) -> float:
        return 2 * self._client.limit("streamLeaseMs", DEFAULT_LEASE_MS, MIN_LEASE_MS) / 1_000

    async def _read(self) -> Reply:
        while True:
            try:
                return await self._client._requests.call("read", self.key)
            except WebMQError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(retry_s(error, RETRY_S))

    def _load(self, reply: Reply) -> StreamPart | None:
        summary = reply.result if isinstance(reply.result, dict) else {}
        id = summary.get("stream")
        if not isinstance(id, str):
            if self.status == "active":
                self._end("lost", None)
            return None
        self.id = id
        sequence = summary.get("sequence")
        self._sequence = sequence if isinstance(sequence, int) else 0
        self.meta = summary.get("meta")
        self.is_cut = summary.get("isCut") is True
        content = _joined([message.payload for message in reply.messages if isinstance(message, Message)])
        self.status = "active"
        self._half = ""
        status = summary.get("status", "active")
        if status != "active":
            self._end(str(status), summary.get("result"))
        elif isinstance(content, str):
            content = self._whole(content)
        return StreamPart(content, True)

    def _whole(self, text: str) -> str:
        text = joined_pairs(self._half + text)
        self._half = half_of(text)
        return text.removesuffix(self._half)

    def _part(self, payload: Any) -> StreamPart | None:
        content = self._whole(payload) if isinstance(payload, str) else payload
        return StreamPart(content, False) if content and isinstance(content, (str, bytes)) else None

    def _take(self, message: Message) -> StreamPart | None:
        # A mark of servers may follow [P-18.8].
        id, number, kind, *_ = (*(message.stream or "").split(":", 3), "", "")
        if not is_number(number) or kind not in KINDS:
            return None
        sequence = int(number)
        if id != self.id:
            if kind != "start" or self.status == "active":
                return None
            self.id, self._sequence, self.meta, self.status = id, sequence, message.payload, "active"
            self._half = ""
            return StreamPart("", True)
        if sequence <= self._sequence:
            return None
        if sequence > self._sequence + 1:
            return _AGAIN
        self._sequence = sequence
        if kind == "close":
            # The last append, and the end, of a stream with many writers [P-18.8].
            self._end("end", None)
            return self._part(message.payload)
        if kind != "append":
            self._end(kind, message.payload)
            return None
        return self._part(message.payload)

    def _end(self, status: str, result: Any) -> None:
        known: dict[str, StreamStatus] = {"end": "end", "fail": "fail", "stop": "stop", "lost": "lost"}
        self.status = known.get(status, "lost")
        if self.status == "fail":
            self.error = error_of(code_of(result, "E_RESPONSE"), result)
        elif self.status == "lost":
            self.error = WebMQError("E_STREAM_ENDED", "the stream has lost its writer")
        else:
            self.result = result


_AGAIN = StreamPart("", True)
"""Something is missing: the reader reads again."""


def _joined(parts: list[Any]) -> str | bytes:
    if any(isinstance(part, bytes) for part in parts):
        return b"".join(part for part in parts if isinstance(part, bytes))
    return joined_pairs("".join(part for part in parts if isinstance(part, str)))
