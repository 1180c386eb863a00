from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Awaitable
from itertools import pairwise
from typing import TypeVar

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp import limits
from tmuxmcp.errors import InvalidPattern, MatchBudget
from tmuxmcp.terminal import matching
from tmuxmcp.terminal.matching import Hit

T = TypeVar("T")

# Each needs an automaton of exponential size, and then costs a step for each instruction and byte.
EXPENSIVE = [
    r"(?:(.{0,100})(.{0,100})){5}zz",
    r"(.{0,100}){9}x",
    r"(\w{0,30}\s?){30}zz",
    r"(?:[a-z]{0,30}[^x]{0,30}){30}zz",
    r"(a|b)*a(a|b){900}zz",
]

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")


def search(
    lines: list[str],
    *patterns: str,
    regex: bool = False,
    match_case: bool = True,
    budget: float = 30.0,
    limit: int | None = None,
) -> list[Hit]:
    async def run() -> list[Hit]:
        matcher = matching.compile(patterns, regex=regex, match_case=match_case)
        return await matcher.search_lines(lines, budget=budget, limit=limit)

    return anyio.run(run)


def noise(length: int, alphabet: str = "ab") -> str:
    return "".join(random.Random(1).choices(alphabet, k=length))


@pytest.mark.parametrize(
    "text",
    [
        "#[fg=red]",
        "C:\\temp",
        "a[b]c",
        "(?i)x",
        "\\Qx\\E",
        "\\",
        "^$",
        "*",
        'it\'s "quoted" `x` $HOME $(x) !x',
        "日本語 😀 e\u0301",
        "\t",
        " ",
        "\x1b[31m",
        "\0",
    ],
)
def test_a_literal_is_literal(text: str) -> None:
    lines = ["nothing", f"<{text}>", "red 0 x C:temp a b c"]
    assert search(lines, text, limit=1) == [Hit(1, 0, 1, 1 + len(text))]


@given(st.text(CHARACTERS, min_size=1, max_size=40), st.text(CHARACTERS, max_size=20))
def test_any_literal_is_found_where_python_finds_it(pattern: str, around: str) -> None:
    line = f"{around}{pattern}{around}"
    start = line.find(pattern)
    assert search([around, line], pattern)[-1:] == [Hit(1, 0, start, start + len(pattern))]


@pytest.mark.parametrize("regex", [False, True])
def test_case(regex: bool) -> None:
    assert search(["ERROR Ünïcode"], "error ünÏ", regex=regex) == []
    assert search(["ERROR Ünïcode"], "error ünÏ", regex=regex, match_case=False) == [Hit(0, 0, 0, 9)]


def test_hits_are_in_order_of_line_and_pattern_and_count_characters() -> None:
    lines = ["日本 b a", "", "a a"]
    assert search(lines, "a", "b", "[ab] ", regex=True) == [
        Hit(0, 0, 5, 6),
        Hit(0, 1, 3, 4),
        Hit(0, 2, 3, 5),
        Hit(2, 0, 0, 1),
        Hit(2, 2, 0, 2),
    ]
    assert search(lines, "a", "b", limit=2) == [Hit(0, 0, 5, 6), Hit(0, 1, 3, 4)]


def test_each_line_is_searched_by_itself() -> None:
    assert search(["$ ", "x", "$ y"], r"^\$ $", regex=True) == [Hit(0, 0, 0, 2)]
    assert search(["a", "b"], r"a\s*b", regex=True) == []
    assert search([""], "^$", regex=True) == [Hit(0, 0, 0, 0)]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=a)", r"\(\?=.*lookaround"),
        ("(?<!a)b", "lookaround"),
        (r"(a)\1", "backreferences"),
        ("a{2000}", "1000"),
        ("(a", r"missing \)"),
        ("[z-a]", "range"),
        (r"a\Z", r"\\z"),
        ("a++", "possessive"),
        (r"\pL{1000}", "too large"),
        (r"\pL{50}", "instructions.*smaller"),
        ("", "empty"),
        ("a" * 1001, "1001 characters.*1000"),
        ("\ud800", "surrogate"),
    ],
)
def test_an_unusable_expression_is_refused_with_the_reason(
    pattern: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidPattern, match=rf"(?s)Pattern 1 .*{words}") as caught:
        matching.compile(["fine", pattern], regex=True, match_case=True)
    assert caught.value.details == {"pattern": 1}
    assert capfd.readouterr() == ("", "")


def test_an_unusable_literal_or_number_of_patterns_is_refused() -> None:
    with pytest.raises(InvalidPattern, match="line break"):
        matching.compile(["a\nb"], regex=False, match_case=True)
    with pytest.raises(InvalidPattern, match="at least one"):
        matching.compile([], regex=False, match_case=True)
    with pytest.raises(InvalidPattern, match=r"17 patterns.*16"):
        matching.compile(["a"] * 17, regex=True, match_case=True)


def test_the_limits_themselves_are_accepted() -> None:
    longest = "é" * limits.PATTERN_CHARACTERS
    for regex in (False, True):
        patterns = ["x"] * (limits.PATTERNS - 1) + [longest]
        hits = search([longest], *patterns, regex=regex, match_case=False)
        assert hits == [Hit(0, 15, 0, 1000)]


@pytest.mark.parametrize("position", [0, 3000, 4090, 131_000, 262_140, 399_000])
def test_a_literal_is_found_anywhere_in_an_overlong_line(position: int) -> None:
    line = f"{'日' * position}needle{'-' * (400_000 - position)}"
    assert search([line], "needle") == [Hit(0, 0, position, position + 6)]


def test_the_windows_of_an_overlong_line_see_its_ends_and_words() -> None:
    line = noise(300_000)
    small = f"(?:{noise(200)}){{40}}"  # A program large enough for the smallest window.
    assert search([f"x{line}x"], f"^{small}|x$|\\bx$", regex=True) == [Hit(0, 0, 300_001, 300_002)]
    assert search([f"x{line}"], f"{small}|^x", regex=True) == [Hit(0, 0, 0, 1)]
    assert search([line], f"{small}|\\b[ab]$", regex=True) == []


@given(st.integers(0, 2000), st.integers(2, 64))
def test_windows_overlap_by_half_and_cover_everything(length: int, window: int) -> None:
    pieces = list(matching._windows(length, window))
    assert pieces[0][0] == 0
    assert pieces[-1][1] == length
    assert all(end - start <= window for start, end in pieces)
    assert all(left[1] - right[0] == window - window // 2 for left, right in pairwise(pieces))


async def longest_pause(work: Awaitable[T]) -> tuple[float, T | MatchBudget]:
    """Await `work`; also say for how long the event loop was unresponsive at worst, in seconds."""
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            before = time.monotonic()
            await anyio.sleep(0.005)
            worst = max(worst, time.monotonic() - before - 0.005)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        try:
            result: T | MatchBudget = await work
        except MatchBudget as error:
            result = error
        group.cancel_scope.cancel()
    return worst, result


@pytest.mark.parametrize(
    ("pattern", "length"), [*((pattern, 200_000) for pattern in EXPENSIVE), (EXPENSIVE[1], 200)]
)
def test_the_budget_ends_an_expensive_search_and_the_loop_stays_free(pattern: str, length: int) -> None:
    text = noise(200_000)
    lines = [text[start : start + length] for start in range(0, len(text), length)] * 50

    async def run() -> None:
        matcher = matching.compile([pattern], regex=True, match_case=True)
        began = time.monotonic()
        pause, result = await longest_pause(matcher.search_lines(lines, budget=0.3))
        assert isinstance(result, MatchBudget)
        assert "0.3 seconds" in result.message
        assert result.details == {"lines": len(lines), "budget_seconds": 0.3}
        assert pause < 0.2  # 0.03 on an idle machine; a blocked loop would show the budget.
        assert time.monotonic() - began < 2.0

    anyio.run(run)


@pytest.mark.parametrize("pattern", [*EXPENSIVE, "(a+)+$", "(x+x+)+y", "(a*)*b"])
def test_one_search_is_short_however_often_it_is_repeated(pattern: str) -> None:
    matcher = matching.compile([pattern], regex=True, match_case=True)
    compiled, window = matcher._patterns[0]
    text = noise(window).encode()
    for _ in range(5):
        before = time.thread_time()
        compiled.search(text)
        assert time.thread_time() - before < 0.5  # 0.07 on an idle machine.


def test_waiting_for_a_worker_is_part_of_the_budget() -> None:
    async def run() -> None:
        matcher = matching.compile(EXPENSIVE[:1], regex=True, match_case=True)
        results: list[MatchBudget | list[Hit]] = []

        async def one() -> None:
            results.append((await longest_pause(matcher.search_lines([noise(200_000)] * 50, budget=0.3)))[1])

        began = time.monotonic()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
        assert len(results) == 8
        assert all(isinstance(each, MatchBudget) for each in results)
        assert time.monotonic() - began < 2.0

    anyio.run(run)


def test_a_cancelled_search_stops_its_thread() -> None:
    async def run() -> None:
        matcher = matching.compile(EXPENSIVE[:1], regex=True, match_case=True)
        with anyio.move_on_after(0.1) as scope:
            await matcher.search_lines([noise(200_000)] * 1000, budget=60)
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            while True:
                before = time.process_time()
                await anyio.sleep(0.2)
                if time.process_time() - before < 0.1:
                    return

    anyio.run(run)


def test_a_search_under_way_does_not_hold_up_the_exit_of_the_process() -> None:
    program = (
        "import anyio\n"
        "from tmuxmcp.terminal import matching\n"
        f"matcher = matching.compile([{EXPENSIVE[0]!r}], regex=True, match_case=True)\n"
        "async def run():\n"
        "    with anyio.move_on_after(0.3):\n"
        "        await matcher.search_lines(['ab' * 100_000] * 1000, budget=60)\n"
        "    print('cancelled', flush=True)\n"
        "anyio.run(run)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "cancelled\n"
        cancelled = time.monotonic()
        assert process.wait(10) == 0
    assert time.monotonic() - cancelled < 1.0  # 0.1 on an idle machine.
