"""A service whose tools do nothing to tmux: what the server around them does can be seen alone.

The rows are the manifest's own, so their sinks, openers and nesting are real. Run as a module it
serves them on standard input and output.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

import anyio
import msgspec
from msgspec import UNSET, Meta, UnsetType

from tmuxmcp import manifest, resources, server, surface, transport
from tmuxmcp.audit import Audit
from tmuxmcp.errors import PaneBusy
from tmuxmcp.server import Service
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.terminal.clock import Clock
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.ambient import Ambient
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.socket import resolve
from tmuxmcp.tools import Call, Function

SECRET = "s3cret"
FOUND = Found(server_state="absent", ambient=Ambient("quiet", server_exists=False))


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    pass


class Listing(msgspec.Struct, omit_defaults=True):
    sessions: list[dict[str, str]]
    more: bool = False


async def list_sessions(call: Call, args: Arguments) -> Listing:
    """List the sessions."""
    return Listing(sessions=[{"session_id": "$0", "name": "ä"}])


class PaneId(Arguments, frozen=True):
    pane_id: Annotated[str, Meta(pattern="^%[0-9]+$")]


class Content(msgspec.Struct, omit_defaults=True):
    content: str
    lines: int = 0


async def capture_pane(call: Call, args: PaneId) -> Content:
    """Read a pane."""
    call.touched.append(args.pane_id)
    return Content(content=f"in {args.pane_id}\n", lines=1)


class Keys(PaneId, frozen=True):
    text: str | UnsetType = UNSET


async def send_keys(call: Call, args: Keys) -> Content:
    """Fail in the way that the text names."""
    if args.text == "busy":
        raise PaneBusy("vim runs in it. Use send_keys.", program="vim")
    if args.text == "grouped":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_keys, call, Keys(pane_id=args.pane_id, text="busy"))
    raise ValueError(f"a defect that quotes {args.text} and {args.pane_id}")


class Wait(PaneId, frozen=True):
    timeout: float = 30


waiting: list[str] = []
"""The panes of the waits under way."""


async def wait_for_text(call: Call, args: Wait) -> Content:
    """Wait until cancelled, and report progress ten times a second of the terminal's clock."""
    waiting.append(args.pane_id)
    try:
        while True:
            elapsed = call.terminal.clock.now() - call.arrived
            await call.progress(elapsed, args.timeout, f"{elapsed:g}")
            if elapsed >= args.timeout:
                return Content(content="")
            await call.terminal.clock.sleep(0.125)
    finally:
        waiting.remove(args.pane_id)


class Operation(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    tool: str
    arguments: dict[str, Any] = {}


class Operations(Arguments, frozen=True):
    operations: Annotated[list[Operation], Meta(min_length=1, max_length=16)]


class Results(msgspec.Struct):
    results: list[Any]


async def call_read_tools_batch(call: Call, args: Operations) -> Results:
    """Call several."""
    return Results(
        [await call.nested(i, each.tool, each.arguments) for i, each in enumerate(args.operations)]
    )


async def kill_session(call: Call, args: Arguments) -> Content:
    """Kill a session."""
    raise AssertionError("it is not enabled")


FUNCTIONS = {
    function.__name__: Function(function, arguments, result)
    for function, arguments, result in (
        (list_sessions, Arguments, Listing),
        (capture_pane, PaneId, Content),
        (wait_for_text, Wait, Content),
        (call_read_tools_batch, Operations, Results),
        (send_keys, Keys, Content),
        (kill_session, Arguments, Content),
    )
}
"""In manifest order."""


async def _capabilities() -> Mapping[str, Any]:
    return {"name": "tmuxmcp"}


def service(
    *,
    audit: str = "off",
    clock: Clock | None = None,
    ambient: surface.Ambient = "quiet",
    advertised: Callable[[], Awaitable[None]] | None = None,
    capabilities: Callable[[], Awaitable[Mapping[str, Any]]] = _capabilities,
) -> Service:
    """A service with the default toolsets but teardown. `advertised` is waited for before tools/list."""
    rows = manifest.load(resources.manifest_text())
    rows = MappingProxyType({name: rows[name] for name in FUNCTIONS})
    offered = surface.resolve(
        rows, Settings(toolsets=surface.DEFAULT_TOOLSETS), server_state="absent", ambient=ambient
    )

    async def advertise() -> surface.Surface:
        if advertised is not None:
            await advertised()
        return offered

    async def found() -> Found:
        return FOUND

    return Service(
        terminal=Terminal(Client(FakeRunner(), resolve("name:tmuxmcp", os.environ), "tmux"), clock),
        settings=Settings(),
        functions=FUNCTIONS,
        audit=Audit(audit),
        instructions="What to know.",
        surface=offered,
        advertised=advertise,
        found=found,
        capabilities=capabilities,
    )


if __name__ == "__main__":
    made = service()
    transport.run(lambda read, write: server.serve(made, read, write))
