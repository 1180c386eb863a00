"""Values that tmux has quoted or escaped in what it prints, as what they are."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(?:([0-7]{3})|(.))", re.DOTALL)
_LETTERS: Final = {
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "b": b"\b",
    "a": b"\a",
    "v": b"\v",
    "f": b"\f",
    "0": b"\0",
}


def unquote(text: str) -> str:
    """The value of one word of tmux's own language: bare, or in single or double quotes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return unescape(text)


def unescape(text: str) -> str:
    r"""Undo escapes: ``\"`` and the like, ``\n``, and ``\033``, which stands for one byte of UTF-8.

    tmux 3.4 and 3.5 also print control characters so where others print them as they are.
    """
    if "\\" not in text:
        return text
    pieces: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        octal, character = match.groups()
        pieces += (
            text[at : match.start()].encode(),
            bytes([int(octal, 8) & 0xFF]) if octal else _LETTERS.get(character, character.encode()),
        )
        at = match.end()
    return b"".join((*pieces, text[at:].encode())).decode("utf-8", "replace")
