"""Put cases to something that runs commands, and compare what it says with the reference."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple, Protocol

from tests.corpus import Case
from tests.reference import Reference, Result, difference

TIMEOUT_SECONDS = 20.0


class Subject(Protocol):
    """Runs commands in one shell that stays the same from one command to the next."""

    async def run(self, command: str, timeout: float) -> Result: ...

    async def renew(self) -> None:
        """Start over with a new shell: the last command did not complete."""


class Verdict(NamedTuple):
    """`wrong` says how a result differs from the reference; None when it is exact."""

    case: Case
    wrong: str | None


async def trial(
    subject: Subject, cases: Iterable[Case], reference: Reference, *, kept_lines: int
) -> AsyncIterator[Verdict]:
    """Run each case once, in the reference's directory. `kept_lines` is as in `difference`."""
    for case in cases:
        expected = reference.run(case.command)
        result = await subject.run(case.command, TIMEOUT_SECONDS)
        wrong = difference(case, expected, result, kept_lines=kept_lines)
        for stray in reference.terminal.directory.iterdir():
            wrong = f"{wrong or ''}\nleft a file: {stray.name!r}".lstrip("\n")
            stray.unlink()
        yield Verdict(case, wrong)
        if result.outcome != "completed":
            await subject.renew()
        elif case.jobs:
            await subject.run("wait", TIMEOUT_SECONDS)  # Else a later case shows how the job ended.
