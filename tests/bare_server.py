"""A server with nothing but the transport and the SDK, whose tools do what makes shutting down hard."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server

from tmuxmcp import transport

Context = ServerRequestContext[Any]


async def _echo(ctx: Context, text: str = "") -> str:
    return text


async def _hang(ctx: Context, mark: str = "") -> str:
    """Never ends; its cleanup takes a moment and opens a file for writing."""
    try:
        await ctx.session.report_progress(1)
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.05)
            if mark:
                Path(mark).open("w").close()
    return ""


async def _block_thread(ctx: Context) -> str:
    """Waits for a thread that does not end."""
    await ctx.session.report_progress(1)
    await anyio.to_thread.run_sync(threading.Event().wait)
    return ""


async def _abandon_thread(ctx: Context) -> str:
    """Leaves a thread behind that does not end."""
    await ctx.session.report_progress(1)
    await anyio.to_thread.run_sync(threading.Event().wait, abandon_on_cancel=True)
    return ""


async def _spin(ctx: Context) -> str:
    """Holds the event loop itself."""
    await ctx.session.report_progress(1)
    while True:
        pass


async def _print(ctx: Context) -> str:
    """Prints, as does a child, which also reads."""
    print("stray", flush=True)
    os.write(1, b"stray\n")
    child = await anyio.run_process(
        ["sh", "-c", "echo stray; cat >&2"], stdin=None, stdout=None, stderr=subprocess.PIPE
    )
    return child.stderr.decode()


TOOLS = {each.__name__[1:]: each for each in (_echo, _hang, _block_thread, _abandon_thread, _spin, _print)}


async def _list(ctx: Context, params: object) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
    )


async def _call(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = await TOOLS[params.name](ctx, **params.arguments or {})
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def main() -> None:
    server: Server[Any] = Server("bare", on_list_tools=_list, on_call_tool=_call)
    options = server.create_initialization_options()
    transport.run(lambda read, write: server.run(read, write, options))


if __name__ == "__main__":
    main()
