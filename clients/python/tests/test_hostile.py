"""What peers and servers send, and programs give, that is not as it should be. The conformance cases have more."""

from __future__ import annotations

import asyncio
import json
import unittest
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

from scripted import Scripted, accept_all, request, welcome
from websockets.asyncio.server import ServerConnection

import webmq
from webmq.characters import half_of, joined_pairs
from webmq.dialing import refusal_of
from webmq.errors import code_of, error_of, retry_s
from webmq.wire import parse_json, payload_of

HALF = "\ud83d"
OTHER_HALF = "\ude00"


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


class Values(unittest.TestCase):
    def test_json_of_others_raises_one_kind_of_error(self) -> None:
        """Symptom: a message of 1,000 lists ended the client. Cause: `json.loads` raises RecursionError, which is no
        ValueError."""
        texts: list[str | bytes] = ["[" * depth + "]" * depth for depth in (2_000, 100_000)]
        texts += ["9" * 5_000, "NaN", "-Infinity", "", "{", b"\xff\xfe"]
        for text in texts:
            with self.subTest(text=text[:10]), self.assertRaises(ValueError):
                parse_json(text)

    def test_what_has_no_json_form_is_refused(self) -> None:
        """Symptom: a value of 100,000 lists raised RecursionError. Cause: only two kinds of errors were expected."""
        circle: list[Any] = []
        circle.append(circle)
        for value in (float("nan"), float("inf"), object(), {1, 2}, nested(100_000), circle, 10**5_000):
            with self.assertRaises(webmq.WebMQError) as raised:
                payload_of(value)
            self.assertEqual(raised.exception.code, "E_PAYLOAD_INVALID")

    def test_half_a_character_is_escaped(self) -> None:
        """Symptom: the client connected again and again. Cause: the socket cannot encode such a text."""
        for value in (f"é{HALF}", {HALF: [OTHER_HALF]}, f"{HALF}x{HALF}\\"):
            text = str(payload_of(value))
            text.encode()
            self.assertEqual(json.loads(text), value)
        self.assertEqual(payload_of("😀é"), '"😀é"')

    def test_halves_are_joined(self) -> None:
        self.assertEqual(joined_pairs(f"a{HALF}{OTHER_HALF}{HALF}"), f"a😀{HALF}")
        self.assertEqual([half_of(f"a{HALF}"), half_of("a😀"), half_of(OTHER_HALF), half_of("")], [HALF, "", "", ""])

    def test_only_webmq_refuses_for_good(self) -> None:
        """Symptom: a proxy's 404 during a deploy ended workers. Cause: any status of 4xx was final."""
        for body in (
            None,
            b"",
            b"404 page not found",
            b"[" * 100_000,
            b'{"code":"E_DRAIN"}',
            b'{"code":["x"]}',
            b"[1]",
        ):
            self.assertIsNone(refusal_of(body))
        refusal = refusal_of(b'{"code":"E_PATH_NOT_FOUND","message":"here?"}')
        self.assertEqual((refusal.code, refusal.message) if refusal else None, ("E_PATH_NOT_FOUND", "here?"))

    def test_texts_of_others_are_bounded(self) -> None:
        """Symptom: to print an error of a peer raised, or wrote more than a line. Cause: its text was as it came."""
        told = error_of("E_X", {"message": f"a\n{HALF}\x1b" + "b" * 1_000})
        self.assertEqual(told.message, "a   " + "b" * 496)
        for code in ("E_", "e_x", "E_" + "X" * 41, "E_X\n", 5, None, ["E_X"]):
            self.assertEqual(code_of({"code": code}, "E_RESPONSE"), "E_RESPONSE")
        self.assertEqual(code_of({"code": "E_MY_OWN1"}, "E_RESPONSE"), "E_MY_OWN1")

    def test_times_of_a_server_are_bounded(self) -> None:
        """Symptom: `retryAfterMs` of 400 digits ended the client, and -1 kept it busy. Cause: no bounds."""
        for after, seconds in ((-1, 0.1), (0, 0.1), (10**400, 3_600), (1e308, 3_600), ("x", 1), (True, 1), (500, 0.5)):
            error = error_of("E_X", {"message": "later", "retryAfterMs": after})
            self.assertEqual(retry_s(error, 1), seconds, after)


async def _until(listener: webmq.Listener, payload: Any) -> AsyncIterator[webmq.Message | webmq.Gap]:
    async for item in listener:
        yield item
        if isinstance(item, webmq.Message) and item.payload == payload:
            return


class Hostile(Scripted):
    async def test_nothing_breaks_the_header(self) -> None:
        """Symptom: a message id with a space was sent as an option, and one with half a character ended the connection.
        Cause: only keys and patterns were checked."""

        async def act(client: webmq.Client) -> None:
            for call in (
                lambda value: client.publish("k", 1, message_id=value),
                lambda value: client.history("k", since=value),
                lambda value: client.history("k", before=value),
                lambda value: client.open_stream("k", id=value),
                lambda value: client.work("k", print, group=value),
            ):
                for value in ("a b", "a\nb", HALF, "x" * 2_000):
                    with self.assertRaises(webmq.WebMQError) as raised:
                        await call(value)
                    self.assertEqual(raised.exception.code, "E_OPTION_INVALID")
            with self.assertRaises(webmq.WebMQError):
                client.listen("k", since="a b")

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            await socket.wait_closed()

        await self.play(script, act)

    async def test_a_replay_is_bounded(self) -> None:
        """Symptom: memory grew with what a server sent. Cause: a replay was kept until all of its messages had come."""

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            id, _ = await request(socket, "history")
            await socket.send(f"ok {id} replayed=999999999999999")
            id, _ = await request(socket, "history")
            await socket.send(f"ok {id} replayed=100")
            for _ in range(3):
                await socket.send('message k - replay\n"123456"')
            await socket.wait_closed()

        async def act(client: webmq.Client) -> None:
            await client.connected()
            for _ in range(2):
                with self.assertRaises(webmq.WebMQError) as raised:
                    await client.history("k")
                self.assertEqual(raised.exception.code, "E_MESSAGE_INVALID")

        with patch("webmq.requests.MAX_REPLAY_BYTES", 20):
            await self.play(script, act)

    async def test_an_answer_that_cannot_be_read_fails_its_request(self) -> None:
        """Symptom: a member with deep data let `watch` of all others wait for ever. Cause: the answer was dropped."""

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            for verb in ("presence", "presence"):
                id, _ = await request(socket, verb)
                await socket.send(f"ok {id}\n" + '{"members":' + "[" * 5_000 + "]" * 5_000 + "}")
            await socket.wait_closed()

        async def act(client: webmq.Client) -> None:
            presence = client.presence("room")
            for call in (presence.get, presence.watch):
                with self.assertRaises(webmq.WebMQError) as raised:
                    await call()
                self.assertEqual(raised.exception.code, "E_MESSAGE_INVALID")

        await self.play(script, act)

    async def test_members_are_asked_for_again_after_a_change_that_cannot_be_read(self) -> None:
        """Symptom: a watch missed members, or ended its client. Cause: odd members, and ones with deep data."""
        odd = [5, [], {}, {"id": 1}, {"id": []}, {"id": "ada", "data": 1}]

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            id, _ = await request(socket, "presence")
            await socket.send(f'ok {id}\n{{"members":{json.dumps(odd)}}}')
            await socket.send('presence room\n{"leave":[[],{},5],"enter":7,"update":{"id":"x"}}')
            await socket.send('presence room\n{"enter":' + "[" * 5_000 + "]" * 5_000 + "}")
            id, _ = await request(socket, "presence")
            await socket.send(f'ok {id}\n{{"members":[{{"id":"bob"}}]}}')
            await accept_all(socket)

        async def act(client: webmq.Client) -> None:
            async with await client.presence("room").watch() as watch:
                self.assertEqual([*watch.members], ["ada"])
                change = await anext(watch)
                self.assertEqual([member.id for member in (*change.entered, *change.left)], ["bob", "ada"])

        with patch("webmq.presence.RETRY_S", 0.01):
            await self.play(script, act)

    async def test_lists_in_lists_are_as_text_that_is_no_json(self) -> None:
        """Symptom: one message, reply, task or part of a stream ended the client that got it. Cause: RecursionError
        went through all handlers, and was taken for a bug."""
        deep = "[" * 5_000 + "]" * 5_000
        replies: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            async for received in socket:
                header, _, payload = str(received).partition("\n")
                verb, id, *rest = header.split(" ")
                if verb == "reply":
                    replies.append(json.loads(payload)["code"])
                elif verb == "request":
                    await socket.send(f"ok {id}")
                    await socket.send(f"reply {id}\n{deep}")
                elif verb == "read" and replies:
                    await socket.send(f'ok {id} position=e:9.AAAAA\n{{"stream":"S","sequence":9,"status":"end"}}')
                elif verb == "read":
                    await socket.send(f"ok {id} position=e:0.AAAAA\n{{}}")
                elif "state" in rest:
                    await socket.send(f"ok {id} position=e:2.AAAAA state replayed=2")
                    await socket.send(f"message k e:1.AAAAA replay\n{deep}")
                    await socket.send("message l e:2.AAAAA replay\n1")
                else:
                    await socket.send(f"ok {id} position=e:0.AAAAA recovered")
                if verb == "listen" and rest[0] == "k":
                    for number, part in enumerate((" stream=S:0:start", " stream=S:1:append", " stream=S:2:end"), 1):
                        await socket.send(f"message k e:{number}.AAAAA{part}\n{deep}")
                    await socket.send("message k e:4.AAAAA\n1")
                elif verb == "listen" and "respond" in rest:
                    await socket.send(f"task responders r r request=7 within=1000\n{deep}")

        async def act(client: webmq.Client) -> None:
            await client.connected()
            async with client.listen("k") as listener:
                # One gap for all three, if they wait together.
                items = [item async for item in _until(listener, 1)]
            self.assertEqual({*items[:-1]}, {webmq.Gap("refused")})
            with self.assertRaises(webmq.WebMQError) as raised:
                await client.request("r", 1)
            self.assertEqual(raised.exception.code, "E_RESPONSE")
            async with client.state("#") as state:
                self.assertEqual((await anext(state)).values, {"l": 1})
            reading = asyncio.ensure_future(client.read_stream("k").content())
            await asyncio.sleep(0.2)
            await client.respond("r", lambda payload, key: payload)
            self.assertEqual(await reading, "")
            self.assertEqual((replies, client.status), (["E_PAYLOAD_INVALID"], "connected"))

        await self.play(script, act)

    async def test_all_calls_of_a_client_that_has_ended_fail_at_once(self) -> None:
        """Symptom: after a failure the status was `connecting`, and calls waited for ever. Cause: the loss of the
        connection was told after the failure, and requests waited for the next one."""
        told: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            await request(socket, "history")
            await socket.close(4503)

        async def act(client: webmq.Client) -> None:
            await client.connected()
            client._on_status = told.append
            room = client.presence("room")
            for _ in range(2):
                for call in (
                    lambda: client.history("k"),
                    lambda: client.publish("k", 1),
                    lambda: client.connected(),
                    lambda: client.request("k", 1),
                    lambda: room.get(),
                    lambda: room.watch(),
                    lambda: room.enter(),
                    lambda: client.read_stream("k").content(),
                    lambda: client.open_stream("k"),
                ):
                    with self.assertRaises(webmq.WebMQError) as raised:
                        await asyncio.wait_for(call(), 2)
                    self.assertEqual(raised.exception.code, "E_DISCONNECTED_BY_OPERATOR")
            self.assertEqual((client.status, told), ("closed", ["connecting", "closed"]))

        await self.play(script, act)

    async def test_a_stream_is_never_cut_inside_a_character(self) -> None:
        """Symptom: readers in other languages got broken text. Cause: an append ended where its content did."""
        written: list[str] = []

        async def script(socket: ServerConnection) -> None:
            await socket.send(
                'welcome\n{"protocol":"webmq.v1","auth":"none","session":"s","limits":{"maxPayloadBytes":1}}'
            )
            async for message in socket:
                header, _, payload = str(message).partition("\n")
                if " kind=append" in header:
                    written.append(payload)
                await socket.send(f"ok {header.split(' ')[1]}")

        async def act(client: webmq.Client) -> None:
            await client.connected()
            writer = await client.open_stream("k")
            for text in ("a", HALF, OTHER_HALF, f"b{HALF}", f"{OTHER_HALF}😀{HALF}"):
                await writer.append(text)
            await writer.end()

        await self.play(script, act)
        self.assertEqual(written, ['"a"', '"😀"', '"b"', '"😀"', '"😀"', '"\\ud83d"'])

    async def test_a_reader_gives_no_half_of_a_character(self) -> None:
        """Symptom: `content.encode()` of a part raised. Cause: parts were given as they came."""
        parts = [f"a{HALF}", f"{OTHER_HALF}b{HALF}", HALF, OTHER_HALF, HALF]

        async def script(socket: ServerConnection) -> None:
            await welcome(socket)
            id, _ = await request(socket, "read")
            summary = {"stream": "S", "sequence": 1, "status": "active"}
            await socket.send(f"ok {id} position=e:1.AAAAA replayed=1\n{json.dumps(summary)}")
            await socket.send(f"message k e:1.AAAAA replay stream=S:1:text\n{json.dumps('x' + HALF)}")
            id, _ = await request(socket, "listen")
            await socket.send(f"ok {id} position=e:1.AAAAA recovered")
            for number, part in enumerate([OTHER_HALF, *parts], 2):
                await socket.send(f"message k e:{number}.AAAAA stream=S:{number}:append\n{json.dumps(part)}")
            await socket.send("message k e:9.AAAAA stream=S:8:end\n")
            await accept_all(socket)

        async def act(client: webmq.Client) -> list[Any]:
            return [part.content async for part in client.read_stream("k")]

        self.assertEqual(await self.play(script, act), ["x", "😀", "a", "😀b", HALF, "😀", HALF])


if __name__ == "__main__":
    unittest.main()
