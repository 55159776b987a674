"""A server that a test plays by hand."""

from __future__ import annotations

import asyncio
import json
import unittest
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

import webmq

WELCOME = {"protocol": "webmq.v1", "auth": "none", "session": "s", "heartbeatMs": 0, "limits": {}}
Script = Callable[[ServerConnection], Awaitable[None]]


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
