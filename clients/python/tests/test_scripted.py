"""The client against servers that do what a real one does rarely."""

from __future__ import annotations

import asyncio
import json
import traceback
import unittest
from typing import Any
from unittest.mock import patch

from scripted import Scripted, request, welcome
from websockets.asyncio.server import ServerConnection

import webmq
from webmq.connection import backoff_limit_s
from webmq.publishes import MIN_WINDOW


class Rare(Scripted):
    def test_waits_at_most_5_s_in_the_first_minute(self) -> None:
        limits = [backoff_limit_s(attempt) for attempt in (0, 1, 3, 4, 23, 24, 5_000)]
        self.assertEqual(limits, [0.5, 1, 4, 5, 5, 20, 20])

    async def test_says_once_that_nobody_answers(self) -> None:
        """Symptom: with a wrong address `publish` waited, and nothing was ever said. Cause: it was logged for
        debugging only."""
        with self.assertLogs("webmq", "WARNING") as logs, patch("webmq.connection.BACKOFF_MIN_S", 0.001):
            async with webmq.Client("ws://127.0.0.1:9/ws"):
                await asyncio.sleep(0.2)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertIn("no connection to ws://127.0.0.1:9/ws: ConnectionRefusedError; is the address", logs.output[0])

    async def test_takes_the_address_that_back_ends_know(self) -> None:
        async def act(client: webmq.Client) -> None:
            async with webmq.Client(client._connection._url.replace("ws:", "http:")) as other:
                await other.connected()

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            await socket.wait_closed()

        await self.play(script, act)

    async def test_says_that_tls_was_asked_for(self) -> None:
        with self.assertLogs("webmq", "WARNING") as logs, patch("webmq.connection.BACKOFF_MIN_S", 0.001):
            async with webmq.Client("wss://127.0.0.1:9/ws"):
                await asyncio.sleep(0.2)
        self.assertIn("does the server run, with TLS (wss://)?", logs.output[0])

    def test_an_error_has_its_link(self) -> None:
        error = webmq.WebMQError("E_FORBIDDEN", "no")
        self.assertTrue(error.docs.endswith("/docs/errors.md#e_forbidden"), error.docs)
        self.assertIn(error.docs, "".join(traceback.format_exception(error)))

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

    async def test_a_few_are_sent_first_after_a_refusal(self) -> None:
        """[P-10.7] All at once would be refused again."""
        count = 40
        error = json.dumps({"message": "later", "retryable": True, "retryAfterMs": 10})
        waiting: list[int] = []
        clients: list[webmq.Client] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            for number in range(count):
                id, _ = await request(socket, "publish")
                # Refused because the broker is slow, or not answered by it in time.
                code = "E_TIMEOUT" if number % 2 else "E_RATE_LIMIT"
                await socket.send(f"error {id} {code}\n{error}")
            ids: list[str] = []
            for number in range(count):
                header, payload = str(await socket.recv()).split("\n")
                assert payload == str(number), payload
                ids.append(header.split(" ")[1])
                if number == MIN_WINDOW - 1:
                    waiting.append(len(clients[0]._publishes._waiting))
                if number >= MIN_WINDOW - 1:
                    for id in ids:
                        await socket.send(f"ok {id}")
                    ids.clear()
            await socket.wait_closed()

        async def act(client: webmq.Client) -> None:
            clients.append(client)
            await asyncio.gather(*(client.publish("k", number) for number in range(count)))

        await self.play(script, act)
        self.assertEqual(waiting, [count - MIN_WINDOW])

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

    async def test_a_closed_membership_stays_closed_over_a_reconnect(self) -> None:
        """Symptom: a worker that had left got messages again after a reconnect. Cause: closed memberships were still in
        the list of those that join again."""
        verbs: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            async for message in socket:
                verb, id, *_ = str(message).split("\n")[0].split(" ")
                verbs.append(verb)
                await socket.send(f"ok {id}")
                if verb == "unlisten":
                    # What was on its way is handled.
                    socket.transport.abort()

        async def act(client: webmq.Client) -> None:
            member = await client.work("k", lambda payload, key: None, group="g")
            await member.close()
            await client.publish("k", 1)

        with patch("webmq.connection.BACKOFF_MIN_S", 0.001):
            await self.play(script, act)
        self.assertEqual(verbs, ["listen", "unlisten", "publish"])

    async def test_a_responder_sends_no_reply_by_another_connection(self) -> None:
        """Symptom: somebody got the reply to a question of somebody else. Cause: a responder that was slower than a
        reconnect sent its reply by the next connection, where the id may name another request."""
        joined = asyncio.Event()
        verbs: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            id, _ = await request(socket, "listen")
            await socket.send(f"ok {id}")
            if not verbs:
                verbs.append("task")
                await socket.send("task responders k k request=7 within=9000\n1")
                await asyncio.sleep(0.1)
                socket.transport.abort()
                return
            joined.set()
            async for message in socket:
                verb, id, *_ = str(message).split("\n")[0].split(" ")
                verbs.append(verb)
                await socket.send(f"ok {id}")

        async def answer(payload: Any, key: str) -> int:
            await joined.wait()
            return 1

        async def act(client: webmq.Client) -> None:
            await client.respond("k", answer)
            await joined.wait()
            await asyncio.sleep(0.1)
            await client.publish("k", 1)

        with patch("webmq.connection.BACKOFF_MIN_S", 0.001):
            await self.play(script, act)
        self.assertEqual(verbs, ["task", "publish"])

    async def test_a_refused_update_ends_the_presence(self) -> None:
        """Symptom: others saw a client with its old data, and `leave` did nothing. Cause: it took itself for absent
        after a refused update, and the server did not."""
        operations: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            for answer in ('ok {id}\n{{"id":"m"}}', 'error {id} E_PAYLOAD_TOO_LARGE\n{{"retryable":false}}', "ok {id}"):
                id, rest = await request(socket, "presence")
                operations.append(rest.split("op=")[1].split(" ")[0])
                await socket.send(answer.format(id=id))
            await socket.wait_closed()

        async def act(client: webmq.Client) -> None:
            room = client.presence("k")
            await room.enter(1)
            with self.assertRaises(webmq.WebMQError):
                await room.enter("large")
            self.assertIsNone(room.id)

        await self.play(script, act)
        self.assertEqual(operations, ["enter", "enter", "leave"])


if __name__ == "__main__":
    unittest.main()
