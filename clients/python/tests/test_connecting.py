"""Tokens, and servers that end, freeze or answer nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import unittest
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from scripted import WELCOME, Answered, Script, request, server_of
from websockets.asyncio.server import ServerConnection, serve

import webmq
from webmq.groups import MAX_RUNNING, MAX_UNWRITTEN


class Connecting(Answered):
    async def test_a_token_that_fails_is_asked_for_again_before_the_old_one_expires(self) -> None:
        """Symptom: one failure of a token function ended the connection. Cause: it was asked once for each token."""
        count = 0

        def token() -> str:
            nonlocal count
            count += 1
            if count in (2, 3):
                raise OSError("the service of tokens restarts")
            return f"t{count}"

        async def act(client: webmq.Client) -> None:
            await self.sockets[0].send("expiring 5000")
            while len(self.heard) < 2:
                await asyncio.sleep(0.01)
            self.assertEqual((self.heard, len(self.sockets)), (["auth login\nt1", "auth login\nt4"], 1))

        with patch("webmq.connection.RENEWAL_S", 0.02):
            await self.with_client(act, hello={"auth": "required"}, token=token)

    async def test_a_cancelled_publish_counts_until_its_answer(self) -> None:
        """Symptom: memory grew while a server did not answer. Cause: what was cancelled did not count any more."""

        async def act(client: webmq.Client) -> None:
            await self.cancelled(client.publish("k", "x" * 700))
            with self.assertRaises(webmq.WebMQError) as raised:
                await client.publish("k", "x" * 700)
            self.assertEqual(raised.exception.code, "E_QUEUE_FULL")
            await self.sockets[-1].send(f"ok {self.heard[0].split(' ')[1]}")
            await asyncio.sleep(0.1)
            await self.cancelled(client.publish("k", "x" * 700))
            await self.reconnect(client)
            self.assertEqual(client._publishes._bytes, 0)

        await self.with_client(act, lambda *_: None, max_pending_bytes=1_500)

    async def test_limits_of_a_token_leave_the_others(self) -> None:
        async def act(client: webmq.Client) -> None:
            self.assertEqual(client.limits, {"maxWords": 4, "maxListensPerConnection": 9})

        await self.with_client(
            act,
            lambda *_: '\n{"limits":{"maxListensPerConnection":9}}',
            {"auth": "required", "limits": {"maxWords": 4, "maxListensPerConnection": 128}},
            token="t",
        )

    async def test_a_server_that_ends_each_token_at_once_is_not_flooded(self) -> None:
        """Symptom: 600 connections a second. Cause: no pause before a connection with another token."""

        async def script(connection: ServerConnection) -> None:
            self.sockets.append(connection)
            await connection.send(f"welcome\n{json.dumps(WELCOME | {'auth': 'required'})}")
            await connection.recv()
            await connection.send("ok login\n{}")
            await connection.close(4009)

        self.sockets = []
        server, url = await server_of(script)
        async with server, webmq.Client(url, token=lambda: "t"):
            await asyncio.sleep(1)
        self.assertLess(len(self.sockets), 20)

    async def test_a_token_that_does_not_come_is_asked_for_again(self) -> None:
        """Symptom: a client was never connected again. Cause: a token function that hung was waited for without end."""
        count = 0

        async def token() -> str:
            nonlocal count
            count += 1
            await asyncio.sleep(3_600 if count == 1 else 0)
            return "t"

        async def act(client: webmq.Client) -> None:
            self.assertEqual(count, 2)

        with patch("webmq.connection.TOKEN_TIMEOUT_S", 0.1):
            await self.with_client(act, hello={"auth": "required"}, token=token)

    async def test_a_server_that_reads_no_more_is_left(self) -> None:
        """Symptom: after a frozen server the client waited for ever, and so did `close`. Cause: the ping, and the
        closing, waited until the server had read what came before."""
        count = 0

        async def script(connection: ServerConnection) -> None:
            nonlocal count
            count += 1
            await connection.send(f"welcome\n{json.dumps(WELCOME | {'heartbeatMs': 1_000})}")
            connection.transport.pause_reading()
            await connection.wait_closed()

        async with slow_server(script) as url:
            client = webmq.Client(url, max_pending_bytes=1 << 26)
            with patch("webmq.connection.HEARTBEAT_ANSWER_S", 0.5), patch("webmq.connection.CLOSE_TIMEOUT_S", 0.5):
                await client.connected()
                waiting = [asyncio.ensure_future(client.publish("k", "x" * 250_000)) for _ in range(80)]
                async with asyncio.timeout(10):
                    while count < 2:
                        await asyncio.sleep(0.05)
                    await client.connected()
                    await asyncio.sleep(0.2)
                    await client.close()
            self.assertEqual({type(await waited) for waited in map(_outcome, waiting)}, {webmq.WebMQError})

    async def test_replies_to_a_server_that_reads_no_more_are_bounded(self) -> None:
        """Symptom: memory grew while a server took no replies. Cause: a handler was over before its reply was gone."""
        handled = 0

        async def script(connection: ServerConnection) -> None:
            await connection.send(f"welcome\n{json.dumps(WELCOME)}")
            id, _ = await request(connection, "listen")
            await connection.send(f"ok {id}")
            connection.transport.pause_reading()
            for number in range(3_000):
                await connection.send(f"task responders k k request=q{number} within=9000\n1")
                await asyncio.sleep(0.001 if number % 50 == 0 else 0)
            await connection.wait_closed()

        async def answer(payload: Any, key: str) -> str:
            nonlocal handled
            handled += 1
            return "x" * 20_000

        async with slow_server(script) as url:
            client = webmq.Client(url)
            with patch("webmq.connection.CLOSE_TIMEOUT_S", 0.1), self.assertLogs("webmq", "WARNING") as logs:
                await client.respond("k", answer)
                before = -1
                while before < handled:
                    before = handled
                    await asyncio.sleep(0.5)
                waiting = client._connection._outgoing.qsize()
                await client.close()
        self.assertLess(waiting, MAX_RUNNING + MAX_UNWRITTEN)
        # One line a second, not one for each.
        self.assertLess(len(logs.output), 20)


@asynccontextmanager
async def slow_server(script: Script) -> AsyncIterator[str]:
    """A server that takes little while it does not read."""
    listening = socket.socket()
    # Accepted sockets have it, too.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    listening.bind(("127.0.0.1", 0))
    async with await serve(script, sock=listening, compression=None, ping_interval=None, close_timeout=0.1):
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}"


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except webmq.WebMQError as error:
        return error


if __name__ == "__main__":
    unittest.main()
