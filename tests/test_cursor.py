"""Cursors: written and read again, refused where they do not belong, and their place found again.

What really happens in a pane is in `tests.test_capture` and `tests.model_capture_since`.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp import limits
from tmuxmcp.errors import InvalidCursor
from tmuxmcp.terminal.cursor import PRINTS, TELLING_KEPT, TELLING_PRINTS, Cursor
from tmuxmcp.terminal.place import Place, locate, reason
from tmuxmcp.terminal.stream import State, Stream, line_starts

STATE = State(
    server_pid=100,
    server_start=1_700_000_000,
    pane_id="%1",
    pane_pid=200,
    dead=False,
    width=80,
    height=24,
    cursor_x=0,
    cursor_y=23,
    history_size=0,
    history_limit=100,
    alternate=False,
)


def number(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


cursors = st.builds(
    Cursor,
    **{
        name: number(32)
        for name in ("server_pid", "pane", "pane_pid", "row", "history_size", "history_limit")
    },
    **{name: number(16) for name in ("width", "height", "span", "kept_span", "last_span", "printed")},
    **{name: number(8) for name in ("kept", "begun_size")},
    **{name: st.booleans() for name in ("alternate", "wiped")},
    server_start=number(64),
    taken=number(64),
    begun=number(24),
    prints=st.lists(number(24), max_size=PRINTS).map(tuple),
)


@given(cursors)
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    text = cursor.encode()
    assert len(text) <= limits.TOKEN_BYTES
    assert text.isascii()
    assert text.replace("-", "").replace("_", "").isalnum()
    assert Cursor.decode(text) == cursor


def test_a_cursor_is_as_long_as_it_needs_to_be() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 1000))
    assert len(pane.cursor().prints) == 23 + TELLING_KEPT, "the screen's lines, and some of the history"
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 20))
    assert len(pane.cursor().prints) == TELLING_PRINTS


def test_the_longest_cursor_is_bounded() -> None:
    pane = Pane(limit=2000)
    pane.print(*("the same" for _ in range(1000)))
    cursor = pane.cursor()
    assert len(cursor.prints) == PRINTS
    assert len(cursor.encode()) <= limits.TOKEN_BYTES


@given(cursors, st.data())
def test_a_damaged_cursor_is_refused(cursor: Cursor, data: st.DataObject) -> None:
    text = cursor.encode()
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters().filter(lambda character: character != text[at]))
    damaged = data.draw(
        st.sampled_from([text[:at], text[:at] + other + text[at + 1 :], text[:at] + other + text[at:]])
    )
    with pytest.raises(InvalidCursor, match="without a cursor"):
        Cursor.decode(damaged)


@pytest.mark.parametrize(
    "text", ["", "AQ", "%1", "é" * 40, "\ud800", "A" * 600, "AQAAAA==" * 20, "\x00", "=" * 9]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor, match="is no cursor"):
        Cursor.decode(text)


def test_a_cursor_outlives_the_process() -> None:
    cursor = Cursor.at(Pane().stream(), 0)
    code = f"from tmuxmcp.terminal.cursor import Cursor; print(Cursor.decode({cursor.encode()!r}).encode())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == cursor.encode()


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (STATE._replace(pane_id="%2"), "belongs to pane %1, not to %2"),
        (STATE._replace(server_pid=101), "tmux server that has ended"),
        (STATE._replace(server_start=1_700_000_001), "tmux server that has ended"),
        (STATE._replace(pane_pid=201), "before it was respawned"),
        (STATE._replace(pane_pid=201, dead=True), "before it was respawned"),
    ],
)
def test_a_cursor_is_refused_where_it_does_not_belong(state: State, why: str) -> None:
    stream = Pane().stream()
    cursor = Cursor.at(stream, 0)
    foreign = Stream(state, stream.lines, stream.starts, stream.end)
    with pytest.raises(InvalidCursor, match=why):
        locate(cursor, foreign, all_read=True)


def test_a_dead_pane_without_a_process_id_is_still_the_same() -> None:
    Cursor.at(Pane().stream(), 0).check(STATE._replace(dead=True, pane_pid=0))


@dataclass
class Pane:
    """A pane that shows one row a line, and forgets as tmux does."""

    limit: int = 100
    height: int = 24
    lines: list[str] = field(default_factory=list)
    gone: int = 0
    """Lines that tmux does not hold any more."""

    def print(self, *lines: str) -> None:
        for line in lines:
            if len(self.lines) - self.gone + 1 - self.height >= self.limit:
                self.gone += max(1, self.limit // 10)
            self.lines.append(line)

    def clear(self) -> None:
        self.gone = len(self.lines)

    def stream(self, rows: int | None = None) -> Stream:
        """What tmux holds, the unfinished line included, or the last rows of it."""
        held = [*self.lines[self.gone :], ""]
        history = max(0, len(held) - self.height)
        blank = max(0, self.height - len(held))
        state = STATE._replace(
            history_size=history,
            history_limit=self.limit,
            height=self.height,
            cursor_y=len(held) - 1 - history,
        )
        top = 0 if rows is None else max(0, history - rows)
        lines = (held + [""] * blank)[top:]
        return Stream(state, lines, list(range(top, top + len(lines))), top + len(lines))

    def cursor(self) -> Cursor:
        stream = self.stream()
        return Cursor.at(stream, stream.unfinished)

    def place(self, cursor: Cursor) -> Place:
        place = locate(cursor, self.stream(), all_read=True)
        assert place is not None
        return place


def numbered(first: int, count: int) -> list[str]:
    return [f"line {number}" for number in range(first, first + count)]


def test_a_place_is_found_while_the_history_is_not_full() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 1000))
    cursor = pane.cursor()
    pane.print(*numbered(1000, 50))
    assert pane.place(cursor) == Place(1000, certain=True)
    near = pane.stream(rows=200)
    assert locate(cursor, near, all_read=False) == Place(1000 - near.top, certain=True)
    assert locate(cursor, pane.stream(rows=20), all_read=False) is None


def test_a_place_is_found_after_rows_were_dropped() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 2020))
    cursor = pane.cursor()
    for first in range(2020, 4000, 90):
        pane.print(*numbered(first, 90))
        assert pane.place(cursor) == Place(2020 - pane.gone, certain=True)


def test_prompts_that_look_alike_do_not_hide_what_was_printed_between_them() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 1900), "$ ")
    for turn in range(500):
        cursor = pane.cursor()
        read = len(pane.lines)
        pane.print(*numbered(10_000 + turn * 7, turn % 7), "$ ")
        assert pane.place(cursor) == Place(read - pane.gone, certain=True)


def test_nothing_is_certain_among_thousands_of_lines_that_look_alike() -> None:
    pane = Pane(limit=2000)
    pane.print(*["y"] * 5000)
    cursor = pane.cursor()
    pane.print(*["y"] * 300, "end")
    place = pane.place(cursor)
    assert not place.certain
    assert not place.lost
    assert reason(cursor, pane.stream().state) == "trimmed"


def test_a_sequence_that_is_printed_again_and_again_proves_nothing() -> None:
    block = numbered(0, 300)
    pane = Pane(limit=2000)
    pane.print(*block * 10)
    cursor = pane.cursor()
    pane.print(*block * 10)
    assert not pane.place(cursor).certain


def test_the_same_lines_printed_again_are_not_taken_for_those_before() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 1900))
    cursor = pane.cursor()
    for again in range(1, 100):
        pane.print(f"again {again}", *numbered(0, 1970))
        place = pane.place(cursor)
        assert not place.certain, again


def test_the_same_lines_printed_again_after_a_clear_are_not_taken_for_those_before() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 500))
    cursor = pane.cursor()
    pane.clear()
    pane.print("again", *numbered(0, 700))
    assert not pane.place(cursor).certain


def test_lines_beyond_the_limit_are_gone_and_it_is_said() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 30))
    stream = pane.stream()
    stream.lines[30] = "$ "  # what the unfinished line holds
    cursor = Cursor.at(stream, 30)
    pane.print("$ seq 5000", *numbered(10_000, 5000))
    place = pane.place(cursor)
    assert (place.certain, place.lost, place.missing) == (False, True, 1)
    assert reason(cursor, pane.stream().state) == "trimmed"


def test_a_place_behind_the_last_drop_is_not_said_to_be_gone() -> None:
    pane = Pane(limit=100)
    pane.print(*numbered(0, 120))
    cursor = pane.cursor()
    assert cursor.row == 120 - pane.gone
    pane.print(*numbered(120, cursor.row // 10 * 10 + 23))
    place = pane.place(cursor)
    assert not place.certain or place.line == 120 - pane.gone
    assert place.missing == 0


def test_a_cleared_pane_is_not_taken_for_the_one_before() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 10))
    cursor = pane.cursor()
    pane.clear()
    pane.print(*numbered(50, 40))
    assert pane.place(cursor) == Place(0, certain=False, lost=True)
    assert reason(cursor, pane.stream().state) == "cleared"


def test_an_empty_pane_proves_nothing() -> None:
    pane = Pane(limit=2000)
    cursor = pane.cursor()
    pane.print(*numbered(0, 3))
    assert pane.place(cursor) == Place(0, certain=False)


def test_lines_written_over_on_the_screen_are_found_among_those_that_stayed() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 100))
    cursor = pane.cursor()
    pane.lines[90] = "overwritten"
    pane.print(*numbered(100, 5))
    assert pane.place(cursor) == Place(100, certain=True, rewritten=(90,))
    pane.lines[98:100] = ["progress 2", "progress 1"]
    assert pane.place(cursor) == Place(98, certain=True, rewritten=(90,))


def test_lines_that_look_alike_do_not_hide_a_place_above_which_some_were_written_over() -> None:
    pane = Pane(limit=2000)
    pane.print("ok", *numbered(0, 100), "ok")
    cursor = pane.cursor()
    pane.lines[:0] = ["ok"]
    pane.lines[96] = "overwritten"
    pane.print(*numbered(100, 5))
    place = pane.place(cursor)
    assert (place.line, place.certain, place.lost) == (103, False, False)


def test_a_screen_written_anew_is_read_from_its_first_line_and_not_certain() -> None:
    pane = Pane(limit=2000)
    pane.print(*numbered(0, 100))
    cursor = pane.cursor()
    pane.lines[77:100] = [f"new {at}" for at in range(23)]
    assert pane.place(cursor) == Place(77, certain=False)


def test_a_line_that_tmux_has_split_is_still_the_same_line() -> None:
    """Going to the alternate screen, tmux 3.3a forgets that the last row of the history is wrapped."""
    long = "w" * 100
    before, behind = numbered(0, 40), [*numbered(41, 10), ""]
    state = STATE._replace(history_limit=2000, history_size=29)
    joined = Stream(state, [*before, long, *behind], [*range(41), *range(42, 53)], 53)
    split = Stream(state, [*before, long[:80], long[80:], *behind], list(range(53)), 53)
    cursor = Cursor.at(joined, 51)
    assert locate(cursor, split, all_read=True) == Place(52, certain=True)
    full = state._replace(history_size=1990)
    assert locate(cursor, Stream(full, split.lines, split.starts, 53), all_read=True) == Place(
        52, certain=True
    )


def test_a_line_that_tmux_has_split_at_another_width_is_still_the_same_line() -> None:
    narrow = STATE._replace(width=20, history_limit=2000, history_size=29)
    before = [*numbered(0, 40), "w" * 30, *numbered(41, 10), ""]
    cursor = Cursor.at(wrapped(narrow, before), 51)
    after = [*before[:40], "w" * 20, "w" * 10, *before[41:]]
    wide = narrow._replace(width=80)
    assert locate(cursor, wrapped(wide, after), all_read=True) == Place(52, certain=True)


def test_lines_at_the_top_that_look_alike_do_not_hide_a_line_that_tmux_has_split() -> None:
    wide = "w" * 100
    before = [*numbered(0, 10), wide, *numbered(11, 80), *[wide] * 20]
    after = [*before[10:100], wide[:80], wide[80:], *before[101:], "next"]  # ten lines were dropped
    state = STATE._replace(history_limit=100, history_size=110)
    cursor = Cursor.at(wrapped(state, [*before, ""]), len(before))
    place = locate(cursor, wrapped(state, [*after, ""]), all_read=True)
    assert place is not None
    assert place.line == len(after) - 1


def wrapped(state: State, lines: list[str]) -> Stream:
    """A stream of these lines at the width of the pane."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + max(1, -(-len(line) // state.width)))
    return Stream(state, lines, starts[:-1], starts[-1])


texts = st.one_of(st.sampled_from(["", "$ ", "ok"]), st.just("numbered"))


@given(
    st.lists(st.tuples(texts, st.integers(1, 40)), min_size=1, max_size=60), st.integers(10, 60), st.data()
)
def test_a_certain_place_is_the_right_one(
    prints: list[tuple[str, int]], limit: int, data: st.DataObject
) -> None:
    pane = Pane(limit=limit, height=5)
    lines: list[str] = []
    for text, times in prints:
        lines += [f"{len(lines) + at}: {text}" if text == "numbered" else text for at in range(times)]
    taken = data.draw(st.integers(0, len(lines)))
    pane.print(*lines[:taken])
    cursor = pane.cursor()
    if data.draw(st.booleans()):
        pane.clear()
        # The same lines in the same place could not be told apart from those before.
        pane.print("after the clear")
    pane.print(*lines[taken:])
    place = pane.place(cursor)
    if place.certain:
        assert place.line == taken - pane.gone
    assert place.missing <= max(0, pane.gone - taken)


row_texts = st.text(alphabet="ab ", max_size=4)


@given(
    st.lists(
        st.lists(row_texts.filter(lambda text: text != ""), min_size=1, max_size=3), min_size=1, max_size=20
    )
)
def test_the_rows_of_joined_lines_are_found(lines: list[list[str]]) -> None:
    rows = [row for line in lines for row in line]
    joined = ["".join(line) for line in lines]
    starts = line_starts(joined, rows, 10)
    assert len(starts) == len(lines)
    assert starts[0] == 10
    ends = [*starts[1:], 10 + len(rows)]
    for line, start, end in zip(joined, starts, ends, strict=True):
        assert "".join(rows[start - 10 : end - 10]) == line


def test_blanks_that_tmux_adds_to_rows_do_not_count() -> None:
    assert line_starts(["ab", "", "c"], ["ab  ", "    ", "c   "], 0) == [0, 1, 2]


def test_an_emptied_row_that_a_line_was_wrapped_into_belongs_to_that_line() -> None:
    assert line_starts(["abcd", "next"], ["abcd", "", "next"], 0) == [0, 2]
