"""The proof that capture_since neither loses nor repeats a line silently: a writer, a reader and a judge.

The writer is a program in a pane. It prints numbered lines of any width in bursts far beyond the
history limit, among lines that all look alike, rewrites unfinished lines, clears the screen and the
history, and goes to the alternate screen and back. Meanwhile the window is resized and the history
cleared from outside, and the reader reads with any limits and pauses. The judge knows what the
writer printed: what was read has to be that, in one piece, except where a result says that lines
may be missing.

``python -m tests.model_capture_since --lines 1000000 --history-limit 2000`` runs it at any size.
"""

from __future__ import annotations

import argparse
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import anyio
from msgspec import UNSET

from tests.conftest import TMUX
from tmuxmcp.errors import InvalidCursor
from tmuxmcp.terminal.capture import Since, capture_since
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.runner import ProcessRunner
from tmuxmcp.tmux.socket import resolve

WIDTH = 80
NARROWEST = 20
ALIKE = (
    "$ ",
    "",
    "identical line",
    "ok",
    "identical and wide, so that it wraps: 0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKL",
)
NARROW = "abcdefghijklmnopqrstuvwxyz      .,:;/-_#%{}[]()<>\\'\"0123456789éüe\u0301"
WIDE = NARROW + "漢字かな🙂"
CLEARS = ("\x1b[H\x1b[2J", "\x1b[H\x1b[J", "\x1b[3J", "\x1b[H\x1b[2J\x1b[3J", "\x1b[3J\x1b[H\x1b[J", "\x1bc")
IDLE_SECONDS = 10.0
"""After which the writer has printed all."""
PAINT = "~"
"""What the alternate screen is painted with."""
NUMBER = re.compile(r"([0-9]{7}):")


class Step(NamedTuple):
    """What the writer does at once, the lines that are ended by it, and how long it rests then."""

    bytes: str
    lines: tuple[str, ...] = ()
    rest: float = 0.0


@dataclass(frozen=True)
class Model:
    """What is run. `rate` is the lines that the writer prints a second, on average: a burst takes no time."""

    seed: int
    lines: int
    history_limit: int
    rate: float = 5000.0
    outside: bool = True
    """Whether the window is resized and the history cleared from outside."""

    def writer(self) -> str:
        """The shell command that is the writer."""
        numbers = {
            "seed": self.seed,
            "lines": self.lines,
            "history-limit": self.history_limit,
            "rate": self.rate,
        }
        words = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        words += ["--write"] if self.outside else ["--write", "--quiet"]
        return shlex.join(["exec", sys.executable, "-m", "tests.model_capture_since", *words])


def script(model: Model) -> Iterator[Step]:
    """What the writer prints: `model.lines` lines or some more, the last ones numbered.

    When the window is resized, lines that wrap hold no wide characters: tmux 3.3a then breaks such lines
    in two, and goes on writing at the end of a line that was ended. And the line break is one sequence,
    as a resize between CR and LF makes any terminal go on in the middle of the next line.
    """
    history_limit, rate = model.history_limit, model.rate
    end = "\x1bE" if model.outside else "\r\n"
    chance = random.Random(model.seed)
    clears = chance.choice((0.0, 0.02, 0.1))
    number = 0
    printed = 0
    while printed < model.lines:
        burst = min(model.lines - printed, 1 + int(chance.paretovariate(1.1) * max(1, history_limit // 50)))
        if chance.random() < 0.02:
            burst = min(model.lines - printed, history_limit * chance.randint(1, 3))
        rest = min(1.0, burst / rate * chance.expovariate(1))
        done = 0
        while done < burst:
            kind = chance.random()
            if kind < 0.25:
                same = chance.choice(ALIKE)
                times = chance.choice((1, 1, 1, 2, 3, 5, 20)) if chance.random() < 0.995 else history_limit
                times = min(times, 5000)
                yield Step(f"{same}{end}" * times, (same.rstrip(),) * times)
                done += times
                continue
            number += 1
            text = _numbered(chance, number, model.outside)
            done += 1
            if kind < 0.30:
                yield from _rewritten(chance, text, end)
            elif kind < 0.34:
                cut = chance.randrange(len(text))
                yield Step(text[:cut], (), _blink(chance, rate))
                yield Step(f"{text[cut:]}{end}", (text,))
            else:
                yield Step(f"{text}{end}", (text,))
        printed += done
        if chance.random() < clears:
            # Blank lines at the end of the screen are not kept by tmux when the screen is cleared.
            number += 1
            yield Step(f"{number:07d}: clear{end}", (f"{number:07d}: clear",))
            yield Step(chance.choice(CLEARS))
        if chance.random() < 0.05:
            yield from _alternate(chance, rate)
        yield Step("", (), rest)
    for _ in range(10):
        number += 1
        yield Step(f"{number:07d}: end{end}", (f"{number:07d}: end",))


def _numbered(chance: random.Random, number: int, resized: bool) -> str:
    longest = chance.choice(
        (10, 30, 30, 60, WIDTH, 3 * WIDTH, 3 * WIDTH, 900 if chance.random() < 0.1 else 1)
    )
    size = chance.randrange(longest)
    wraps = resized and 8 + 2 * size > NARROWEST
    return f"{number:07d}:{''.join(chance.choices(NARROW if wraps else WIDE, k=size))}".rstrip()


def _rewritten(chance: random.Random, text: str, end: str) -> Iterator[Step]:
    """A line that the program goes back to the start of, as progress bars do."""
    for percent in range(0, 100, 25):
        yield Step(f"\r{percent:3d}% done", (), 0.001 if chance.random() < 0.1 else 0.0)
    text = text.replace("\u0301", "").rstrip().ljust(NARROWEST // 2, "+")
    yield Step(f"\r{text}{end}", (text,))


def _alternate(chance: random.Random, rate: float) -> Iterator[Step]:
    yield Step("\x1b[?1049h")
    for _ in range(chance.randint(1, 5)):
        place = f"\x1b[{chance.randint(1, 40)};{chance.randint(1, 10)}H"
        yield Step(place + PAINT * chance.randint(1, 9), (), _blink(chance, rate))
    yield Step("\x1b[?1049l")


def _blink(chance: random.Random, rate: float) -> float:
    return chance.expovariate(1) * 50 / rate if chance.random() < 0.2 else 0.0


def write(model: Model) -> None:
    """Be the writer, then wait to be ended."""
    out = sys.stdout.buffer
    for step in script(model):
        out.write(step.bytes.encode())
        if step.rest or not step.lines:
            out.flush()
        if step.rest:
            time.sleep(step.rest)
    out.flush()
    sys.stdin.read()


def _is_part(whole: str, pieces: list[str], *, rest: bool = False) -> bool:
    """Whether a line begins with these, with blanks between them, or with `rest` holds them anywhere."""
    pattern = " *".join(map(re.escape, pieces))
    return (re.search if rest else re.match)(pattern, whole) is not None


def _is_split(whole: str, pieces: list[str], *, rest: bool = False) -> bool:
    """Whether a line, or with `rest` the end of it, is these pieces with blanks between them."""
    pattern = " *".join(map(re.escape, pieces))
    return re.fullmatch(f".*{pattern}" if rest else pattern, whole) is not None


@dataclass
class Judge:
    """Compares what was read with what was printed."""

    lines: list[str]
    at: int = 0
    """Where in `lines` the next one to be read stands, unless `gap`."""
    gap: bool = True
    least: int = 0
    pending: list[str] = field(default_factory=list)
    """Lines read since a gap, as long as none of them has a number that tells their place."""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        numbered = ((NUMBER.match(line), at) for at, line in enumerate(self.lines))
        self.place = {match[1]: at for match, at in numbered if match}

    def take(self, since: Since) -> None:
        """Raises `AssertionError` when a result is not what has to come next."""
        assert since.lines == (since.content.count("\n") + 1 if since.content or since.lines else 0), since
        self.counts["reads"] += 1
        if since.missed_at_least is not UNSET:
            self.counts[f"missed_at_least ({since.reason})"] += 1
            self.settle()
            # A piece of a line that tmux has split may be left, whose rest is missing.
            self.pending.clear()
            self.gap = True
            self.least = since.missed_at_least
        elif since.lines:
            assert since.missed == 0, since
        read = since.content.split("\n") if since.lines else []
        self.pending += read
        self.counts["lines"] += len(read)
        if not self.gap or any(NUMBER.match(line) for line in self.pending[1:]):
            self.settle()

    def settle(self) -> None:
        """Find the place of the lines read since a gap, and compare them."""
        lines, self.pending = self.pending, []
        after_gap = self.gap
        if not lines:
            return
        if after_gap:
            at = self._after_gap(lines)
            # What is left of a line that was wiped may be the rest of the one that was read last.
            rest = at == self.at - 1 and lines[0] != self.lines[at] and self.least == 0
            assert rest or at >= self.at + self.least, (
                f"line {at} was read, {self.at} had to come, and {self.least} were said to be missing"
            )
            self.counts["lines missing where it was said"] += max(0, at - self.at)
            self.counts["times none was missing, though it could not be told"] += at <= self.at
            self.at, self.gap = at, False
        fit = self._fit(lines, self.at, rest=after_gap)
        if fit is None:
            self._fail(lines)
        compared, printed = fit
        self.at += printed
        self.pending = lines[compared:]
        self.counts["lines split by tmux"] += compared - printed

    def _fit(self, lines: list[str], at: int, *, rest: bool) -> tuple[int, int] | None:
        """How many of these lines are how many of the printed ones from `at` on; None when they are others.

        tmux splits lines: going to the alternate screen, it forgets that the last row of the history
        runs on into the screen. With `rest` the first one may be the rest of a longer one.
        """
        compared = printed = 0
        if rest:
            compared = next((n for n in range(1, 5) if _is_split(self.lines[at], lines[:n], rest=True)), 0)
            if not compared:
                return (0, 0) if len(lines) < 4 and _is_part(self.lines[at], lines, rest=True) else None
            printed = 1
        while compared < len(lines) and at + printed < len(self.lines):
            whole = self.lines[at + printed]
            pieces = next((n for n in range(1, 5) if _is_split(whole, lines[compared : compared + n])), 0)
            if not pieces:
                break
            compared += pieces
            printed += 1
        left = lines[compared:]
        going_on = "".join(self.lines[at + printed : at + printed + 1])
        if left and (len(left) > 3 or not _is_part(going_on, left)):
            return None
        return compared, printed

    def _after_gap(self, lines: list[str]) -> int:
        """Where the lines that follow a gap stand."""
        for index, line in enumerate(lines[1:], 1):
            if (match := NUMBER.match(line)) and (at := self.place.get(match[1])) is not None:
                places = range(at, max(0, at - index) - 1, -1)
                break
        else:
            # Among lines that look alike the place is not known, but the first one is good enough.
            last = (
                self.at - 1
                if self.least == 0 and self.at and lines[0] != self.lines[self.at - 1]
                else self.at
            )
            places = range(last + self.least, len(self.lines))
        found = next((at for at in places if self._fit(lines, at, rest=True) is not None), None)
        if found is None:
            self._fail(lines)
        return found

    def _fail(self, lines: list[str]) -> NoReturn:
        expected = self.lines[self.at : self.at + len(lines)]
        at = next((at for at in range(len(expected)) if lines[at] != expected[at]), 0)
        raise AssertionError(
            f"at line {self.at + at} of {len(self.lines)}, the {at}th of {len(lines)} read:\n"
            f"read     {lines[max(0, at - 2) : at + 3]}\nexpected {expected[max(0, at - 2) : at + 3]}"
        )


async def prove(model: Model) -> Counter[str]:
    """Run a model on a tmux server of its own. Raises `AssertionError`; returns counts of what happened.

    The pane is then respawned with a smaller one, for which the cursor of the first has to be refused.
    """
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp") as directory:
        path = Path(directory).resolve() / "s"
        client = Client(ProcessRunner(), resolve(f"path:{path}", {}), TMUX)
        _tmux(client, "new-session", "-d", "-x", str(WIDTH), "-y", "24", "exec cat")
        try:
            _tmux(client, "set-option", "-g", "history-limit", str(model.history_limit))
            pane_id = _tmux(client, "new-window", "-dP", "-F", "#{pane_id}", model.writer()).strip()
            cursor = await _run(client, pane_id, model, counts)
            smaller = replace(model, seed=model.seed + 1000, lines=model.lines // 10)
            _tmux(client, "respawn-pane", "-k", "-t", pane_id, smaller.writer())
            try:
                await capture_since(client, pane_id, cursor)
            except InvalidCursor:
                await _run(client, pane_id, smaller, counts)
            else:
                raise AssertionError("the cursor of another program was taken")
        finally:
            _tmux(client, "kill-server")
    return counts


async def _run(client: Client, pane_id: str, model: Model, counts: Counter[str]) -> str:
    """Read all that one writer prints; returns the last cursor."""
    judge = Judge([line for step in script(model) for line in step.lines], counts=counts)
    judge.counts["printed"] += len(judge.lines)
    async with anyio.create_task_group() as tasks:
        if model.outside:
            tasks.start_soon(_disturb, client, pane_id, random.Random(model.seed + 1), judge)
        cursor = await _read(client, pane_id, random.Random(model.seed + 2), judge)
        tasks.cancel_scope.cancel()
    return cursor


async def _disturb(client: Client, pane_id: str, chance: random.Random, judge: Judge) -> None:
    while True:
        await anyio.sleep(chance.expovariate(4))
        if chance.random() < 0.25:
            _tmux(client, "clear-history", "-t", pane_id)
            judge.counts["cleared from outside"] += 1
        else:
            width = chance.choice((WIDTH, WIDTH, NARROWEST, chance.randint(NARROWEST, 3 * WIDTH)))
            height = chance.choice((24, chance.randint(5, 60)))
            _tmux(client, "resize-window", "-t", pane_id, "-x", str(width), "-y", str(height))
            judge.counts["resized"] += 1


async def _read(client: Client, pane_id: str, chance: random.Random, judge: Judge) -> str:
    cursor: str | None = None
    changed = time.monotonic()
    while cursor is None or judge.at < len(judge.lines):
        await anyio.sleep(chance.choice((0, 0, 0.002, 0.01, 0.05)))
        max_lines = chance.choice((1, 7, 50, 500, 5000, 5000, 50000))
        max_bytes = chance.choice((9000, 48000, 10_000_000))
        since = await capture_since(client, pane_id, cursor, max_lines=max_lines, max_bytes=max_bytes)
        assert len(since.cursor) <= 512
        if cursor is not None:
            judge.take(since)
        cursor = since.cursor
        if since.lines:
            changed = time.monotonic()
        elif time.monotonic() - changed > IDLE_SECONDS:
            judge.settle()
            assert judge.at == len(judge.lines), f"{len(judge.lines) - judge.at} lines at the end are missing"
    return cursor


def _tmux(client: Client, *args: str) -> str:
    argv = [client.binary, "-u", "-S", client.socket.path, "-f", "/dev/null", *args]
    return subprocess.run(argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--history-limit", type=int, action="append")
    parser.add_argument("--rate", type=float, default=5000.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="nothing is done to the window from outside")
    parser.add_argument("--write", action="store_true", help="be the writer")
    options = parser.parse_args()
    for history_limit in options.history_limit or [100, 2000, 50_000]:
        model = Model(options.seed, options.lines, history_limit, options.rate, not options.quiet)
        if options.write:
            return write(model)
        began = time.monotonic()
        counts = anyio.run(prove, model)
        print(f"history-limit {history_limit}, {time.monotonic() - began:.1f} s: {dict(counts)}", flush=True)
    return None


if __name__ == "__main__":
    main()
