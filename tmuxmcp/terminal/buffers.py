"""tmux paste buffers for text on its way to a pane, and nothing left of them.

A buffer is filled from standard input: its text is in no process list, of any length, and needs no
quoting. The invocation that makes it deletes it as well. Names carry the process id and the time of
their owner, so that what a killed owner left behind can be told from what a living one uses.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

from anyio import CancelScope

from tmuxmcp.errors import NoServer, ServerGone, ToolError
from tmuxmcp.terminal.processes import lives
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command

_PID: Final = os.getpid()
_BORN: Final = time.time_ns() // 1000
_NAME: Final = re.compile(r"tmuxmcp-(?P<pid>\d+)-(?P<born>\d+)-\d+")
_CLEANUP_SECONDS: Final = 1.0
# Between the time that `ps` tells of a process and the time in its buffers' names.
_CLOCK_SECONDS: Final = 2.0


class Buffers:
    """The paste buffers of this process on the pinned server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = count()
        self._lent: set[str] = set()
        self._swept = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[str]:
        """The name of a new buffer, for one invocation that fills, uses and deletes it.

        When that fails or is cancelled, the buffer is deleted here. The first loan costs a look for
        the buffers of dead owners.
        """
        if not self._swept:
            await self._sweep()
        name = f"tmuxmcp-{_PID}-{_BORN}-{next(self._numbers)}"
        self._lent.add(name)
        try:
            yield name
        except BaseException:
            with CancelScope(shield=True):
                await self._delete(name)
            raise
        finally:
            self._lent.discard(name)

    async def _sweep(self) -> None:
        """Delete what dead owners left, and what this process could not delete at the time."""
        try:
            listing = await self._client.call(command("list-buffers", "-F", "#{buffer_name}"))
        except (NoServer, ServerGone):
            return
        self._swept = True
        for name in listing.splitlines():
            match = _NAME.fullmatch(name)
            if match is not None and name not in self._lent and not await self._is_used(match):
                await self._delete(name)

    async def _is_used(self, name: re.Match[str]) -> bool:
        """Whether the process that named a buffer lives."""
        pid, born = int(name["pid"]), int(name["born"])
        if pid == _PID:
            return False
        if not lives(pid):
            return False
        # Its process id may have gone to another process since.
        with suppress(ToolError):
            answer = await self._client.runner.run(
                ["ps", "-o", "etime=", "-p", str(pid)], timeout=_CLEANUP_SECONDS, max_output=1000
            )
            age = _seconds(answer.stdout.decode("ascii", "replace"))
            return age is None or time.time() - age <= born / 1e6 + _CLOCK_SECONDS
        return True

    async def _delete(self, name: str) -> None:
        try:
            await self._client.try_call(
                command("delete-buffer", "-b", Arg("-b", name)), timeout=_CLEANUP_SECONDS
            )
        except ToolError:
            self._swept = False


def _seconds(elapsed: str) -> int | None:
    """Read the time that `ps -o etime=` tells: ``[[days-]hours:]minutes:seconds``."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", elapsed.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
