"""What keeps a direct call from ending this process, or from deleting on a server that is not ours.

Both checks are tmux formats, so that the invocation that acts is the one that checks. They cover the
tools that use them and nothing else: a command typed into a pane, or another tmux client, can do the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from tmuxmcp.errors import NoServer, NotFound, ProvenanceUnknown, SelfKill, ToolError
from tmuxmcp.terminal.processes import parent_of
from tmuxmcp.tmux import sinks
from tmuxmcp.tmux.client import Client, Server
from tmuxmcp.tmux.command import Command, command, target
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.socket import Socket

Scope = Literal["pane", "window", "session"]
"""What a call ends."""


class Caller(NamedTuple):
    """How tmux can tell the pane that this process lives in.

    TMUX and TMUX_PANE name it, when TMUX is about the pinned socket. Clients that start their servers
    with a clean environment drop both; where the system has /proc, the parents of the process tell too.
    """

    server_pid: str = ""
    pane_number: str = ""
    parents: tuple[tuple[int, int], ...] = ()
    """(process, its parent), from this process upwards."""

    @property
    def format(self) -> str:
        """A tmux format that is true of that pane only. It holds no `%`, which display-message would read."""
        chain = "".join(f"{child}.{parent}_" for child, parent in self.parents)
        by_parents = f"#{{m:*_#{{pane_pid}}.#{{pid}}_*,_{chain}}}"
        by_environment = f"#{{m:{self.server_pid}.?{self.pane_number},#{{pid}}.#{{pane_id}}}}"
        return f"#{{||:{by_environment},{by_parents}}}" if self.server_pid else by_parents


def caller(socket: Socket, environ: Mapping[str, str]) -> Caller:
    """Find out how to recognise our own pane, without asking tmux."""
    parents = _parents(os.getpid())
    path, _, rest = environ.get("TMUX", "").rpartition(",")[0].rpartition(",")
    pane = re.fullmatch(r"%(\d+)", environ.get("TMUX_PANE", ""))
    if not path or not rest.isdigit() or pane is None:
        return Caller(parents=parents)
    if os.path.realpath(path) != os.path.realpath(socket.path):
        return Caller(parents=parents)
    return Caller(rest, pane[1], parents)


async def caller_pane(client: Client, environ: Mapping[str, str]) -> str | None:
    """The id of the pane on the pinned socket that this process lives in, or None when there is none."""
    listing = command("list-panes", "-a", "-f", caller(client.socket, environ).format)
    try:
        rows = await client.rows(listing=listing, template=Template(pane_id="#{pane_id}"))
    except (NoServer, NotFound):
        return None
    return rows[0]["pane_id"] if rows else None


@cache
def _parents(pid: int) -> tuple[tuple[int, int], ...]:
    """A process and its ancestors. One that ends later leaves a pair that matches nothing."""
    chain = []
    while pid > 1 and (parent := parent_of(pid)) is not None:
        chain.append((pid, parent))
        pid = parent
    return tuple(chain)


class Refusal(NamedTuple):
    """A condition in tmux's format language, over the target, and the error of a call that meets it."""

    condition: str
    error: ToolError


def self_kill(caller: Caller, tool: str, scope: Scope, id: str) -> Refusal:
    """Refuse to end our own pane.

    A window is refused when it holds that pane; a session when it is the only one that does: a window
    that another session is linked to, or that belongs to a session group, outlives the session.
    """
    ours = f"#{{?{caller.format},#{{pane_id}},}}"
    condition = {"pane": ours, "window": f"#{{P:{ours}}}", "session": ""}[scope]
    if scope == "session":
        here = f"#{{W:#{{P:{ours}}}}}"
        condition = f"#{{&&:{here},#{{==:{here},#{{S:{here}}}}}}}"
    return Refusal(
        condition,
        SelfKill(
            f"{tool} was refused: this MCP server itself runs in {scope} {id} and would end with it. Nothing "
            "was changed. Leave that one to the person at the terminal. (Only direct calls of kill_pane, "
            "kill_window, kill_session and respawn_pane are checked.)",
            target=id,
        ),
    )


def foreign_server(own: Server | None, tool: str, setting: str) -> Refusal:
    """Refuse on any tmux server but the one that this process started; `setting` would allow it."""
    same = f"#{{m:{own.pid}.{own.start_time},#{{pid}}.#{{start_time}}}}" if own else "0"
    return Refusal(
        f"#{{?{same},0,1}}",
        ProvenanceUnknown(
            f"{tool} is on by default only for a tmux server that this process started, and the one on the "
            f"socket was started by something else: its sessions may be someone else's. Nothing was changed. "
            f"To delete there, set {setting} and restart this MCP server.",
            setting=setting,
        ),
    )


class Guard:
    """Acts unless one of `refusals` holds, in one tmux invocation.

    Ask for `format` in the same invocation, before `command`, and give the answer to `check`.
    """

    def __init__(self, *refusals: Refusal) -> None:
        self._refusals = refusals
        self.format = ""
        for number, refusal in reversed(list(enumerate(refusals, 1))):
            self.format = f"#{{?{refusal.condition},{number},{self.format}}}"

    def command(self, pane_target: str, act: Command) -> Command:
        """`act`, unless refused. Its own target has to be explicit: `pane_target` is for the conditions."""
        return choose(pane_target, self.format, otherwise=act)

    def check(self, answer: str) -> None:
        """Raise the error of the refusal that tmux answered, if any."""
        if answer:
            raise self._refusals[int(answer) - 1].error


def choose(
    pane_target: str, condition: str, then: Command | None = None, otherwise: Command | None = None
) -> Command:
    """Run one of two commands, by a condition in tmux's format language. Their own targets are explicit."""
    return command(
        *("if-shell", "-F", "-t", target(pane_target), condition),
        *("" if act is None else _script(act) for act in (then, otherwise)),
    )


def _script(act: Command) -> str:
    """A command in tmux's own language, for the positions that parse one. Values pass their sinks."""
    words = (arg if isinstance(arg, str) else sinks.render(act.name, *arg) for arg in act.args)
    return " ".join((act.name, *map(_quoted, words)))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"
