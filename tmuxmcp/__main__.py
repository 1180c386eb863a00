"""The program: read the settings, look at the socket, say what is offered, serve.

Whatever is wrong with the settings is found before the MCP SDK is imported, which takes longer than
everything else here together. Whatever takes a tmux process happens while the client is served.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import anyio
import msgspec

from tmuxmcp import disclosure, manifest, resources, settings, startup, stderr, surface
from tmuxmcp.audit import Audit, AuditedRunner
from tmuxmcp.errors import StartupError, ToolError
from tmuxmcp.manifest import Manifest
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.surface import Surface
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.terminal.serverinfo import describe
from tmuxmcp.tmux import socket
from tmuxmcp.tmux.client import Client, find_binary
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import Socket
from tmuxmcp.tools import registry

TMUX_UNUSABLE = 1
NOT_STARTED = 2


def main() -> int:
    """Run with this process's arguments and environment. The result is an exit status."""
    # Of the hundreds of thousands of objects that a start makes, hardly any is garbage.
    gc.disable()
    try:
        decision = decide(sys.argv[1:], os.environ)
        if decision.settings.check:
            return check(decision)
        serve(decision)
    except StartupError as error:
        sys.stderr.write(f"tmuxmcp did not start.\n\n{error.message}\n\nAll settings: tmuxmcp --help\n")
        return NOT_STARTED


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is decided before anything is offered, and holds as long as the process."""

    settings: Settings
    socket: Socket
    manifest: Manifest
    glanced: Found

    def surface(self, found: Found) -> Surface:
        """The tools that are offered, with the hints that `found` is evidence for."""
        ambient = found.ambient.state if found.problem is None else "unknown"
        return surface.resolve(
            self.manifest, self.settings, server_state=self.glanced.server_state, ambient=ambient
        )

    def record(self, found: Found) -> dict[str, Any]:
        """The startup record."""
        return disclosure.record(self.settings, self.socket, self.surface(found), found)

    def client(self) -> Client:
        """What talks to tmux, with every command noted for the audit record."""
        program = find_binary(self.settings.tmux_bin)
        return Client(AuditedRunner(ProcessRunner()), self.socket, program, self.settings.tmux_config)


def decide(arguments: Sequence[str], environ: Mapping[str, str]) -> Decision:
    """Read the settings and glance at the socket. Raises `StartupError`."""
    chosen = settings.resolve(arguments, environ)
    pinned = socket.resolve(str(chosen.socket), environ)
    rows = manifest.load(resources.manifest_text())
    glanced = startup.glance(chosen, pinned)
    decision = Decision(settings=chosen, socket=pinned, manifest=rows, glanced=glanced)
    decision.surface(glanced)  # refuses names that do not exist
    return decision


def check(decision: Decision) -> int:
    """Print the startup record. The exit status says whether tmux can be used."""
    found = anyio.run(startup.look, decision.client(), decision.glanced)
    sys.stdout.write(_line(decision.record(found)) + "\n")
    return 0 if found.problem is None else TMUX_UNUSABLE


def serve(decision: Decision) -> NoReturn:
    """Serve the client on standard input and output; the process ends with the connection.

    Raises `StartupError` when the tools and the manifest do not agree.
    """
    functions = registry(decision.manifest)
    from tmuxmcp import server, transport  # with them comes the SDK

    client = decision.client()
    looked = Looked(decision, client)

    async def advertised() -> Surface:
        return decision.surface(await looked.found())

    async def capabilities() -> Mapping[str, Any]:
        found = await looked.found()
        try:
            now = await describe(client, decision.settings.tmux_bin, found.ambient.state)
        except ToolError:
            now = None
        return disclosure.capabilities(decision.record(found), decision.surface(found), now)

    offered = decision.surface(decision.glanced)
    service = server.Service(
        terminal=Terminal(client),
        settings=decision.settings,
        functions=functions,
        audit=Audit(decision.settings.audit),
        instructions=disclosure.instructions(
            decision.settings, decision.socket, offered, decision.glanced, os.environ
        ),
        surface=offered,
        advertised=advertised,
        found=looked.found,
        capabilities=capabilities,
    )

    async def run(inbound: transport.Inbound, outbound: transport.Outbound) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(looked.look)
            await server.serve(service, inbound, outbound)
            tasks.cancel_scope.cancel()

    gc.freeze()
    gc.enable()
    transport.run(run)


class Looked:
    """The look at the socket. It is taken while the client is served; who needs its result waits for it."""

    def __init__(self, decision: Decision, client: Client) -> None:
        self._decision = decision
        self._client = client
        self._done = anyio.Event()
        self._found = decision.glanced

    async def look(self) -> None:
        """Look, and print the startup record; what was not seen when the connection ends stays unknown."""
        try:
            self._found = await startup.look(self._client, self._decision.glanced)
        finally:
            self._done.set()
            stderr.write_line(_line(self._decision.record(self._found)))

    async def found(self) -> Found:
        await self._done.wait()
        return self._found


def _line(record: Mapping[str, Any]) -> str:
    return msgspec.json.encode(record).decode()


if __name__ == "__main__":
    sys.exit(main())
