"""A server that a test plays by hand."""

from __future__ import annotations

import asyncio
import json
import unittest
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

import webmq

WELCOME = {"protocol": "webmq.v1", "auth": "none", "session": "s", "heartbeatMs": 0, "limits": {}}
Script = Callable[[ServerConnection], Awaitable[None]]
Answer = Callable[[str, str, list[str]], str | None]
"""What follows `ok` and the id; an `error`, as it is; or no answer. Gets verb, id, and the other fields."""


async def server_of(script: Script) -> tuple[Server, str]:
    server = await serve(script, "127.0.0.1", 0, subprotocols=[Subprotocol("webmq.v1")])
    return server, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"


async def welcome(socket: ServerConnection) -> None:
    await socket.send(f"welcome\n{json.dumps(WELCOME)}")


async def request(socket: ServerConnection, verb: str) -> tuple[str, str]:
    """Id and the rest of the next request, which has this verb."""
    got, id, rest = str(await socket.recv()).split("\n")[0].split(" ", 2)
    assert got == verb, got
    return id, rest


async def accept_all(socket: ServerConnection) -> None:
    """Says `ok` until the client closes."""
    async for message in socket:
        await socket.send(f"ok {str(message).split(chr(10))[0].split(' ')[1]}")


class Scripted(unittest.IsolatedAsyncioTestCase):
    async def play(self, script: Script, act: Callable[[webmq.Client], Awaitable[Any]]) -> Any:
        server, url = await server_of(script)
        async with server, asyncio.timeout(20), webmq.Client(url) as client:
            return await act(client)


async def until_lost(connection: ServerConnection) -> AsyncIterator[str | bytes]:
    with suppress(ConnectionClosed):
        async for message in connection:
            yield message


class Answered(Scripted):
    """`heard` has the headers that the server got; `sockets` its connections."""

    heard: list[str]
    sockets: list[ServerConnection]

    async def with_client(
        self,
        act: Callable[[webmq.Client], Awaitable[Any]],
        answer: Answer = lambda *_: "",
        hello: Any = None,
        **options: Any,
    ) -> None:
        """Answers `ok`, with more or, for `None`, not at all."""
        self.heard, self.sockets = [], []

        async def script(connection: ServerConnection) -> None:
            self.sockets.append(connection)
            await connection.send(f"welcome\n{json.dumps(WELCOME | (hello or {}))}")
            async for message in until_lost(connection):
                text = message if isinstance(message, str) else message.decode()
                self.heard.append(text)
                verb, id, *rest = text.split("\n")[0].split(" ")
                more = answer(verb, id, rest)
                if more is not None:
                    await connection.send(more if more.startswith("error ") else f"ok {id}{more}")

        server, url = await server_of(script)
        with patch("webmq.connection.BACKOFF_MIN_S", 0.02):
            async with server, asyncio.timeout(20), webmq.Client(url, **options) as client:
                await client.connected()
                await act(client)

    async def reconnect(self, client: webmq.Client) -> None:
        self.heard.clear()
        self.sockets[-1].transport.abort()
        count = len(self.sockets)
        while len(self.sockets) == count or client.status != "connected":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)

    async def cancelled(self, call: Awaitable[Any], after_s: float = 0.1) -> None:
        with self.assertRaises(TimeoutError):
            await asyncio.wait_for(call, after_s)
