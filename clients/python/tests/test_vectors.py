"""The vectors of the protocol, as `python -m unittest discover tests`."""

from __future__ import annotations

import base64
import json
import unittest
from pathlib import Path
from typing import Any

from webmq.errors import WebMQError
from webmq.topics import check_key, check_pattern, matches
from webmq.wire import Unreadable, decode

VECTORS = Path(__file__).parents[3] / "packages" / "client" / "vectors"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text("utf-8"))


def wire(vector: dict[str, str]) -> str | bytes:
    return vector["text"] if "text" in vector else base64.b64decode(vector["base64"])


class Vectors(unittest.TestCase):
    def test_keys_and_patterns(self) -> None:
        for name, check in (("keys", check_key), ("patterns", check_pattern)):
            for vector in vectors(name)["valid"]:
                with self.subTest(vector=vector):
                    self.assertEqual(check(vector["text"]), vector["text"])
            for vector in vectors(name)["invalid"]:
                with self.subTest(vector=vector), self.assertRaises(WebMQError) as raised:
                    check(vector["text"])
                self.assertEqual(raised.exception.code, vector["code"])

    def test_matching(self) -> None:
        for vector in vectors("matching"):
            for key in vector["matches"]:
                self.assertTrue(matches(vector["pattern"], key), (vector["pattern"], key))
            for key in vector["rejects"]:
                self.assertFalse(matches(vector["pattern"], key), (vector["pattern"], key))

    def test_server_messages(self) -> None:
        for vector in vectors("server-messages")["valid"]:
            with self.subTest(name=vector["name"]):
                message, decoded = decode(wire(vector)), vector["decoded"]
                self.assertEqual(message.verb, decoded["verb"])
                if "position" in decoded and message.verb == "message":
                    self.assertEqual(message.fields, (decoded["key"], decoded["position"]))
                if "payload" in decoded:
                    self.assertEqual(message.payload, wire(decoded["payload"]))
                if "result" in decoded:
                    self.assertEqual(message.body, decoded["result"])
                self.assertEqual(message.number("replayed"), decoded.get("replayed", 0) if message.verb == "ok" else 0)

    def test_server_messages_that_are_invalid(self) -> None:
        for vector in vectors("server-messages")["invalid"]:
            with self.subTest(name=vector["name"]), self.assertRaises(Unreadable) as raised:
                decode(wire(vector))
            self.assertEqual(raised.exception.code, vector["code"])


if __name__ == "__main__":
    unittest.main()
