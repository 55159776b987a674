"""A listener with the client that Sockudo's authors keep for Python. It says what it hears as lines of JSON.

Arguments: port, key of the app, channels. It ends when its standard input does.
"""

import asyncio
import json
import os
import sys
from typing import Any

from sockudo_python import (
    ConnectionState,
    SockudoClient,
    SockudoOptions,
    SockudoTransport,
    SubscriptionOptions,
    SubscriptionRewind,
)
from websockets.exceptions import WebSocketException

POLL_S = 0.1
REWIND_SECONDS = 60
# A connection that takes longer is begun anew.
ATTEMPT_S = 1.5


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


async def listen(port: int, key: str, channels: list[str]) -> None:
    client = SockudoClient(
        key,
        SockudoOptions(
            cluster="local",
            force_tls=False,
            ws_host="127.0.0.1",
            ws_port=port,
            # Otherwise it tries TLS between two attempts.
            enabled_transports=[SockudoTransport.WS],
            connection_recovery=True,
            message_deduplication_capacity=100_000,
            max_reconnect_attempts=None,
            max_reconnect_gap_in_seconds=1.0,
        ),
    )
    waiting = set(channels)
    # What a rewind brings before the server has said whether a recovery is complete: a gap is told before it.
    held: dict[str, list[int]] = {}

    def told(channel: str, is_recovered: bool) -> None:
        say(what="told", channel=channel, isRecovered=is_recovered)

    def release() -> None:
        for channel, numbers in held.items():
            for number in numbers:
                say(what="message", channel=channel, number=number)
        held.clear()

    def subscribed(channel: str) -> None:
        if channel in waiting:
            waiting.discard(channel)
            if not waiting:
                say(what="live")

    def connected(*_: Any) -> None:
        release()
        # It asks for a recovery only of channels whose position it knows: of others it says nothing at all.
        if not waiting:
            for channel in channels:
                if channel in client._channel_positions:
                    held[channel] = []
                else:
                    told(channel, False)

    def resumed(payload: Any, _: Any) -> None:
        for each in payload["failed"]:
            told(each["channel"], False)
        release()
        for each in payload["recovered"]:
            told(each["channel"], True)

    def message(channel: str, number: int) -> None:
        if channel in held:
            held[channel].append(number)
        else:
            say(what="message", channel=channel, number=number)

    client.bind("connected", connected)
    client.bind("sockudo:resume_success", resumed)
    for name in channels:
        rewind = SubscriptionRewind.seconds_back(REWIND_SECONDS)
        channel = client.subscribe(name, SubscriptionOptions(rewind=rewind))
        channel.bind(
            "sockudo:subscription_succeeded", lambda *_, name=name: subscribed(name)
        )
        channel.bind(
            "message", lambda data, _, name=name: message(name, data["number"])
        )
    await keep_connected(client)


async def keep_connected(client: SockudoClient) -> None:
    """The client gives up when an attempt fails, or when the server closes with 1000 or 1001. An application goes on."""
    clock = asyncio.get_running_loop().time
    wanted_at = clock()
    while True:
        is_open = client.socket is not None and client.socket.close_code is None
        if is_open and client.connection_state is ConnectionState.CONNECTED:
            wanted_at = clock() + ATTEMPT_S
        elif clock() >= wanted_at:
            wanted_at = clock() + ATTEMPT_S
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    await client.disconnect()
                    await client.connect()
            except (OSError, WebSocketException):
                wanted_at = clock() + POLL_S
        await asyncio.sleep(POLL_S)


async def main() -> None:
    _, port, key, *channels = sys.argv
    # Attempts that failed: the loop above goes on.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    listening = asyncio.create_task(listen(int(port), key, channels))
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait([listening, ended], return_when=asyncio.FIRST_COMPLETED)
    if listening.done():
        listening.result()
    os._exit(0)


asyncio.run(main())
