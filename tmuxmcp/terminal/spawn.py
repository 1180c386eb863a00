"""Starting pane programs: new sessions, windows and panes, and a new program in an old pane.

A start directory never reaches tmux as an argument where tmux takes it from its client's working
directory. Only `respawn-pane` does not: there it is escaped. Either way the pane is looked at
afterwards, because tmux silently starts programs elsewhere when it cannot enter a directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import msgspec

from tmuxmcp.errors import DuplicateName, InvalidDirectory, NoServer, NotFound, PaneGone, ServerGone
from tmuxmcp.terminal import rows, stream
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.guards import Guard, caller, self_kill
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.terminal.targets import session_target
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.names import check_name
from tmuxmcp.tmux.records import Template, new_nonce

Direction = Literal["below", "right", "above", "left"]
"""Where a new pane goes, seen from the pane that is split."""

_SIDES: Final[Mapping[Direction, tuple[str, ...]]] = {
    "below": ("-v",),
    "right": ("-h",),
    "above": ("-v", "-b"),
    "left": ("-h", "-b"),
}
_SIZE: Final = Template(columns="#{window_width}", rows="#{window_height}")
_MADE: Final = Template(
    **stream.STATE.fields,
    **_SIZE.fields,
    session_id="#{session_id}",
    session="#{session_name}",
    window_id="#{window_id}",
    path="#{pane_current_path}",
)
# How long a pane's program may take to be in the directory in which it was started, and the pause
# between two looks at it: a fork and a few system calls, mostly over before the first look.
_SETTLE_SECONDS: Final = 1.0
_GLANCE_SECONDS: Final = 0.002


class Made(NamedTuple):
    """A new pane and what holds it. Sizes are in cells, of the window."""

    session_id: str
    session: str
    window_id: str
    pane_id: str
    width: int
    height: int
    pane_width: int
    pane_height: int
    path: str
    """The directory that its program was started in, as tmux tells it."""
    cursor: Cursor
    """The beginning of its output."""


class Restarted(NamedTuple):
    """A pane with a new program."""

    pane: rows.Pane
    cursor: Cursor
    """The beginning of the new program's output."""


def start_directory(value: str | None) -> str:
    """The absolute path of a start directory; None is this process's own working directory.

    Raises `InvalidDirectory`.
    """
    if value is None:
        try:
            return os.getcwd()
        except OSError:
            raise InvalidDirectory(
                "This server's own working directory does not exist any more. Pass start_directory."
            ) from None
    path = os.path.expanduser(value)
    if path.startswith("~"):
        raise InvalidDirectory("start_directory names a user that does not exist. Write the path itself.")
    if not os.path.isabs(path):
        raise InvalidDirectory("start_directory is relative. Give a path that begins with / or with ~.")
    try:
        found = os.stat(path)
    except OSError as error:
        raise InvalidDirectory(
            f"start_directory cannot be used: {error.strerror}. Create the directory first, or give another."
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise InvalidDirectory("start_directory is not a directory. Give the directory itself.")
    if not os.access(path, os.X_OK):
        raise InvalidDirectory("start_directory may not be entered by this user. Give another directory.")
    return path


async def new_session(
    terminal: Terminal,
    name: str | None,
    window_name: str | None,
    directory: str | None,
    width: int,
    height: int,
) -> Made:
    """Create a session of exactly this size, and the tmux server if there is none.

    Raises `InvalidName`, `InvalidDirectory` and `DuplicateName`; then nothing was created.
    """
    client = terminal.client
    named = ("-s", Arg("-s", check_name("session", name))) if name is not None else ()
    titled = ("-n", Arg("-n", check_name("window", window_name))) if window_name is not None else ()
    size = ("-x", Arg("-x", str(width)), "-y", Arg("-y", str(height)))
    path = start_directory(directory)
    new = command("new-session", "-d", *named, *titled, *size)
    try:
        row = (await client.start(new, template=_MADE, cwd=path)).row
    except DuplicateName as error:
        raise await _duplicate(terminal, name or "", error) from None
    if (row["columns"], row["rows"]) != (str(width), str(height)):
        # tmux 3.2a ignores the size of a session that nobody is attached to.
        window = target(row["window_id"])
        resize = command(
            "resize-window", "-t", window, "-x", Arg("-x", str(width)), "-y", Arg("-y", str(height))
        )
        listing = command("display-message", "-t", window)
        row |= (
            await client.rows(
                resize, listing=listing, template=Template(**stream.STATE.fields, **_SIZE.fields)
            )
        )[0]
    return await _made(terminal, row, path)


async def _duplicate(terminal: Terminal, name: str, error: DuplicateName) -> DuplicateName:
    existing = target(f"={name}:")
    with suppress(NotFound, NoServer):
        row = (
            await terminal.client.rows(
                command("has-session", "-t", existing),
                listing=command("display-message", "-t", existing),
                template=Template(session_id="#{session_id}"),
            )
        )[0]
        return DuplicateName(
            f"A session of this name exists: {row['session_id']}. Work in it, or choose another name.",
            **{**error.details, **row},
        )
    return error


async def new_window(
    terminal: Terminal, session: str, name: str | None, directory: str | None, *, select: bool
) -> Made:
    """Create a window at the session's next free index.

    Raises `NotFound`, `InvalidName` and `InvalidDirectory`.
    """
    titled = ("-n", Arg("-n", check_name("window", name))) if name is not None else ()
    path = start_directory(directory)
    holder = await session_target(terminal.client, session)
    place = Arg("-t", holder if holder.endswith(":") else f"{holder}:")
    new = command("new-window", *_stay(select), "-t", place, *titled)
    return await _make(terminal, command("has-session", "-t", target(holder)), new, path)


async def split(
    terminal: Terminal,
    pane_id: str,
    direction: Direction,
    size: str | None,
    directory: str | None,
    *,
    select: bool,
) -> Made:
    """Split a pane; `size` of the new one is in cells, or a percentage (``30%``).

    Raises `NotFound`, `NoSpace` and `InvalidDirectory`.
    """
    sized = ("-l", Arg("-l", size)) if size is not None else ()
    path = start_directory(directory)
    new = command("split-window", *_stay(select), *_SIDES[direction], *sized, "-t", target(pane_id))
    return await _make(terminal, command("has-session", "-t", target(pane_id)), new, path)


def _stay(select: bool) -> tuple[str, ...]:
    return () if select else ("-d",)


async def _make(terminal: Terminal, exists: Command, new: Command, path: str) -> Made:
    nonce = new_nonce()
    printed = await terminal.client.call(exists, _MADE.ask(new, nonce), cwd=path)
    return await _made(terminal, _MADE.parse_one(printed, nonce), path)


async def _made(terminal: Terminal, row: Mapping[str, str], path: str) -> Made:
    terminal.made(row["pane_id"])
    try:
        where = await _settled(terminal, row["pane_id"], row["pane_pid"], row["path"], path)
    except (NotFound, NoServer, ServerGone):
        raise PaneGone(
            f"Pane {row['pane_id']} was created, but closed at once: its program ended. Check the "
            "default-shell and default-command of this tmux server, and the shell's start-up files.",
            pane_id=row["pane_id"],
        ) from None
    return Made(
        row["session_id"],
        row["session"],
        row["window_id"],
        row["pane_id"],
        int(row["columns"]),
        int(row["rows"]),
        int(row["width"]),
        int(row["height"]),
        where,
        Cursor.fresh({name: row[name] for name in stream.STATE.fields}),
    )


async def respawn(
    terminal: Terminal, pane_id: str, shell_command: str | None, directory: str | None, *, kill: bool
) -> Restarted:
    """Start the pane's program anew, or `shell_command` in its place; with `kill` also while it runs.

    Raises `NotFound`, `InvalidDirectory`, `SelfKill`, and `InvalidArgument` for a program that runs.
    """
    client = terminal.client
    path = start_directory(directory)
    guard = Guard(self_kill(caller(client.socket, os.environ), "respawn_pane", "pane", pane_id))
    program = ("--", Arg("COMMAND", shell_command)) if shell_command is not None else ()
    flags = ("-k",) if kill else ()
    act = command("respawn-pane", *flags, "-c", Arg("-c", path), "-t", target(pane_id), *program)
    refused = Template(answer=guard.format)
    asked, nonce = new_nonce(), new_nonce()
    question = rows.ask(rows.pane_kind(client), pane_id)
    shown = command("display-message", "-t", target(pane_id))
    printed = await client.call(
        command("has-session", "-t", target(pane_id)),
        refused.ask(shown, asked),
        guard.command(pane_id, act),
        stream.STATE.ask(shown, nonce),
        question.command,
    )
    guard.check(refused.parse_one(printed, asked)["answer"])
    terminal.restarted(pane_id)
    row = stream.STATE.parse_one(printed, nonce)
    pane = question.answer(printed)
    where = path
    with suppress(NotFound, NoServer, ServerGone):  # a command may well end at once, and its pane with it
        where = await _settled(terminal, pane_id, row["pane_pid"], pane.path, path)
    # tmux still tells its own name for a program that has not been executed yet.
    return Restarted(msgspec.structs.replace(pane, path=where, command=""), Cursor.fresh(row))


async def _settled(terminal: Terminal, pane_id: str, pid: str, seen: str, path: str) -> str:
    """The directory of a pane's new program, once it is `path`; else whatever tmux tells after a while.

    `seen` is what tmux told when it had just started the program, which may not have got there yet.
    Raises `NotFound` when the pane has closed.
    """
    clock = terminal.clock
    deadline = clock.now() + _SETTLE_SECONDS
    while not _is_same(seen, path):
        late = clock.now() >= deadline
        where = None if late else _working_directory(pid)
        if where is None:
            where, dead = await _ask_directory(terminal, pane_id)
            if late or dead:
                return where or path
        seen = where
        await clock.sleep(_GLANCE_SECONDS)
    return seen


def _working_directory(pid: str) -> str | None:
    """What tmux itself looks at where there is /proc, without a process for it."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


async def _ask_directory(terminal: Terminal, pane_id: str) -> tuple[str, bool]:
    pane = target(pane_id)
    row = (
        await terminal.client.rows(
            command("has-session", "-t", pane),
            listing=command("display-message", "-t", pane),
            template=Template(path="#{pane_current_path}", dead="#{pane_dead}"),
        )
    )[0]
    return row["path"], row["dead"] == "1"


def _is_same(seen: str, path: str) -> bool:
    try:
        return os.path.samefile(seen, path)
    except (OSError, ValueError):
        return False
