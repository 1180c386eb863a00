"""Evidence that a pane is as it was at the last look, without asking tmux again.

What a pane's program prints, the tmux server has to read, and Linux counts a process's reads. As long
as the count stands still, and the pane's first process lives, another look would see the same. Other
systems do not tell: there every look is taken. What changes a pane without output, such as a new width,
is not witnessed; so looks are still taken, only less often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tmuxmcp.terminal.panes import State
from tmuxmcp.terminal.processes import lives


class Witness:
    """Watches for one pane, from look to look."""

    def __init__(self, state: State) -> None:
        self._server = int(state.server.partition(":")[0])
        self._process = state.pid
        self._seen: int | None = None
        self._cost = 0
        self.sure = False
        """Whether the last look has seen all that was printed before its end."""

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Put this around a look. It makes the server read too: the name of the pane's program."""
        before = self.reads()
        yield
        self._seen = self.reads()
        cost = 0 if self._seen is None or before is None else self._seen - before
        # One that cost more than the last may have missed what was read just after it. One that cost
        # nothing was not answered by this process: its id is that of another, in a container's own count.
        self.sure = 0 < cost == self._cost
        self._cost = cost

    @property
    def still(self) -> bool:
        """Whether nothing can have been printed since the last look."""
        return self.sure and self.reads() == self._seen and lives(self._process)

    def reads(self) -> int | None:
        """How often the server has read anything so far; None where that is not told."""
        return _reads(self._server)


_READS = re.compile(rb"^syscr: (\d+)$", re.MULTILINE)


def _reads(pid: int) -> int | None:
    """How many read calls a process has made; None where that is not told."""
    try:
        with open(f"/proc/{pid}/io", "rb", buffering=0) as file:
            found = _READS.search(file.read())
    except OSError:
        return None
    return int(found[1]) if found else None
