"""Shell commands that a terminal should survive: the same ones for the same seed, shell and pane size.

A case says how far what it prints can be compared with a run of the same shell outside of tmux. What a shell
adds on its own (who reports an error, which job ended) is told apart by `Compare` and `Case.jobs`;
`tests.reference` holds the narrow rules for it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests import corpus_common, corpus_fish, corpus_posix
from tests.dialects import Compare, Entry, Shell


@dataclass(frozen=True)
class Case:
    """One command. `jobs` is how many background jobs it starts."""

    shell: str
    name: str
    command: str
    compare: Compare = Compare.OUTPUT
    jobs: int = 0


def generate(shell: str, *, seed: int = 1, width: int = 80, height: int = 24) -> list[Case]:
    """Return the cases of a shell for a pane of this size, in a shuffled order."""
    tools = Shell(shell, random.Random(f"{seed} {shell}"), width, height)
    own = corpus_fish if shell == "fish" else corpus_posix
    cases: dict[str, Case] = {}
    for kind in (*corpus_common.KINDS, *own.KINDS):
        for number, entry in enumerate(kind(tools)):
            command, compare, jobs = _entry(entry)
            cases.setdefault(command, Case(shell, f"{kind.__name__}/{number}", command, compare, jobs))
    shuffled = list(cases.values())
    tools.random.shuffle(shuffled)
    return shuffled


def _entry(entry: Entry) -> tuple[str, Compare, int]:
    match entry:
        case str():
            return entry, Compare.OUTPUT, 0
        case command, compare:
            return command, compare, 0
        case _:
            return entry
