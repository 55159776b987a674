"""The client against servers that do what a real one does rarely."""

from __future__ import annotations

import asyncio
import json
import unittest
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

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


class Scripted(unittest.IsolatedAsyncioTestCase):
    async def play(self, script: Script, act: Callable[[webmq.Client], Awaitable[Any]]) -> Any:
        server, url = await server_of(script)
        async with server, asyncio.timeout(20), webmq.Client(url) as client:
            return await act(client)

    async def test_leaves_a_server_that_does_not_greet(self) -> None:
        """Symptom: a client that was connected to a node that froze then hung until the node closed. Cause: nothing
        waited for `welcome`."""
        count = 0

        async def script(socket: ServerConnection) -> None:
            nonlocal count
            count += 1
            if count > 1:
                await welcome(socket)
            await socket.wait_closed()

        with patch("webmq.connection.OPEN_TIMEOUT_S", 0.2):
            await self.play(script, lambda client: client.connected())
        self.assertEqual(count, 2)

    async def test_a_slow_reader_asks_again_after_a_refusal(self) -> None:
        """Symptom: a listener got nothing more. Cause: its queue had been full, and the request for what was left out
        was refused for now; only a listener that is not live asked again."""

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            id, _ = await request(socket, "listen")
            await socket.send(f"ok {id} position=e:0.AAAAA")
            for number in (1, 2, 3):
                await socket.send(f"message k e:{number}.AAAAA\n{number}")
            id, rest = await request(socket, "listen")
            assert "since=e:2.AAAAA" in rest, rest
            error = {"message": "later", "retryable": True, "retryAfterMs": 10}
            await socket.send(f"error {id} E_NODE_BEHIND\n{json.dumps(error)}")
            id, rest = await request(socket, "listen")
            assert "since=e:2.AAAAA" in rest, rest
            await socket.send(f"ok {id} position=e:3.AAAAA recovered replayed=1")
            await socket.send("message k e:3.AAAAA replay\n3")
            await socket.wait_closed()

        async def act(client: webmq.Client) -> list[Any]:
            listener = await client.listen("k", max_waiting=2)
            while listener.waiting < 2:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            return [getattr(await anext(listener), "payload", None) for _ in range(3)]

        self.assertEqual(await self.play(script, act), [1, 2, 3])

    async def test_a_gap_is_told_with_the_answer(self) -> None:
        """Symptom: messages were missing after a gap. Cause: the gap was told before the listen was live again."""
        live = asyncio.Event()
        count = 0

        async def script(socket: ServerConnection) -> None:
            nonlocal count
            count += 1
            await welcome(socket)
            id, _ = await request(socket, "listen")
            if count == 1:
                await socket.send(f"ok {id}")
                socket.transport.abort()
                return
            await live.wait()
            await socket.send(f"ok {id}")
            await socket.wait_closed()

        async def act(client: webmq.Client) -> bool:
            listener = await client.listen("k")
            told = asyncio.ensure_future(anext(listener))
            while count < 2:
                await asyncio.sleep(0.01)
            done, _ = await asyncio.wait([told], timeout=0.2)
            live.set()
            self.assertEqual(await told, webmq.Gap("no-history"))
            return bool(done)

        self.assertFalse(await self.play(script, act))


if __name__ == "__main__":
    unittest.main()
