"""Reading panes, against a real tmux: ranges of rows, the screen, and what is new since a cursor."""

from __future__ import annotations

import itertools
import random
import unicodedata
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.bench import Bench, Counting
from tmuxmcp.errors import InvalidCursor, NotFound
from tmuxmcp.terminal.capture import Since, capture_pane, capture_since, read, snapshot_pane
from tmuxmcp.terminal.cursor import Cursor, Mark
from tmuxmcp.terminal.kept import keep_tail
from tmuxmcp.terminal.stream import STATE
from tmuxmcp.tmux.command import command, target

CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Screen:
    """A pane of 80 columns and 24 rows on which the test prints."""

    def __init__(self, bench: Bench, limit: int) -> None:
        self.bench = bench
        self.client = bench.client
        bench.tmux("set-option", "-g", "history-limit", str(limit))
        self.id = self.tmux("new-window", "-dP", "-F", "#{pane_id}", "stty -echo; exec cat")
        self._tty = Path(self.show("#{pane_tty}"))
        self._turn = itertools.count()

    def tmux(self, *words: str) -> str:
        return self.bench.tmux(*words).removesuffix("\n")

    def show(self, formats: str) -> str:
        return self.tmux("display-message", "-p", "-t", self.id, formats)

    async def print(self, text: str) -> None:
        """Print as a program in the pane does, and wait until tmux has read it."""
        await self.bench.until(lambda: self.show("#{pane_current_command}") == "cat")
        title = f"turn {next(self._turn)}"
        await anyio.Path(self._tty).write_bytes(f"{text}\x1b]2;{title}\a".encode())
        await self.bench.until(lambda: self.show("#{pane_title}") == title)

    async def since(self, cursor: Since | str | None = None, **limits: int) -> Since:
        text = cursor.cursor if isinstance(cursor, Since) else cursor
        return await capture_since(self.client, self.id, text, **limits)

    def resize(self, width: int, height: int = 24) -> None:
        self.tmux("resize-window", "-t", self.id, "-x", str(width), "-y", str(height))


@pytest.fixture
def bench_of(socket_path: Path) -> Bench:
    bench = Bench(socket_path, Counting())
    bench.tmux("new-session", "-d", "-x", "80", "-y", "24", "exec cat")
    return bench


@pytest.fixture
def screen(bench_of: Bench) -> Screen:
    return Screen(bench_of, 2000)


@pytest.fixture
def small(bench_of: Bench) -> Screen:
    """One that holds a hundred rows of history."""
    return Screen(bench_of, 100)


def lines(first: int, last: int, text: str = "") -> str:
    return "".join(f"line {number}{text}\n" for number in range(first, last + 1))


def missed(since: Since) -> tuple[int | None, int | None, str | None]:
    return tuple(
        None if value is UNSET else value for value in (since.missed, since.missed_at_least, since.reason)
    )  # type: ignore[return-value]


PROVEN = (0, None, None)


# What is new since a cursor


async def test_since_a_cursor_come_the_ended_lines_and_the_one_that_is_not(screen: Screen) -> None:
    await screen.print(lines(1, 3) + "$ ")
    first = await screen.since()
    assert (first.content, first.lines, first.partial) == ("line 1\nline 2\nline 3", 3, "$ ")
    assert missed(first) == (None, None, None)
    await screen.print("echo\nhi\n\n$ ")
    second = await screen.since(first)
    assert (second.content, second.lines, second.partial) == ("$ echo\nhi\n", 3, "$ ")
    assert missed(second) == PROVEN
    third = await screen.since(second)
    assert (third.content, third.lines, third.partial, missed(third)) == ("", 0, "$ ", PROVEN)


async def test_without_a_cursor_the_last_lines_come(screen: Screen) -> None:
    await screen.print(lines(1, 900, " " + "w" * 100))
    since = await screen.since(max_lines=700, max_bytes=100_000)
    assert since.lines == 700
    assert since.content.startswith("line 201 www")
    assert (await screen.since(max_lines=0)).content == ""
    cut = await screen.since(max_bytes=300)
    assert (cut.lines, cut.dropped_lines, cut.truncated) == (2, 498, True)
    assert cut.content.startswith("line 899 ")


async def test_what_does_not_fit_is_read_by_the_next_calls(screen: Screen) -> None:
    await screen.print("begin\n")
    since = await screen.since()
    await screen.print(lines(1, 1200) + "rest")
    read: list[str] = []
    chance = random.Random(1)
    while not since.partial:
        since = await screen.since(since, max_lines=chance.choice((1, 50, 300)), max_bytes=1000)
        assert missed(since) == PROVEN
        assert len(since.content.encode()) <= 1000
        assert since.truncated == (not since.partial)
        read += since.content.split("\n")
    assert "".join(f"{line}\n" for line in read) == lines(1, 1200)


async def test_a_single_line_that_does_not_fit_is_cut_and_said(screen: Screen) -> None:
    await screen.print("begin\n")
    since = await screen.since()
    await screen.print("é" * 1000 + "\nnext\n")
    since = await screen.since(since, max_bytes=101)
    assert (since.content, since.lines, since.dropped_bytes, since.truncated) == ("é" * 50, 1, 1900, True)
    assert (await screen.since(since)).content == "next"


async def test_an_unfinished_line_that_does_not_fit_is_cut_and_said(screen: Screen) -> None:
    await screen.print("begin\n")
    since = await screen.since()
    await screen.print("one\n" + "w" * 100 + "end")
    since = await screen.since(since, max_bytes=20)
    assert (since.content, since.partial) == ("one", "w" * 14 + "end")
    assert (since.truncated, since.dropped_bytes) == (False, 86)
    await screen.print("ed\n")
    assert (await screen.since(since)).content == "w" * 100 + "ended"


@pytest.mark.parametrize("count", [1, 20, 300, 1799])
async def test_nothing_is_lost_at_the_history_limit(screen: Screen, count: int) -> None:
    await screen.print(lines(1, 1900) + "$ ")
    since = await screen.since()
    printed = []
    for turn in range(4):
        await screen.print(f"turn {turn}\n{lines(5000 * turn + 5000, 5000 * turn + 4998 + count)}$ ")
        since = await screen.since(since, max_lines=3000, max_bytes=100_000)
        assert (since.lines, missed(since)) == (count, PROVEN)
        printed.append(since.content)
    assert [content.split("\n")[0] for content in printed] == [f"$ turn {turn}" for turn in range(4)]


async def test_prompts_everywhere_hide_nothing_at_the_history_limit(screen: Screen) -> None:
    await screen.print(lines(1, 2100) + "$ \n" * 40 + "$ ")
    since = await screen.since()
    for turn in range(30):
        await screen.print(f"echo {turn}\n{turn}\n$ \n$ ")
        since = await screen.since(since)
        assert (since.content, missed(since)) == (f"$ echo {turn}\n{turn}\n$", PROVEN)


async def test_lines_beyond_the_limit_are_missing_and_it_is_said(small: Screen) -> None:
    await small.print(lines(1, 33) + "$ ")
    since = await small.since()
    await small.print("seq\n" + lines(1001, 2000))
    since = await small.since(since)
    assert missed(since) == (None, 1, "trimmed")
    first, *_, last = since.content.split("\n")
    assert (first > "line 1800", last) == (True, "line 2000")


async def test_lines_that_all_look_alike_are_not_said_to_be_complete(small: Screen) -> None:
    await small.print("y\n" * 300)
    since = await small.since()
    await small.print("y\n" * 77 + "end\n")
    assert missed(await small.since(since)) == (None, 0, "trimmed")


async def test_clearing_the_screen_loses_nothing(screen: Screen) -> None:
    await screen.print(lines(1, 5))
    since = await screen.since()
    await screen.print(lines(6, 10) + "\x1b[H\x1b[2J" + lines(11, 12) + "\x1b[H\x1b[J" + "x\n")
    since = await screen.since(since)
    assert (since.content, missed(since)) == ((lines(6, 12) + "x"), PROVEN)


@pytest.mark.parametrize("clear", [CLEAR, "\x1b[H\x1b[J\x1b[3J", "\x1bc\x1b[3J"])
async def test_wiping_the_history_too_is_said(screen: Screen, clear: str) -> None:
    await screen.print(lines(1, 5))
    since = await screen.since()
    await screen.print(lines(6, 10) + clear + "after\n")
    since = await screen.since(since)
    assert (since.content, missed(since)) == ("after", (None, 0, "cleared"))
    await screen.print(lines(11, 20))
    since = await screen.since(since)
    assert since.content == lines(11, 20).rstrip("\n")


async def test_a_cursor_of_an_empty_screen_proves_nothing(screen: Screen) -> None:
    since = await screen.since()
    assert (since.content, since.lines) == ("", 0)
    again = await screen.since(since)
    assert (again.lines, again.cursor, missed(again)) == (0, since.cursor, (None, None, None))
    await screen.print("lost\n" + CLEAR + "shown\n")
    assert missed(await screen.since(since)) == (None, 0, "cleared")


async def test_clear_history_of_what_was_read_loses_nothing(screen: Screen) -> None:
    await screen.print(lines(1, 100))
    since = await screen.since()
    screen.tmux("clear-history", "-t", screen.id)
    await screen.print(lines(101, 105))
    since = await screen.since(since)
    assert (since.content, missed(since)) == (lines(101, 105).rstrip("\n"), PROVEN)
    await screen.print(lines(106, 300))
    screen.tmux("clear-history", "-t", screen.id)
    since = await screen.since(since)
    assert missed(since) == (None, 0, "cleared")
    assert since.content == lines(278, 300).rstrip("\n")


@pytest.mark.parametrize("limit", [100, 2000])
async def test_another_width_loses_and_repeats_nothing(bench_of: Bench, limit: int) -> None:
    screen = Screen(bench_of, limit)
    await screen.print(lines(1, 30, " " + "long " * 30) + "begun")
    since = await screen.since()
    number = 31
    for width, height in ((40, 24), (60, 10), (131, 50), (80, 24), (21, 24), (80, 5)):
        screen.resize(width, height)
        unchanged = await screen.since(since)
        assert (unchanged.content, missed(unchanged), unchanged.partial) == ("", PROVEN, "begun")
        await screen.print(f" and ended\n{lines(number, number + 1, ' ' + 'long ' * 30)}begun")
        since = await screen.since(since)
        number += 2
        assert missed(since) == PROVEN
        assert [line[:7] for line in since.content.split("\n")] == [
            "begun a",
            f"line {number - 2}",
            f"line {number - 1}",
        ]


async def test_a_little_screen_is_found_again_at_another_width(screen: Screen) -> None:
    await screen.print("$ one\n1\n$ ")
    since = await screen.since()
    screen.resize(120, 40)
    await screen.print("two\n2\n$ ")
    since = await screen.since(since)
    assert (since.content, missed(since)) == ("$ two\n2", PROVEN)


async def test_on_the_alternate_screen_nothing_is_read_and_nothing_is_lost(screen: Screen) -> None:
    await screen.print(lines(1, 50))
    since = await screen.since()
    await screen.print(lines(51, 60) + "\x1b[?1049h\x1b[H" + "painted\n" * 50)
    inside = await screen.since(since)
    assert (inside.content, inside.lines, inside.cursor, inside.alternate_screen) == (
        "",
        0,
        since.cursor,
        True,
    )
    assert (await screen.since()).alternate_screen
    await screen.print("\x1b[?1049l" + lines(61, 65))
    after = await screen.since(inside)
    assert (after.content, missed(after)) == (lines(51, 65).rstrip("\n"), PROVEN)


async def test_a_cursor_taken_on_the_alternate_screen_is_one_of_the_main_screen(screen: Screen) -> None:
    await screen.print(lines(1, 50) + "$ vi\n\x1b[?1049h\x1b[H" + "painted\n" * 30)
    since = await screen.since()
    assert since.content.endswith("line 50\n$ vi")
    await screen.print("\x1b[?1049l" + lines(51, 52))
    since = await screen.since(since)
    assert (since.content, missed(since)) == ("line 51\nline 52", PROVEN)


async def test_a_wrapped_line_that_tmux_splits_at_the_alternate_screen_is_read_once(screen: Screen) -> None:
    wide = "w" * 200
    await screen.print(lines(1, 30) + f"{wide}\n" + lines(31, 52))  # its second row is the first visible one
    assert int(screen.show("#{history_size}")) > 30
    since = await screen.since()
    await screen.print("\x1b[?1049h\x1b[?1049l" + lines(53, 54))
    since = await screen.since(since)
    assert (since.content, missed(since)) == ("line 53\nline 54", PROVEN)


async def test_a_line_that_is_rewritten_is_read_when_it_has_ended(screen: Screen) -> None:
    await screen.print("begin\n 10%")
    since = await screen.since()
    assert since.partial == " 10%"
    await screen.print("\r 50%")
    since = await screen.since(since)
    assert (since.content, since.partial) == ("", " 50%")
    await screen.print("\rdone\x1b[K   \n")
    assert (await screen.since(since)).content == "done"


async def test_lines_that_a_program_goes_back_to_are_read_again(screen: Screen) -> None:
    await screen.print(lines(1, 40) + "pull a\npull b\n")
    since = await screen.since()
    await screen.print("\x1b[2A\x1b[2Kdone a\n\x1b[2Kdone b\n")
    since = await screen.since(since)
    assert (since.content, missed(since)) == ("done a\ndone b", PROVEN)
    await screen.print("\x1b[2A\x1b[2Kgone a\n\nmore\n")
    since = await screen.since(since)
    assert (since.content, since.rewritten, missed(since)) == ("more", "gone a", PROVEN)


async def test_between_going_back_and_printing_nothing_is_read_twice(screen: Screen) -> None:
    await screen.print(lines(1, 40))
    since = await screen.since()
    await screen.print("\x1b[3A")
    back = await screen.since(since)
    assert (back.content, missed(back)) == ("", PROVEN)
    await screen.print("\n\n\nnext\n")
    assert (await screen.since(back)).content == "next"


async def test_blank_lines_are_lines(screen: Screen) -> None:
    await screen.print(lines(1, 5))
    since = await screen.since()
    await screen.print("\n\nx\n\n")
    since = await screen.since(since)
    assert (since.content, since.lines) == ("\n\nx\n", 4)
    await screen.print("\n")
    since = await screen.since(since)
    assert (since.content, since.lines) == ("", 1)


async def test_a_dead_pane_is_read_to_its_end(screen: Screen) -> None:
    await screen.print(lines(1, 5))
    since = await screen.since()
    screen.tmux("set-option", "-p", "-t", screen.id, "remain-on-exit", "on")
    await screen.print("last\n")
    screen.tmux("send-keys", "-t", screen.id, "C-d")
    await screen.bench.until(lambda: screen.show("#{pane_dead}") == "1")
    since = await screen.since(since)
    assert since.content == "last"
    # tmux writes its note when it has learned the program's status, which 3.3a can miss.
    assert since.partial == "" or since.partial.startswith("Pane is dead")


async def test_a_cursor_is_refused_for_another_pane_program_or_server(screen: Screen) -> None:
    await screen.print(lines(1, 5))
    since = await screen.since()
    other = Screen(screen.bench, 2000)
    with pytest.raises(InvalidCursor, match="belongs to pane"):
        await other.since(since)
    screen.tmux("respawn-pane", "-k", "-t", screen.id, "exec cat")
    with pytest.raises(InvalidCursor, match="respawned"):
        await screen.since(since)
    with pytest.raises(InvalidCursor):
        await screen.since(since.cursor[:-5])
    await screen.bench.end()
    screen.tmux("new-session", "-d", ";", "new-window", ";", "new-window")
    assert screen.id in screen.tmux("list-panes", "-a", "-F", "#{pane_id}").split()
    with pytest.raises(InvalidCursor, match="tmux server that has ended"):
        await screen.since(since)


async def test_a_pane_that_is_not_there_is_not_found(screen: Screen) -> None:
    for reading in (capture_pane, capture_since, snapshot_pane):
        with pytest.raises(NotFound):
            await reading(screen.client, "%99")


async def test_a_mark_is_the_place_before_the_call_acted(screen: Screen) -> None:
    await screen.print(lines(1, 100) + "$ ")
    mark = Mark(screen.id)
    said = await screen.client.call(
        command("has-session", "-t", target(screen.id)),
        *mark.commands,
        command("display-message", "-p", "-t", target(screen.id), "acted"),
    )
    cursor, rest = mark.parse(said)
    assert rest == "acted\n"
    await screen.print("x\n")
    since = await screen.since(cursor.encode())
    assert (since.content, missed(since)) == ("$ x", PROVEN)


async def test_a_mark_of_a_new_pane_is_before_all_that_its_program_prints(screen: Screen) -> None:
    made = command("split-window", "-d", "-t", target(screen.id), "printf 'first\\nsecond\\n'; exec cat")
    row = (await screen.client.rows(listing=made, template=STATE))[0]
    screen.id = row["pane_id"]
    cursor = Cursor.fresh(row)
    await screen.bench.until(lambda: "second" in screen.tmux("capture-pane", "-p", "-t", screen.id))
    since = await screen.since(cursor.encode())
    assert since.content == "first\nsecond"


async def test_reading_on_takes_one_process_or_two(screen: Screen) -> None:
    async def processes(since: Since, text: str) -> tuple[Since, int]:
        await screen.print(text)
        before = screen.bench.processes
        since = await screen.since(since, max_lines=5000)
        return since, screen.bench.processes - before

    await screen.print(lines(1, 100))
    since = await screen.since()
    since, near = await processes(since, lines(101, 200))
    since, far = await processes(since, lines(201, 1500))
    assert (near, far) == (1, 1)
    for text in (lines(1501, 3500), lines(3501, 3600), CLEAR + lines(4001, 5000), lines(5001, 6500)):
        since, count = await processes(since, text)
        assert count <= 2
    assert missed(since) == PROVEN


# Ranges of rows


async def test_a_range_is_told_in_rows_from_the_top_of_the_screen(screen: Screen) -> None:
    await screen.print(lines(1, 100))  # Rows 0 to 22 are lines 78 to 100; row 23 is empty.
    shown = await capture_pane(screen.client, screen.id)
    assert (shown.content, shown.lines, shown.truncated) == (lines(78, 100).rstrip("\n"), 23, False)
    for start, end, first, last in ((-3, 1, 75, 79), (-500, -70, 1, 8), (22, None, 100, 100), (5, 5, 83, 83)):
        captured = await capture_pane(screen.client, screen.id, start_line=start, end_line=end)
        assert captured.content == lines(first, last).rstrip("\n")
    for start, end in ((-500, -400), (24, None), (3, 2), (40_000, 50_000)):
        captured = await capture_pane(screen.client, screen.id, start_line=start, end_line=end)
        assert (captured.content, captured.lines) == ("", 0)


async def test_wrapped_lines_are_joined_unless_rows_are_wanted(screen: Screen) -> None:
    await screen.print("w" * 100 + "\n漢" * 1 + "字" * 45 + "\n")
    joined = await capture_pane(screen.client, screen.id)
    rows = await capture_pane(screen.client, screen.id, join_wrapped=False)
    assert joined.content == "w" * 100 + "\n漢" + "字" * 45
    assert rows.content == "w" * 80 + "\n" + "w" * 20 + "\n漢" + "字" * 39 + "\n" + "字" * 6


async def test_no_blanks_are_invented(screen: Screen) -> None:
    await screen.print("a   \nb\nloading...\rok\x1b[K\n\x1b[41m\x1b[K\x1b[m\n\n")
    for join in (True, False):
        captured = await capture_pane(screen.client, screen.id, join_wrapped=join)
        assert captured.content == "a\nb\nok"


async def test_the_tail_is_kept_and_what_was_cut_is_said(screen: Screen) -> None:
    await screen.print(lines(1, 1000))
    captured = await capture_pane(screen.client, screen.id, start_line=-5000, max_lines=10)
    assert (captured.content, captured.lines) == (lines(991, 1000).rstrip("\n"), 10)
    assert (captured.truncated, captured.dropped_lines, captured.dropped_bytes) == (
        True,
        990,
        len(lines(1, 990)),
    )
    captured = await capture_pane(screen.client, screen.id, start_line=-5000, max_bytes=100)
    assert captured.content == lines(990, 1000).rstrip("\n")
    assert (captured.lines, captured.dropped_lines) == (11, 989)


async def test_escapes_are_kept_when_they_are_wanted(screen: Screen) -> None:
    await screen.print("\x1b[31mred\x1b[m plain\n")
    assert (await capture_pane(screen.client, screen.id)).content == "red plain"
    assert "\x1b[31mred\x1b[39m plain" in (await capture_pane(screen.client, screen.id, escapes=True)).content


# The screen


async def test_a_snapshot_is_the_screen_and_its_state(screen: Screen) -> None:
    await screen.print(lines(1, 30) + "w" * 90)
    shot = await snapshot_pane(screen.client, screen.id)
    assert shot.content == lines(9, 30) + "w" * 80 + "\n" + "w" * 10
    assert (shot.lines, shot.width, shot.height, shot.history_size) == (24, 80, 24, 8)
    assert (shot.cursor_x, shot.cursor_y, shot.command, shot.title) == (10, 23, "cat", "turn 0")
    assert (shot.in_mode, shot.alternate_screen, shot.dead) == (False, False, False)
    screen.tmux("copy-mode", "-t", screen.id)
    screen.tmux("send-keys", "-t", screen.id, "-X", "scroll-up")
    shot = await snapshot_pane(screen.client, screen.id, max_lines=2)
    assert (shot.in_mode, shot.mode, shot.scroll_position) == (True, "copy-mode", 1)
    assert (shot.lines, shot.dropped_lines, shot.truncated) == (2, 22, True)


async def test_a_snapshot_of_the_alternate_screen_holds_nothing_of_the_main_one(screen: Screen) -> None:
    await screen.print(lines(1, 30) + "\x1b[?1049h\x1b[Hpainted\x1b[5;1H\x1b[32mgreen\x1b[m")
    shot = await snapshot_pane(screen.client, screen.id, escapes=True)
    assert (shot.alternate_screen, shot.lines) == (True, 5)
    assert shot.content.startswith("painted\n\n\n\n\x1b[32mgreen")


async def test_reading_once_takes_one_process(screen: Screen) -> None:
    await screen.print(lines(1, 3))
    before = screen.bench.processes
    await capture_pane(screen.client, screen.id, start_line=-1000)
    await snapshot_pane(screen.client, screen.id)
    await read(screen.client, screen.id)
    assert screen.bench.processes - before == 3


# What fits


@given(
    st.lists(st.text(alphabet="ab\u0301é漢🙂\u200d ", max_size=30), max_size=20),
    st.integers(0, 25),
    st.integers(0, 200),
)
def test_the_kept_tail_fits_and_the_rest_is_counted(lines: list[str], max_lines: int, max_bytes: int) -> None:
    kept = keep_tail(lines, max_lines, max_bytes)
    assert len(kept.lines) <= max_lines
    assert len("\n".join(kept.lines).encode()) <= max_bytes
    assert len(kept.lines) + kept.dropped_lines == len(lines)
    assert sum(len(line.encode()) + 1 for line in [*lines]) == kept.dropped_bytes + sum(
        len(line.encode()) + 1 for line in kept.lines
    )
    for whole, part in zip(lines[::-1], kept.lines[::-1], strict=False):
        assert whole.endswith(part)
        assert whole == part or not part or unicodedata.category(part[0]) not in ("Mn", "Cf")
