"""What prompts look like on the screen: they come back changed, and with what was printed before them."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final


def alike(line: str, prompt: str) -> bool:
    """Whether a line is the prompt but for a directory, begins and ends as it did, or nearly is the same.

    The rest may tell a status, a directory or the time. A program may ask with the words that a prompt begins
    with, and must not be given what is meant for the shell: so how it ends counts too.
    """
    line = _FILL.split(line)[-1].rpartition("^C")[2].rstrip()  # ksh93 goes on in the line of the interrupt
    prompt = prompt.rstrip()
    around = _DIRECTORY.sub("/", line)
    if around.strip(" /") and around == _DIRECTORY.sub("/", prompt):
        return True
    begins, ends = _common(line, prompt), _common(line[::-1], prompt[::-1])
    sizes = len(line), len(prompt)
    if 0 < begins >= min(sizes) / 2 and line[-1:] == prompt[-1:]:
        return True
    return 0 < ends >= max(sizes) / 2


def follows_interrupt(text: str) -> bool:
    """Whether all that stands below the last C-c is what can be a prompt, whatever it looks like."""
    return _INTERRUPTED.search(_FILL.sub("\n", text).rstrip()) is not None


def cut(text: str, prompted: str, *, right: bool) -> str:
    """`text` without the prompt at its end, which may have several lines: those that end `prompted` too.

    With `right` a part of its last line stands at the right edge.
    """
    text = _RIGHT.sub("", text.rstrip("\n ")) if right else text
    lines, prompt = _FILL.sub("\n", text).split("\n"), prompted.rstrip("\n ").split("\n")
    lines.pop()
    prompt.pop()
    while lines and prompt and "^C" not in lines[-1] and _ratio(lines[-1], prompt[-1]) > 0.5:
        lines.pop()
        prompt.pop()
    return "\n".join(lines)


# zsh marks output without a final line break with % or #, and fills the row with blanks, which can make
# its prompt the continuation of that line.
_FILL: Final = re.compile(r"[%#] {9,}")
_DIRECTORY: Final = re.compile(r"[~/][^\s:()\[\]$#%>]*")
_RIGHT: Final = re.compile(r" {4,}(?:(?! {4})[^\n])+\Z")
# What the terminal echoes for C-c, and the lines of a prompt.
_INTERRUPTED: Final = re.compile(r"\^C *\n(?:[^\n]*\n){0,4}[^\n]+\Z")


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
