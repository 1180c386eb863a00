"""Reading on in a pane whose history is full: the normal state of one that lives long.

How far its rows have moved is not known then, only that it is a whole number of drops.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.bench import Bench, Counting
from tests.test_capture import PROVEN, Screen, lines, missed
from tests.test_cursor import Pane, numbered
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.place import suspect
from tmuxmcp.tmux.runner import Output

LIMIT = 5000


class Weighing(Counting):
    """A runner that also counts the bytes that tmux answers."""

    size = 0

    async def run(self, argv: object, **how: object) -> Output:
        output = await super().run(argv, **how)
        self.size += len(output.stdout)
        return output


@pytest.fixture
def runner() -> Weighing:
    return Weighing()


@pytest.fixture
def screen(socket_path: Path, runner: Weighing) -> Screen:
    bench = Bench(socket_path, runner)
    bench.tmux("new-session", "-d", "-x", "80", "-y", "24", "exec cat")
    return Screen(bench, LIMIT)


async def test_little_of_it_is_read(screen: Screen, runner: Weighing) -> None:
    await screen.print(lines(1, LIMIT + 900, " " + "w" * 60))
    since = await screen.since()
    for first in range(10_000, 10_000 + 8 * 90, 90):
        await screen.print(lines(first, first + 89))
        processes, size = runner.processes, runner.size
        since = await screen.since(since)
        assert since.content.splitlines() == lines(first, first + 89).splitlines()
        assert missed(since) == PROVEN
        assert runner.processes - processes <= 2
        assert runner.size - size < LIMIT * 70 // 2


async def test_more_is_read_when_more_was_printed(screen: Screen, runner: Weighing) -> None:
    await screen.print(lines(1, LIMIT + 900))
    since = await screen.since()
    for count in (400, 2000, LIMIT - 600):
        await screen.print(lines(10_000, 10_000 + count - 1))
        processes = runner.processes
        since = await screen.since(since, max_lines=count, max_bytes=1_000_000)
        assert since.content.splitlines() == lines(10_000, 10_000 + count - 1).splitlines()
        assert missed(since) == PROVEN
        assert runner.processes - processes <= 2
        await screen.print(lines(20_000, 20_300))
        since = await screen.since(since)


async def test_what_is_printed_again_and_again_is_not_said_to_be_complete(screen: Screen) -> None:
    block = lines(1, LIMIT // 10)
    await screen.print(block * 12)
    since = await screen.since()
    await screen.print(lines(1, 5))
    since = await screen.since(since)
    assert since.content == lines(1, 5).rstrip()
    assert missed(since) == (None, 0, "trimmed")


def places(pane: Pane, cursor: Cursor) -> tuple[int | None, bool]:
    """The line that is suspected from the newest rows, and whether a look at the others leaves no doubt."""
    stream = pane.stream(rows=cursor.span + 300)
    found = suspect(cursor, stream)
    if found is None:
        return None, False
    held = pane.lines[pane.gone :]
    doubted = any(found.may_be_among(held[rows.start : rows.stop]) for rows in found.others)
    return pane.gone + stream.top + found.place.line, not doubted


def test_a_place_without_doubt_is_the_right_one() -> None:
    chance = random.Random(1)
    sure = 0
    for start in range(2 * LIMIT, 2 * LIMIT + 500, 50):
        pane = Pane(limit=LIMIT)
        pane.print(*some_lines(chance, 0, start))
        for count in (0, 1, 5, 50, 499, 500, 501, 4500, 5000, 9000):
            cursor, taken = pane.cursor(), len(pane.lines)
            pane.print(*some_lines(chance, taken, count))
            line, certain = places(pane, cursor)
            assert not certain or line == taken
            sure += certain
    assert sure > 10


def some_lines(chance: random.Random, first: int, count: int) -> list[str]:
    """Lines of which many look alike."""
    return [chance.choice(("", "$ ", "ok", f"number {first + at}")) for at in range(count)]


@pytest.mark.parametrize("length", [200, 400, 1000, 2000])
def test_a_block_as_long_as_some_drops_leaves_doubt(length: int) -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, length) * 20)
    cursor = pane.cursor()
    pane.print(*numbered(0, 5))
    assert length == 2000 or not places(pane, cursor)[1]


def test_where_it_cannot_tell_it_suspects_nothing() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 1000))
    cursor = pane.cursor()
    assert places(pane, cursor) == (None, False), "the history is not full"
    pane.print(*numbered(1000, 3000))
    assert places(pane, cursor) == (None, False), "the place is gone"
    pane.print(*["y"] * 3000)
    assert places(pane, pane.cursor()) == (None, False), "all lines look alike"


def test_lines_that_all_look_alike_cost_no_more_than_others() -> None:
    pane = Pane(limit=50_000)
    pane.print(*["y"] * 60_000)
    began = time.process_time()
    assert not pane.place(pane.cursor()).certain
    assert time.process_time() - began < 1
