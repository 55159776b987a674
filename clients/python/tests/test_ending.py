"""What is cancelled, closed or refused leaves nothing behind, and waits for nobody."""

from __future__ import annotations

import asyncio
import gc
import json
import unittest
from typing import Any
from unittest.mock import patch

from scripted import WELCOME, Answered, until_lost
from websockets.asyncio.server import ServerConnection

import webmq
from webmq.groups import MAX_RUNNING


class Ending(Answered):
    async def test_what_comes_before_the_end_of_a_membership_is_handled(self) -> None:
        handled: list[Any] = []

        def answer(verb: str, id: str, rest: list[str]) -> str:
            if verb == "unlisten":
                asyncio.get_running_loop().create_task(self.sockets[-1].send("task g jobs jobs\n1"))
            return ""

        async def act(client: webmq.Client) -> None:
            member = await client.work("jobs", lambda payload, key: handled.append(payload), group="g")
            await client._requests.call("history", "k")
            member.leave()
            await asyncio.sleep(0.1)

        await self.with_client(act, answer)
        self.assertEqual(handled, [1])

    async def test_more_messages_at_once_than_handlers_are_handled(self) -> None:
        """Symptom: of 2,000 messages whose publish was answered, a worker with a quick handler handled 256. Cause: they
        came before the first handler had begun, and the others were dropped."""
        handled: list[Any] = []

        async def act(client: webmq.Client) -> None:
            member = await client.work("jobs", lambda payload, key: handled.append(payload), group="g")
            for number in range(2_000):
                await self.sockets[-1].send(f"task g jobs jobs\n{number}")
            while len(handled) < 2_000 and member.dropped_count == 0:
                await asyncio.sleep(0.01)
            self.assertEqual(handled, [*range(2_000)])
            release = asyncio.Event()
            slow = await client.work("slow", lambda *_: release.wait(), group="g")
            with patch("webmq.groups.MAX_WAITING_BYTES", 1_000):
                for _ in range(MAX_RUNNING + 5):
                    await self.sockets[-1].send("task g slow slow\n1")
                while slow.dropped_count < 2:
                    await asyncio.sleep(0.01)
            release.set()
            while slow._waiting_bytes > 0:
                await asyncio.sleep(0.01)
            self.assertEqual(slow.dropped_count, 2)

        await self.with_client(act)

    async def test_a_worker_learns_that_it_has_ended(self) -> None:
        """Symptom: a worker whose membership the server had ended waited for ever. Cause: nothing told it."""

        async def act(client: webmq.Client) -> None:
            revoked, closed, last = [await client.work("jobs", print, group=group) for group in "abc"]
            await self.sockets[-1].send('ended a jobs\n{"code":"E_FORBIDDEN","message":"no"}')
            with self.assertRaises(webmq.WebMQError) as raised:
                await revoked.ended()
            self.assertEqual(raised.exception.code, "E_FORBIDDEN")
            await closed.close()
            await closed.ended()
            await client.close()
            with self.assertRaises(webmq.WebMQError) as raised:
                await last.ended()
            self.assertEqual(raised.exception.code, "E_CLOSED")

        await self.with_client(act)

    async def test_a_refused_listener_is_forgotten(self) -> None:
        """Symptom: each refused listener was asked for again at each reconnect. Cause: only `close` took it away."""

        def answer(verb: str, id: str, rest: list[str]) -> str:
            return f'error {id} E_FORBIDDEN\n{{"message":"no"}}'

        async def act(client: webmq.Client) -> None:
            for _ in range(3):
                with self.assertRaises(webmq.WebMQError):
                    await client.listen("k")
            await self.reconnect(client)
            self.assertEqual(self.heard, [])

        await self.with_client(act, answer)

    async def test_a_server_without_state_topics_is_left(self) -> None:
        async def act(client: webmq.Client) -> None:
            with self.assertRaises(webmq.WebMQError) as raised:
                await client.state("k")
            self.assertEqual((raised.exception.code, self.heard[1:]), ("E_UNSUPPORTED", ["unlisten 2 k"]))

        await self.with_client(act)

    async def test_a_request_ends_with_its_client(self) -> None:
        """Symptom: `request` waited for up to 5 minutes after `close`. Cause: one that a responder has was not told."""

        async def act(client: webmq.Client) -> None:
            asked = asyncio.ensure_future(client.request("k", 1, timeout_s=60))
            await asyncio.sleep(0.1)
            await client.close()
            with self.assertRaises(webmq.WebMQError) as raised:
                await asyncio.wait_for(asked, 1)
            self.assertEqual(raised.exception.code, "E_CLOSED")

        await self.with_client(act)

    async def test_whoever_is_cancelled_leaves(self) -> None:
        """Symptom: handlers ran for a cancelled `work`, others saw who had given up, and a cancelled `open_stream` kept
        its key busy for ever. Cause: only errors of the server took back what had begun."""

        async def act(client: webmq.Client) -> None:
            await self.cancelled(client.work("jobs", print, group="g"))
            await self.cancelled(client.listen("k").__aenter__())
            await self.cancelled(client.presence("room").enter())
            await self.cancelled(client.presence("room").watch())
            await self.cancelled(client.open_stream("s"), 0.3)
            await asyncio.sleep(0.3)
            self.assertEqual(
                [header.split(" of=")[0].split(" member=")[0] for header in self.heard],
                [
                    *("listen 1 jobs group=g", "unlisten 2 jobs group=g", "listen 3 k", "unlisten 4 k"),
                    *("presence 5 room op=enter", "presence 6 room op=leave"),
                    *("presence 7 room op=watch", "presence 8 room op=unwatch", "stream 9 s"),
                ],
            )

        await self.with_client(act, lambda *_: None, {"limits": {"streamLeaseMs": 100}})

    async def test_a_stream_that_nobody_has_is_ended(self) -> None:
        async def act(client: webmq.Client) -> None:
            await self.cancelled(client.open_stream("s"))
            await asyncio.sleep(0.3)
            self.assertEqual([text.split("kind=")[1] for text in self.heard if "kind=" in text][-1][:5], "fail\n")

        # The membership is not answered.
        await self.with_client(
            act, lambda verb, *_: None if verb == "listen" else "", {"limits": {"streamLeaseMs": 60_000}}
        )

    async def test_a_stream_that_was_opened_before_the_connection_keeps_its_lease(self) -> None:
        """Symptom: streams were told as lost. Cause: their writers took the default lease, not that of the server."""

        async def script(connection: ServerConnection) -> None:
            await connection.send(f"welcome\n{json.dumps(WELCOME | {'limits': {'streamLeaseMs': 300}})}")
            async for message in until_lost(connection):
                header = str(message).split("\n")[0]
                self.heard.append(header)
                await connection.send(f"ok {header.split(' ')[1]}")

        async def act(client: webmq.Client) -> None:
            async with await client.open_stream("s"):
                await asyncio.sleep(0.5)
                self.assertTrue(self.heard[-1].endswith("kind=beat"), self.heard)

        self.heard = []
        await self.play(script, act)

    async def test_presence_that_nobody_uses_is_forgotten(self) -> None:
        """Symptom: a program that asked who is in many rooms grew. Cause: each key had an object for ever."""

        async def act(client: webmq.Client) -> None:
            await client.presence("here").enter()
            for number in range(10):
                await client.presence(f"room.{number}").get()
            gc.collect()
            self.assertEqual([*client._presences], ["here"])
            await client.presence("here").leave()
            gc.collect()
            self.assertEqual([*client._presences], [])

        await self.with_client(act, lambda *_: "\n{}")

    async def test_the_next_call_says_why_a_stream_has_ended(self) -> None:
        """Symptom: `end` raised E_STREAM_ENDED after an append that the server had refused. Cause: the order of checks.
        And what was neither text nor bytes was written as an empty text."""

        def answer(verb: str, id: str, rest: list[str]) -> str:
            return f'error {id} E_STREAM_LIMIT\n{{"message":"no"}}' if rest[-1:] == ["kind=append"] else ""

        async def act(client: webmq.Client) -> None:
            writer = await client.open_stream("s")
            for odd in (["x"], {"delta": "x"}, 5, None):
                with self.assertRaises(webmq.WebMQError) as raised:
                    writer.put(odd)  # type: ignore[arg-type]
                self.assertEqual(raised.exception.code, "E_PAYLOAD_INVALID")
            writer.put(bytearray(b"abc"))
            await writer.stopped.wait()
            self.assertTrue(self.heard[-2].endswith("kind=append\nabc") or self.heard[-1].endswith("append\nabc"))
            with self.assertRaises(webmq.WebMQError) as raised:
                await writer.end()
            self.assertEqual(raised.exception.code, "E_STREAM_LIMIT")

        await self.with_client(act, answer)


if __name__ == "__main__":
    unittest.main()
