"""Typing into a pane, in one tmux invocation that checks and acts.

Text goes through a paste buffer that is filled from standard input: it is in no process list, of any
length, and needs no quoting. Buffers carry the process id and start of their owner, and are deleted
in the invocation that makes them; what a killed owner left is swept at the first use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from anyio import CancelScope

from tmuxmcp.errors import ToolError
from tmuxmcp.terminal.panes import STATE, State, Terminal
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.records import new_nonce

_PREFIX = "tmuxmcp-"
_OWNER = f"{os.getpid()}-{time.time_ns() // 1000}"


class Stroke(NamedTuple):
    """What is typed: first the keys `before`, then `text`, then `keys` (names of tmux keys)."""

    text: str = ""
    keys: Sequence[str] = ()
    before: Sequence[str] = ()
    bracketed: bool = False


class Typed(NamedTuple):
    """The pane as it was when the stroke was typed, and what the commands that went along printed."""

    state: State
    printed: str


class Keyboard:
    """Types into panes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._numbers = count()
        self._swept = False

    async def type(self, pane_id: str, stroke: Stroke, *, along: Sequence[Command] = ()) -> Typed:
        """Type a stroke, in one invocation that first runs `along` and checks the pane.

        With synchronised panes only this pane is reached. Raises `NotFound`, `PaneDead` and
        `PaneInMode`; then nothing was typed.
        """
        client = self._terminal.client
        buffer = await self._buffer() if stroke.text else ""
        nonce = new_nonce()
        act = [f"send-keys -t {pane_id} {' '.join(map(_word, stroke.before))}"] if stroke.before else []
        if buffer:
            flags = "-p " if stroke.bracketed else ""
            # From 3.7 on, a paste without -S turns control characters into visible text.
            raw = "-S " if (await client.version()) >= (3, 7) else ""
            act.append(f"paste-buffer {flags}{raw}-d -r -b {buffer} -t {pane_id}")
        if stroke.keys:
            act.append(f"send-keys -t {pane_id} {' '.join(map(_word, stroke.keys))}")
        commands = [
            command("has-session", "-t", target(pane_id)),
            *([command("load-buffer", "-b", Arg("-b", buffer), "-")] if buffer else []),
            *along,
            command("display-message", "-p", "-t", target(pane_id), STATE.format(nonce)),
            command(
                *("if-shell", "-F", "-t", target(pane_id), _ACCEPTS),
                *(" ; ".join(act), f"delete-buffer -b {buffer}" if buffer else ""),
            ),
        ]
        try:
            printed = await client.call(*commands, stdin=stroke.text.encode())
        except BaseException:
            if buffer:
                with CancelScope(shield=True), suppress(ToolError):
                    await client.call(command("delete-buffer", "-b", Arg("-b", buffer)), timeout=1.0)
            raise
        state = State.parse(STATE.parse(printed, nonce)[0])
        state.check_accepts_input()
        return Typed(state, printed)

    async def type_everywhere(self, pane_id: str, stroke: Stroke, *, along: Sequence[Command] = ()) -> Typed:
        """Type a stroke that every synchronised pane of the window receives, as only send-keys does.

        A text beyond one tmux message takes several invocations; `along` runs before the first one.
        """
        texts = [stroke.text[at : at + _CHUNK] for at in range(0, len(stroke.text), _CHUNK)]
        acts = [command("send-keys", "-t", target(pane_id), "-l", "--", Arg("TEXT", text)) for text in texts]
        if stroke.keys:
            keys = (Arg("KEY", key) for key in stroke.keys)
            acts.append(command("send-keys", "-t", target(pane_id), *keys))
        nonce = new_nonce()
        has = command("has-session", "-t", target(pane_id))
        tell = command("display-message", "-p", "-t", target(pane_id), STATE.format(nonce))
        printed = await self._terminal.client.call(has, *along, tell, *acts[:1])
        for act in acts[1:]:
            await self._terminal.client.call(has, act)
        return Typed(State.parse(STATE.parse(printed, nonce)[0]), printed)

    async def _buffer(self) -> str:
        """The name of a new buffer. The first one costs a look for those of dead owners."""
        if not self._swept:
            self._swept = True
            await self._sweep()
        return f"{_PREFIX}{_OWNER}-{next(self._numbers)}"

    async def _sweep(self) -> None:
        client = self._terminal.client
        listing = await client.call(command("list-buffers", "-F", "#{buffer_name}"))
        dead = [name for name in listing.splitlines() if name.startswith(_PREFIX) and not _owner_lives(name)]
        for name in dead:
            with suppress(ToolError):  # another process of ours sweeps too
                await client.call(command("delete-buffer", "-b", Arg("-b", name)))


_ACCEPTS = "#{?pane_in_mode,0,#{?pane_dead,0,1}}"
_CHUNK = 3000  # of four bytes at most: a tmux message holds 16,364


def _word(key: str) -> str:
    """A checked key name as one word of tmux's own command language."""
    return f'"{key}"' if "'" in key else f"'{key}'"


def _owner_lives(buffer: str) -> bool:
    owner = buffer.removeprefix(_PREFIX).rpartition("-")[0]
    if owner == _OWNER:
        return True
    pid = owner.partition("-")[0]
    if not pid.isdigit() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
