"""Lines on standard error that never make the server wait for a reader.

Some clients do not read a server's standard error. Its pipe is then full after 64 kB, and an
ordinary write would block every call.
"""

from __future__ import annotations

import os
import select

FD = 2


def write_line(text: str) -> bool:
    """Write one line. False when nobody reads, and then the line, or its end, is lost.

    A pipe that `select` calls ready takes at least ``PIPE_BUF`` bytes without blocking.
    """
    data = text.replace("\n", " ").encode("utf-8", "backslashreplace") + b"\n"
    try:
        while data:
            if not select.select([], [FD], [], 0)[1]:
                return False
            data = data[os.write(FD, data[: select.PIPE_BUF]) :]
    except (OSError, ValueError):
        return False
    return True
