"""What the system tells of a process by its id."""

from __future__ import annotations

import os


def lives(pid: int) -> bool:
    """Whether there is such a process. One that the system hides from us is there."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def parent_of(pid: int) -> int | None:
    """The parent of a process, or None where /proc does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None
