"""Lines on standard error that never make the server wait for a reader.

Some clients do not read a server's standard error. Its pipe is then full after 64 kB, and an
ordinary write would block every call.
"""

from __future__ import annotations

import os
import select

FD = 2


_torn = False


def write_line(text: str) -> bool:
    """Write one line. False when nobody reads, and then the line, or its end, is lost.

    A pipe that `select` calls ready takes at least ``PIPE_BUF`` bytes without blocking: on Linux a whole
    line of up to 4096, on macOS 512. What follows a line that was cut starts on a line of its own.
    """
    global _torn
    line = text.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n"
    rest = b"\n" + line if _torn else line
    try:
        while rest and select.select([], [FD], [], 0)[1]:
            rest = rest[os.write(FD, rest[: select.PIPE_BUF]) :]
            _torn = bool(rest)
    except (OSError, ValueError):
        return False
    return not rest
