"""Drives the client for `webmq-conformance client`: a command per line of its input, an answer per line of output."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import webmq

Command = dict[str, Any]
CAN = ["checker", "history", "presence", "refusals", "requests", "slow readers", "state", "streams"]


class Adapter:
    def __init__(self) -> None:
        self.clients: dict[str, webmq.Client] = {}
        self.telling: asyncio.Task[None] | None = None
        self.status: dict[str, asyncio.Condition] = {}
        self.listeners: dict[str, webmq.Listener] = {}
        self.writers: dict[str, webmq.StreamWriter] = {}
        self.watches: dict[str, webmq.PresenceWatch] = {}
        self.introduced: set[str] = set()
        self.readers: dict[str, tuple[webmq.StreamReader, AsyncIterator[webmq.StreamPart]]] = {}

    async def answer(self, command: Command) -> Command:
        name = command["do"]
        method: Callable[[Command], Awaitable[Command | None]] = getattr(self, f"do_{name}")
        try:
            return {"id": command["id"], "ok": await method(command) or {}}
        except webmq.WebMQError as error:
            told = {"code": error.code, "message": error.message, "retryable": error.retryable}
            return {"id": command["id"], "error": told}
        except Exception as error:
            return {"id": command["id"], "error": {"code": type(error).__name__, "message": repr(error)}}

    def client(self, command: Command) -> webmq.Client:
        return self.clients[command["client"]]

    async def do_connect(self, command: Command) -> None:
        name = command["client"]
        tokens: list[str] = list(command.get("tokens") or [])
        condition = self.status[name] = asyncio.Condition()

        async def token() -> str:
            given = tokens.pop(0) if len(tokens) > 1 else tokens[0]
            if given == "throw":
                raise RuntimeError("no token now")
            return given

        async def tell() -> None:
            async with condition:
                condition.notify_all()

        def changed(status: webmq.Status) -> None:
            self.telling = asyncio.create_task(tell())

        client = webmq.Client(
            command["url"],
            token=token if tokens else None,
            on_status=changed,
        )
        self.clients[name] = client
        await client.connected()

    async def do_waitStatus(self, command: Command) -> None:
        client, condition = self.client(command), self.status[command["client"]]
        async with condition:
            await condition.wait_for(lambda: client.status == command["status"])

    async def do_publish(self, command: Command) -> Command:
        payload = base64.b64decode(command["base64"]) if "base64" in command else command["payload"]
        accepted = await self.client(command).publish(
            command["key"],
            payload,
            message_id=command.get("messageId"),
            no_echo=command.get("noEcho", False),
            ephemeral=command.get("ephemeral", False),
        )
        return {"position": accepted.position, "duplicate": accepted.is_duplicate}

    async def do_publishMany(self, command: Command) -> None:
        client = self.client(command)
        await asyncio.gather(*(client.publish(command["key"], n) for n in range(command["count"])))

    async def do_publishSize(self, command: Command) -> None:
        await self.client(command).publish(command["key"], "x" * command["characters"])

    async def do_listen(self, command: Command) -> Command:
        listener = self.listeners[command["listener"]] = await self.client(command).listen(
            command["pattern"],
            since=command.get("since"),
            last=command.get("last"),
            rewind_ms=command.get("rewindMs"),
            max_waiting=command.get("maxWaiting", 1_000),
        )
        return {"position": listener.position}

    async def do_unlisten(self, command: Command) -> None:
        await self.listeners[command["listener"]].close()

    async def do_enter(self, command: Command) -> None:
        await self.client(command).presence(command["key"]).enter(command.get("data"))

    async def do_leave(self, command: Command) -> None:
        await self.client(command).presence(command["key"]).leave()

    async def do_present(self, command: Command) -> Command:
        return {"values": Counter(member.data for member in await self.client(command).presence(command["key"]).get())}

    async def do_watch(self, command: Command) -> None:
        self.watches[command["listener"]] = await self.client(command).presence(command["key"]).watch()

    async def watched(self, watch: webmq.PresenceWatch, is_first: bool) -> Command:
        if not is_first:
            await anext(watch)
        return {"values": Counter(member.data for member in watch.members.values())}

    async def do_next(self, command: Command) -> Command:
        watch = self.watches.get(command["listener"])
        if watch is not None:
            is_first = command["listener"] not in self.introduced
            self.introduced.add(command["listener"])
            return await self.watched(watch, is_first)
        listener = self.listeners[command["listener"]]
        try:
            item: Any = await anext(listener)
        except StopAsyncIteration:
            return {"ended": True}
        if isinstance(item, webmq.Change):
            assert isinstance(listener, webmq.State)
            return {"values": dict(listener.values)}
        if isinstance(item, webmq.Gap):
            return {"gap": item.reason}
        is_bytes = isinstance(item.payload, bytes)
        return {
            "key": item.key,
            "position": item.position,
            "isReplay": item.is_replay,
            "base64" if is_bytes else "payload": base64.b64encode(item.payload).decode() if is_bytes else item.payload,
        }

    async def do_take(self, command: Command) -> Command:
        items = [await self.do_next(command)]
        listener = self.listeners[command["listener"]]
        while listener.waiting > 0:
            items.append(await self.do_next(command))
        return {"items": items}

    async def do_nextMany(self, command: Command) -> Command:
        numbers: list[int] = []
        gaps = 0
        while len(numbers) < command["count"]:
            item = await anext(self.listeners[command["listener"]])
            if isinstance(item, webmq.Gap):
                gaps += 1
            else:
                numbers.append(item.payload["n"])
        return {"gaps": gaps, "first": numbers[0], "last": numbers[-1], "ascending": numbers == sorted(set(numbers))}

    async def do_isGap(self, command: Command) -> None:
        assert isinstance(command["item"], str), "no gap was told"

    async def do_history(self, command: Command) -> Command:
        history = await self.client(command).history(
            command["key"], last=command.get("last"), before=command.get("before")
        )
        return {
            "payloads": [message.payload for message in history.messages],
            "positions": [message.position for message in history.messages],
            "firstPosition": history.messages[0].position if history.messages else None,
            "position": history.position,
            "gap": history.gap,
            "more": history.has_more,
        }

    async def do_state(self, command: Command) -> None:
        self.listeners[command["listener"]] = await self.client(command).state(command["pattern"])

    async def do_respond(self, command: Command) -> None:
        def handle(payload: Any, key: str) -> Any:
            if "error" in command["replies"]:
                raise webmq.WebMQError(command["replies"]["error"], "refused")
            return payload

        await self.client(command).respond(command["pattern"], handle)

    async def do_request(self, command: Command) -> Command:
        return {"payload": await self.client(command).request(command["key"], command["payload"])}

    async def do_openStream(self, command: Command) -> None:
        self.writers[command["writer"]] = await self.client(command).open_stream(
            command["key"], meta=command.get("meta"), id=command.get("stream")
        )

    async def do_append(self, command: Command) -> None:
        await self.writers[command["writer"]].append(command["content"])

    async def do_endStream(self, command: Command) -> None:
        await self.writers[command["writer"]].end(command.get("result"))

    async def do_waitStopped(self, command: Command) -> None:
        await self.writers[command["writer"]].stopped.wait()

    async def do_readStream(self, command: Command) -> None:
        reader = self.client(command).read_stream(command["key"])
        self.readers[command["reader"]] = (reader, aiter(reader))

    async def do_streamNext(self, command: Command) -> Command:
        reader, parts = self.readers[command["reader"]]
        try:
            part = await anext(parts)
        except StopAsyncIteration:
            return {"stream": reader.id, "status": reader.status, "result": reader.result}
        return {"stream": reader.id, "content": part.content, "isWhole": part.is_whole}

    async def do_stopStream(self, command: Command) -> None:
        await self.readers[command["reader"]][0].stop()

    async def do_close(self, command: Command) -> None:
        await self.clients.pop(command["client"]).close()

    async def do_reset(self, command: Command) -> None:
        for client in self.clients.values():
            await client.close()
        self.__init__()  # type: ignore[misc]


async def main() -> None:
    adapter = Adapter()
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    running: set[asyncio.Task[None]] = set()

    def say(line: Command) -> None:
        try:
            text = json.dumps(line, allow_nan=False)
        except (RecursionError, ValueError):
            # What is nested too deeply, or too large, to be shown came all the same.
            text = json.dumps({"id": line["id"], "ok": {"payload": "not shown"}})
        print(text, flush=True)

    async def run(command: Command) -> None:
        say(await adapter.answer(command))

    say({"hello": {"name": "webmq-client for Python", "can": CAN}})
    while line := await commands.readline():
        task = asyncio.create_task(run(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()


asyncio.run(main())
