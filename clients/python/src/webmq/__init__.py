"""WebMQ for asyncio: topics of a message broker over WebSocket, with recovery.

async with webmq.Client("ws://localhost:8080/ws") as client:
    async with client.listen("chat.#") as listener:
        await client.publish("chat.42", {"text": "hi"})
        async for item in listener:
            match item:
                case webmq.Message(key=key, payload=payload):
                    print(key, payload)
                case webmq.Gap():
                    ...  # load again what was derived from messages
"""

from .client import Client, History, Status
from .errors import WebMQError
from .groups import Membership
from .listening import Gap, Listener, Message
from .presence import Member, Presence, PresenceChange, PresenceWatch
from .publishes import Accepted
from .state import Change, State
from .streams import StreamPart, StreamReader, StreamWriter

__all__ = [
    "Accepted",
    "Change",
    "Client",
    "Gap",
    "History",
    "Listener",
    "Member",
    "Membership",
    "Message",
    "Presence",
    "PresenceChange",
    "PresenceWatch",
    "State",
    "Status",
    "StreamPart",
    "StreamReader",
    "StreamWriter",
    "WebMQError",
]
