"""Sessions, windows and panes as results tell them: one row each, made of what tmux says of them.

A listing is asked with a `Kind`'s template. A tool that changes something asks for the row of its
target in the same invocation, after the change::

    question = rows.ask(rows.pane_kind(client), pane_id)
    printed = await client.call(command("has-session", ...), ..., question.command)
    return question.answer(printed)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final, Generic, TypeVar

import msgspec

from tmuxmcp.errors import NotFound
from tmuxmcp.terminal import guards
from tmuxmcp.terminal.guards import Caller
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Command, command, target
from tmuxmcp.tmux.records import Template, new_nonce


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session. `attached` counts the clients that show it; `group` is of sessions that share windows."""

    session_id: str
    name: str
    windows: int
    attached: int = 0
    created: str
    """ISO 8601, UTC."""
    group: str = ""
    active_pane_id: str


class Window(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A window in one session; one that is linked into several has a row, and an index, in each."""

    window_id: str
    index: int
    name: str
    session_id: str
    session: str
    panes: int
    active: bool = False
    """Whether it is its session's current window."""
    width: int
    height: int
    layout: str
    """As tmux writes it: JSON from tmux 3.8 on."""
    zoomed: bool = False
    synchronized: bool = False
    active_pane_id: str


class Pane(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pane. Sizes and places are in cells, places from the window's top left corner."""

    pane_id: str
    index: int
    window_id: str
    session_id: str
    session: str
    """Of a pane whose window is in several sessions: the one asked for, else one of them."""
    active: bool = False
    """Whether it is its window's active pane."""
    width: int
    height: int
    left: int
    top: int
    title: str = ""
    command: str = ""
    """The name of the program in the foreground."""
    path: str = ""
    pid: int = 0
    """Of the pane's first process; tmux 3.8 forgets it when that has ended."""
    tty: str = ""
    dead: bool = False
    """Whether its program has ended and remain-on-exit keeps the pane."""
    dead_status: int | msgspec.UnsetType = msgspec.UNSET
    in_mode: bool = False
    alternate_screen: bool = False
    is_caller: bool = False
    """Whether this server process itself lives in the pane."""


Row = TypeVar("Row", bound=msgspec.Struct)
_NOBODY: Final = Caller()


@dataclass(frozen=True)
class Kind(Generic[Row]):
    """What tmux is asked about one kind of object, and how the answer is read."""

    name: str
    template: Template
    read: Callable[[Mapping[str, str]], Row]


class Question(Generic[Row]):
    """A row to be asked for within a larger invocation: `command` goes in, `answer` reads what came out."""

    def __init__(self, kind: Kind[Row], id: str) -> None:
        self._kind = kind
        self._id = id
        self._nonce = new_nonce()
        self.command: Command = kind.template.ask(command("display-message", "-t", target(id)), self._nonce)

    def answer(self, printed: str) -> Row:
        """Raises `NotFound` when the object was gone by the time that tmux came to the question."""
        answers = self._kind.template.parse(printed, self._nonce)
        # tmux answers with empty values, and success, for a target that does not exist; up to 3.3a a pane
        # still has an id when the last session that it was in is gone.
        if not answers or not answers[0]["session_id"]:
            raise NotFound(f"There is no {self._kind.name} {self._id} any more.", target=self._id)
        return self._kind.read(answers[0])


def ask(kind: Kind[Row], id: str) -> Question[Row]:
    """Ask for the row of `id`: an id of the kind, or of a session its ``=name:``.

    Put ``has-session`` for the same target before it, unless the object has just been made.
    """
    return Question(kind, id)


async def row(client: Client, kind: Kind[Row], id: str) -> Row:
    """The row of `id`, in one tmux process. Raises `NotFound`."""
    question = ask(kind, id)
    return question.answer(await client.call(command("has-session", "-t", target(id)), question.command))


async def changed(client: Client, kind: Kind[Row], id: str, *changes: Command) -> Row:
    """Change an object that has to exist, in one tmux process. Returns its row as it is then."""
    question = ask(kind, id)
    exists = command("has-session", "-t", target(id))
    return question.answer(await client.call(exists, *changes, question.command))


async def session_row(client: Client, id: str) -> Session:
    """The row of a session, by ``$N`` or ``=name:``. Raises `NotFound`."""
    return await row(client, SESSION, id)


async def window_row(client: Client, id: str) -> Window:
    """The row of a window, by ``@N``. Raises `NotFound`."""
    return await row(client, WINDOW, id)


async def pane_row(client: Client, id: str) -> Pane:
    """The row of a pane, by ``%N``. Raises `NotFound`."""
    return await row(client, pane_kind(client), id)


def pane_kind(client: Client) -> Kind[Pane]:
    """`PANE`, with `is_caller` told apart: for panes that have not just been made."""
    caller = guards.caller(client.socket, os.environ)
    return Kind(PANE.name, PANE.template, partial(_pane, caller=caller))


def iso_time(seconds: str) -> str:
    """tmux's seconds since 1970 as ISO 8601, in UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _session(answer: Mapping[str, str]) -> Session:
    return Session(
        session_id=answer["session_id"],
        name=answer["name"],
        windows=int(answer["windows"]),
        attached=int(answer["attached"]),
        created=iso_time(answer["created"]),
        group=answer["group"],
        active_pane_id=answer["active_pane_id"],
    )


def _window(answer: Mapping[str, str]) -> Window:
    return Window(
        window_id=answer["window_id"],
        index=int(answer["index"]),
        name=answer["name"],
        session_id=answer["session_id"],
        session=answer["session"],
        panes=int(answer["panes"]),
        active=answer["active"] == "1",
        width=int(answer["width"]),
        height=int(answer["height"]),
        layout=answer["layout"],
        zoomed=answer["zoomed"] == "1",
        synchronized="1" in answer["synchronized"],
        active_pane_id=answer["active_pane_id"],
    )


def _pane(answer: Mapping[str, str], caller: Caller = _NOBODY) -> Pane:
    status = answer["dead_status"]
    return Pane(
        pane_id=answer["pane_id"],
        index=int(answer["index"]),
        window_id=answer["window_id"],
        session_id=answer["session_id"],
        session=answer["session"],
        active=answer["active"] == "1",
        width=int(answer["width"]),
        height=int(answer["height"]),
        left=int(answer["left"]),
        top=int(answer["top"]),
        title=answer["title"],
        command=answer["command"],
        path=answer["path"],
        pid=int(answer["pid"] or 0),
        tty=answer["tty"],
        dead=answer["dead"] == "1",
        dead_status=int(status) if status else msgspec.UNSET,
        in_mode=answer["in_mode"] not in ("", "0"),
        alternate_screen=answer["alternate_screen"] == "1",
        is_caller=_is_caller(answer, caller),
    )


def _is_caller(answer: Mapping[str, str], caller: Caller) -> bool:
    """What `Caller.format` says, without the work that it makes for tmux in each row of a long list."""
    pane_pid, server_pid = answer["pid"], answer["server_pid"]
    by_environment = (caller.server_pid, f"%{caller.pane_number}") == (server_pid, answer["pane_id"])
    return by_environment or (bool(pane_pid) and (int(pane_pid), int(server_pid)) in caller.parents)


SESSION = Kind(
    "session",
    Template(
        session_id="#{session_id}",
        name="#{session_name}",
        windows="#{session_windows}",
        attached="#{session_attached}",
        created="#{session_created}",
        group="#{session_group}",
        active_pane_id="#{pane_id}",
    ),
    _session,
)
WINDOW = Kind(
    "window",
    Template(
        window_id="#{window_id}",
        index="#{window_index}",
        name="#{window_name}",
        session_id="#{session_id}",
        session="#{session_name}",
        panes="#{window_panes}",
        active="#{window_active}",
        width="#{window_width}",
        height="#{window_height}",
        layout="#{window_layout}",
        zoomed="#{window_zoomed_flag}",
        # An option of each pane; one that has it on duplicates its input.
        synchronized="#{P:#{pane_synchronized}}",
        active_pane_id="#{pane_id}",
    ),
    _window,
)
PANE = Kind(
    "pane",
    Template(
        pane_id="#{pane_id}",
        index="#{pane_index}",
        window_id="#{window_id}",
        session_id="#{session_id}",
        session="#{session_name}",
        active="#{pane_active}",
        width="#{pane_width}",
        height="#{pane_height}",
        left="#{pane_left}",
        top="#{pane_top}",
        title="#{pane_title}",
        command="#{pane_current_command}",
        path="#{pane_current_path}",
        pid="#{pane_pid}",
        tty="#{pane_tty}",
        dead="#{pane_dead}",
        dead_status="#{pane_dead_status}",
        in_mode="#{pane_in_mode}",
        alternate_screen="#{alternate_on}",
        server_pid="#{pid}",
    ),
    _pane,
)
