"""The tmux server of the pinned socket, as get_server_info describes it."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, Struct, UnsetType

from tmuxmcp.errors import NoServer, ServerGone
from tmuxmcp.terminal.rows import iso_time
from tmuxmcp.tmux.client import Client, Provenance, Server
from tmuxmcp.tmux.command import command
from tmuxmcp.tmux.records import Template

Ambient = Literal["quiet", "active", "unknown"]

_SERVER: Final = Template(pid="#{pid}", start_time="#{start_time}", version="#{version}", sessions="#{S:.}")


class ServerInfo(Struct, omit_defaults=True, kw_only=True):
    """`started` is ISO 8601; `ambient` is what startup found of hooks and command aliases."""

    running: bool
    socket: str
    socket_form: Literal["name", "inherit", "path"]
    resolved_socket_path: str
    attach_command: str
    tmux_version: str
    """The server's; without one, the program's."""
    pid: int | UnsetType = UNSET
    started: str = ""
    sessions: int
    server_state: Literal["absent", "started", "existing"]
    configuration_provenance: Provenance
    ambient: Ambient


async def describe(client: Client, program: str, ambient: Ambient) -> ServerInfo:
    """Ask for the server, in one tmux process. `program` is the tmux that a person attaches with."""
    info = ServerInfo(
        running=False,
        socket=client.socket.selector,
        socket_form=client.socket.form,
        resolved_socket_path=client.socket.path,
        attach_command=client.socket.attach_command(program),
        tmux_version="",
        sessions=0,
        server_state="absent",
        configuration_provenance="unknown",
        ambient=ambient,
    )
    try:
        (row,) = await client.rows(listing=command("display-message"), template=_SERVER)
    except (NoServer, ServerGone):
        info.tmux_version = str(await client.version())
        return info
    server = Server(int(row["pid"]), int(row["start_time"]))
    info.running = True
    info.tmux_version = row["version"]
    info.pid = server.pid
    info.started = iso_time(row["start_time"])
    info.sessions = len(row["sessions"])
    info.server_state = "started" if server == client.own else "existing"
    info.configuration_provenance = client.provenance(server)
    return info
