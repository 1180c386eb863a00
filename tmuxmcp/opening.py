"""How a connection opens: with the handshake, or with a probe that a client may give up.

The client's first request decides which protocol the SDK speaks on a connection, for good. A client of both
eras asks `server/discover` first; when nothing comes back in time, because a server starts slowly, the
specification has it go on with `initialize` on the same connection. The SDK would refuse that: it has
answered the probe by then. So the SDK gets a new start as long as nothing but probes has come.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from tmuxmcp.transport import Inbound, Outbound

Run = Callable[[Inbound, Outbound], Coroutine[Any, Any, None]]


async def serve(run: Run, read: Inbound, write: Outbound) -> None:
    """Serve a connection with `run`, started anew for an `initialize` before which only probes came."""

    def begin() -> MemoryObjectSendStream[SessionMessage | Exception]:
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](float("inf"))
        serving.start_soon(run, receive, write)
        return send

    async with anyio.create_task_group() as serving, read:
        relay = begin()
        probed = opened = False
        async for item in read:
            match None if opened else _request(item):
                case None:
                    pass
                case "server/discover":
                    probed = True
                case method:
                    opened = True
                    if probed and method == "initialize":
                        relay.close()
                        relay = begin()
            with suppress(anyio.BrokenResourceError):
                relay.send_nowait(item)
        relay.close()


def _request(item: SessionMessage | Exception) -> str | None:
    """The method of a request; None for anything else."""
    message = item.message if isinstance(item, SessionMessage) else None
    return message.method if isinstance(message, JSONRPCRequest) else None
