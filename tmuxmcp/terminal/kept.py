"""What of some lines fits into a result, and how much does not."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple


class Kept(NamedTuple):
    """The lines that fit into a result, and how much did not."""

    lines: list[str]
    dropped_lines: int = 0
    dropped_bytes: int = 0


def keep_tail(lines: Sequence[str], max_lines: int, max_bytes: int) -> Kept:
    """Keep the last lines, the first of them cut at its beginning when not even one fits."""
    last = lines[max(0, len(lines) - max_lines) :]
    sizes = accumulate(len(line.encode()) + 1 for line in reversed(last))
    fitting = bisect_right(list(sizes), max_bytes + 1)  # the last line needs no line end
    kept, dropped = list(last[len(last) - fitting :]), lines[: len(lines) - fitting]
    dropped_bytes = sum(len(line.encode()) + 1 for line in dropped)
    if not kept and dropped and max_lines > 0:
        kept.append(_cut_head(dropped[-1], max_bytes))
        return Kept(kept, len(dropped) - 1, dropped_bytes - len(kept[0].encode()) - 1)
    return Kept(kept, len(dropped), dropped_bytes)


def keep_head(lines: Sequence[str], max_lines: int, max_bytes: int) -> Kept:
    """Keep the first lines, the last of them cut at its end when not even one fits."""
    kept: list[str] = []
    left = max_bytes
    for line in lines[:max_lines]:
        size = len(line.encode())
        if size > left and kept:
            break
        if size > left:
            line = _cut_tail(line, left)
            return Kept([line], 0, size - len(line.encode()))
        kept.append(line)
        left -= size + 1
    return Kept(kept)


def _cut_head(text: str, max_bytes: int) -> str:
    """The end of a text, in at most that many bytes; no character loses its accents or its other half."""
    cut = text.encode()[max(0, len(text.encode()) - max_bytes) :].decode("utf-8", "ignore")
    at = 0
    while at < len(cut) < len(text) and _joins(cut[at]):
        at += 1
    return cut[at:]


def _cut_tail(text: str, max_bytes: int) -> str:
    cut = text.encode()[:max_bytes].decode("utf-8", "ignore")
    at = len(cut)
    while 0 < at < len(text) and _joins(text[at]):
        at -= 1
    return text[:at]


def _joins(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me", "Cf")
