"""The run handle: names a command that was still running when its call returned.

It holds no state of ours, so any process that reads the same pane can wait for the command's end.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from typing import Final, NamedTuple, NoReturn

from tmuxmcp.errors import InvalidCursor
from tmuxmcp.terminal.panes import State
from tmuxmcp.terminal.shells import Marks

_LAYOUT: Final = struct.Struct(">8sIIQI")
_CHECK: Final = struct.Struct(">I")


class Handle(NamedTuple):
    """A command in one program's output in one pane of one tmux server."""

    nonce: str
    pane: int
    server_pid: int
    server_start: int
    pane_pid: int

    @classmethod
    def of(cls, marks: Marks, state: State) -> Handle:
        """The handle of the command with these marks, in the pane that is in this state."""
        pid, _, start = state.server.partition(":")
        return cls(marks.nonce, int(state.pane_id[1:]), int(pid), int(start), state.pid)

    def encode(self) -> str:
        """Write it as an opaque ASCII text of 44 characters."""
        body = _LAYOUT.pack(bytes.fromhex(self.nonce), *self[1:])
        return base64.urlsafe_b64encode(body + _CHECK.pack(zlib.crc32(body))).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> Handle:
        """Read what `encode` wrote. Raises `InvalidCursor` when it is damaged or something else."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            _refuse("is damaged or not one of ours")
        body, check = raw[: _LAYOUT.size], raw[_LAYOUT.size :]
        if len(body) != _LAYOUT.size or check != _CHECK.pack(zlib.crc32(body)):
            _refuse("is damaged or not one of ours")
        nonce, pane, server_pid, server_start, pane_pid = _LAYOUT.unpack(body)
        return cls(nonce.hex(), pane, server_pid, server_start, pane_pid)

    @property
    def marks(self) -> Marks:
        return Marks(self.nonce)

    def check(self, state: State) -> None:
        """Raise `InvalidCursor` unless the handle belongs to the pane that is in this state."""
        if self.pane != int(state.pane_id[1:]):
            _refuse(f"belongs to pane %{self.pane}, not to {state.pane_id}")
        if f"{self.server_pid}:{self.server_start}" != state.server:
            _refuse("belongs to a tmux server that has ended")
        if self.pane_pid != state.pid and not (state.dead and not state.pid):
            _refuse(f"belongs to a program that pane {state.pane_id} ran before it was respawned")


def _refuse(what: str) -> NoReturn:
    raise InvalidCursor(f"The run handle {what}. Take `run` from the result of run_shell_command.")
