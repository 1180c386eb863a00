"""The echo of what this process typed, which is not output.

A terminal in the mode of whole lines shows them at once, and a line editor as it reads them: what was
typed ahead of a prompt is shown by both. zsh and ksh93 break a long line at the pane's edge, and for
tmux those are lines of their own (zsh 5.9, ksh93u+m, tmux 3.3a).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from tmuxmcp.terminal.foreground import group_of
from tmuxmcp.terminal.panes import ANY, Memory

_Expected = tuple[str, int | None]
"""The text of a typed line, and what it was typed ahead of."""


class Echo:
    """Takes the echo of what was typed `since` then out of a pane's lines, each typed line once."""

    def __init__(self, memory: Memory, since: int) -> None:
        self._memory = memory
        self._since = since
        self._used: Counter[_Expected] = Counter()
        self._rest = ""
        """What is to come in the next lines of a typed line that began at the end of the last one."""

    def without(self, text: str, old: int = 0, *, broken: bool = False) -> tuple[str, int]:
        """A line without the echo, and how much of its beginning is `old`: was there before.

        It may be `broken`: end at the pane's edge, or not be finished, with the rest of the echo to come.
        """
        rest, self._rest = self._rest, ""
        body = text[old:].strip()
        if rest and body and rest.startswith(body):
            self._rest = rest[len(body) :].strip()
            return text[:old], old
        if rest and body.startswith(rest):
            return text[:old] + body[len(rest) :], old
        typed = (line for line in tuple(self._memory.typed) if line.at >= self._since)
        for expected, times in Counter((each.text, each.ahead_of) for each in typed).items():
            if self._used[expected] == times:
                continue
            line, ahead_of = expected
            part, start = line, self._start(line, text, old, ahead_of, broken)
            if start is None and broken and (part := _beginning(line, text)):
                # Where something stood at the right edge of the row, it has been written over.
                start = self._start(part, text, 0, ahead_of, broken)
            if start is not None:
                self._used[expected] += 1
                self._rest = line[len(part) :].strip()
                return text[:start] + text[start + len(part) :], min(old, start)
        return text, old

    def used(self) -> tuple[Counter[_Expected], str]:
        """What was found so far, to `restore` when a line is looked at again."""
        return self._used.copy(), self._rest

    def restore(self, used: tuple[Counter[_Expected], str]) -> None:
        """Forget what was found since."""
        self._used, self._rest = used

    def _start(self, line: str, text: str, old: int, ahead_of: int | None, broken: bool) -> int | None:
        """Where the echo of a line stands in a text."""
        if ahead_of is not None:
            start = self._behind_prompt(line, text, ahead_of, broken)
            return start if start is not None and start >= old else None
        # A short answer can be part of a word that a program prints.
        found = re.search(rf"(?<!\w){re.escape(line)}(?!\w)", text[old:])
        return old + found.start() if found else None

    def _behind_prompt(self, line: str, text: str, ahead_of: int, broken: bool) -> int | None:
        """Where the line stands behind the prompt that came after the process that it was typed ahead of.

        What looks like a prompt is one only if that process has ended: it may print the line itself.
        """
        shown, line = text.rstrip(), line.rstrip()
        if broken and not shown.endswith(line):
            shown = shown.rpartition("  ")[0].rstrip()  # left of what stands at the right edge
        if not shown.endswith(line):
            return None
        prompt = shown.removesuffix(line)
        known = prompt.rstrip() and prompt.rstrip() == self._memory.shown_prompt
        return len(prompt) if known or (_PROMPT.search(prompt) and self._ended(ahead_of)) else None

    def _ended(self, group: int) -> bool:
        """Whether a program's process group has ended; where the shell had the terminal, it was a `read`."""
        if group == ANY or self._memory.seen is None:
            return group == ANY
        return group != self._memory.seen.pid and group_of(self._memory.seen.pid) not in (0, group)


def _beginning(line: str, text: str) -> str:
    """As much of a long line's beginning as a text ends with; nothing if that may as well be output."""
    start = text.find(line[:_LEAST]) if len(line) > _LEAST else -1
    while start >= 0 and not line.startswith(text[start:]):
        start = text.find(line[:_LEAST], start + 1)
    return text[start:] if start >= 0 else ""


_LEAST: Final = 8
_PROMPT: Final = re.compile("[$#%>\u276f\u279c\u00bb\u203a\u03bb] *\\Z")
"""How the prompts of shells end, where none is known."""
