"""A WebSocket reader of 1 Mbit/s, with a receive buffer of 16 KiB, which Node cannot set.

Usage: slow_reader.py PORT. Listens to measure.#, and prints one JSON line when the connection ends: messages, keys, keys
with their last value, messages out of order, and the lag of messages in milliseconds.
"""
import base64
import json
import os
import socket
import sys
import time

BYTES_PER_SECOND = 125_000
RECEIVE_BUFFER_BYTES = 16_384
SILENCE_S = 3

reader = socket.socket()
reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
reader.connect(("127.0.0.1", int(sys.argv[1])))
key = base64.b64encode(os.urandom(16)).decode()
reader.sendall(
    f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: webmq.v1\r\n\r\n".encode()
)
head = b""
while b"\r\n\r\n" not in head:
    head += reader.recv(1)
listen = b"listen 1 measure.#"
reader.sendall(bytes([0x81, 0x80 | len(listen), 0, 0, 0, 0]) + listen)
print("reading", flush=True)

reader.settimeout(SILENCE_S)
waiting, lags, last, previous, disorder = b"", [], {}, -1, 0
taken, started = 0, time.time()
try:
    while True:
        ahead = taken / BYTES_PER_SECOND - (time.time() - started)
        if ahead > 0:
            time.sleep(ahead)
        chunk = reader.recv(1250)
        if not chunk:
            break
        # It does not catch up on time in which there was nothing to read.
        started = max(started, time.time() - taken / BYTES_PER_SECOND - 0.05)
        taken += len(chunk)
        waiting += chunk
        while len(waiting) >= 4:
            length, offset = waiting[1] & 127, 2
            if length == 126:
                length, offset = int.from_bytes(waiting[2:4], "big"), 4
            if len(waiting) < offset + length:
                break
            message, waiting = waiting[offset : offset + length], waiting[offset + length :]
            if message.startswith(b"message "):
                header, payload = message.split(b"\n", 1)
                value = json.loads(payload)
                lags.append(time.time() * 1000 - value["at"])
                disorder += value["n"] <= previous
                previous = value["n"]
                last[header.split()[1]] = value["last"]
except (TimeoutError, OSError):
    pass
lags.sort()
at = lambda share: round(lags[min(len(lags) - 1, int(len(lags) * share))]) if lags else None
print(
    json.dumps(
        {
            "messages": len(lags),
            "keys": len(last),
            "withLastValue": sum(last.values()),
            "outOfOrder": disorder,
            "lagMs": {"p50": at(0.5), "p99": at(0.99), "max": at(1)},
        }
    )
)
