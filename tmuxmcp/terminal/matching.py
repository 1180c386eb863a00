"""Search of terminal lines for literals and RE2 expressions, in bounded time and off the event loop.

RE2 never backtracks, but it can be slow all the same: when its automaton outgrows its memory it steps
through every instruction of the program for every byte (about 1.5 ns each, measured). A search under way
cannot be cancelled either. So the program of an expression is bounded, and the piece of text handed to one
search shrinks as the program grows: one search takes less than about 0.1 s whatever it is given, and the
deadline and cancellation are looked at in between. RE2 releases the interpreter's lock while it searches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from tmuxmcp import limits
from tmuxmcp.errors import InvalidPattern, MatchBudget

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

BUDGET_SECONDS = 2.0
"""The time that one search may take, waiting for a thread included."""

_WORKERS = 2
"""Searches under way at once."""
_PATTERN_MEMORY_BYTES = 2 * 1024 * 1024
"""RE2's `max_mem` of one pattern. A larger one makes the refusal of a huge pattern slower."""
_PROGRAM_INSTRUCTIONS = 10_000
"""The largest program of one expression; `(.{0,100}){9}` has 8,100."""
_STEPS = 32 * 1024 * 1024
"""Instructions times bytes of one search."""
_WINDOW_BYTES = (4 * 1024, 256 * 1024)
"""The least and the most text of one search, whatever the program's size."""

_SYNTAX = (
    "RE2 has no lookaround such as (?=...) or (?<!...), no backreferences such as \\1, no atomic groups or "
    "possessive repeats, no (?x); the end of the text is \\z, and a repeat count is at most 1000. "
    "With regex=false the pattern is taken literally."
)


class Hit(NamedTuple):
    """The leftmost match of one pattern in one line. `start` and `end` count characters of the line."""

    line: int
    pattern: int
    start: int
    end: int


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Compiled(Protocol):
    @property
    def programsize(self) -> int: ...

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> _Match | None: ...


class Matcher:
    """Compiled patterns. Made by `compile`; may be used by several searches at once."""

    def __init__(self, compiled: Sequence[_Compiled]) -> None:
        self._patterns = [(each, _window(each.programsize)) for each in compiled]

    async def search_lines(
        self, lines: Sequence[str], *, budget: float = BUDGET_SECONDS, limit: int | None = None
    ) -> list[Hit]:
        """Find the patterns in each line by itself, in order of line, then pattern; stop after `limit` hits.

        A line never continues in the next one: `^` and `$` are its ends. A line longer than the pattern's
        window (256 kB for a program of up to 128 instructions, 16 kB for 2,048, 4 kB from 8,192 on) is
        searched in windows that overlap by half; `^`, `$` and `\\b` still see the whole line. There, a
        match longer than half a window can be missed or be reported only as far as its window goes.

        Raises `MatchBudget` when `budget` seconds of real time have passed.
        """
        stop = Event()
        deadline = time.monotonic() + budget
        try:
            with anyio.move_on_after(budget):
                # Abandoning is safe: the thread looks at `stop` before each of its short searches.
                hits = await run_sync(
                    self._search, lines, limit, deadline, stop, abandon_on_cancel=True, limiter=_workers()
                )
                if hits is not None:
                    return hits
        finally:
            stop.set()
        raise MatchBudget(
            f"The search of {len(lines)} lines was given up after its budget of {budget:g} seconds. "
            "Search fewer lines, or use a literal (regex=false) or an expression with fewer and smaller "
            "repeats.",
            lines=len(lines),
            budget_seconds=budget,
        )

    def _search(
        self, lines: Sequence[str], limit: int | None, deadline: float, stop: Event
    ) -> list[Hit] | None:
        """Run in a worker thread. None when the deadline or `stop` came first."""
        hits: list[Hit] = []
        for number, line in enumerate(lines):
            text = line.encode("utf-8", "replace")
            for index, (compiled, window) in enumerate(self._patterns):
                for start, end in _windows(len(text), window):
                    if stop.is_set() or time.monotonic() >= deadline:
                        return None
                    if match := compiled.search(text, start, end):
                        hits.append(Hit(number, index, *_characters(text, match.span())))
                        if len(hits) == limit:
                            return hits
                        break
        return hits


def compile(patterns: Sequence[str], *, regex: bool, match_case: bool) -> Matcher:
    """Compile patterns: RE2 expressions when `regex`, else literals in which every character is itself.

    Takes up to 0.1 s for the most expensive patterns. Raises `InvalidPattern`.
    """
    if not patterns:
        raise InvalidPattern("No pattern was given: at least one is needed.")
    if len(patterns) > limits.PATTERNS:
        raise InvalidPattern(
            f"{len(patterns)} patterns were given: at most {limits.PATTERNS} are taken. "
            "Join alternatives as a|b with regex=true."
        )
    import re2  # here, because it takes 2.5 MB, and many a server never searches

    options = re2.Options()
    options.literal = not regex
    options.case_sensitive = match_case
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY_BYTES
    try:
        return Matcher([_compile(pattern, index, options) for index, pattern in enumerate(patterns)])
    finally:
        # re2 keeps the last 128 patterns and their automata; ours live as long as the matcher.
        re2.purge()


def _compile(pattern: str, index: int, options: re2.Options) -> _Compiled:
    if not pattern:
        _refuse(index, "it is empty and would match every line")
    if len(pattern) > limits.PATTERN_CHARACTERS:
        _refuse(index, f"it has {len(pattern)} characters; at most {limits.PATTERN_CHARACTERS} are taken")
    if options.literal and "\n" in pattern:
        _refuse(index, "it holds a line break, and each line is searched by itself")
    import re2

    try:
        compiled: _Compiled = re2.compile(pattern, options)
    except UnicodeEncodeError:
        _refuse(index, "it holds half of a surrogate pair, which is no character")
    except re2.error as error:
        reason = error.args[0]
        _refuse(index, reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason, _SYNTAX)
    if compiled.programsize > _PROGRAM_INSTRUCTIONS:
        _refuse(
            index,
            f"it compiles to {compiled.programsize} instructions; at most {_PROGRAM_INSTRUCTIONS} are taken",
            "Repeat counts multiply, most of all those of Unicode classes such as \\pL: use smaller ones.",
        )
    return compiled


def _refuse(index: int, reason: str, remedy: str = "") -> NoReturn:
    message = f"Pattern {index} (counted from 0) cannot be used: {reason}."
    raise InvalidPattern(f"{message} {remedy}".rstrip(), pattern=index)


def _window(programsize: int) -> int:
    least, most = _WINDOW_BYTES
    return max(least, min(most, _STEPS // max(1, programsize)))


def _windows(length: int, window: int) -> Iterator[tuple[int, int]]:
    """Yield overlapping pieces that cover `length` bytes: one piece when it fits into `window`."""
    start = 0
    while length - start > window:
        yield start, start + window
        start += window // 2
    yield start, length


def _characters(text: bytes, span: tuple[int, int]) -> tuple[int, int]:
    start = len(text[: span[0]].decode("utf-8", "replace"))
    return start, start + len(text[span[0] : span[1]].decode("utf-8", "replace"))


_limiter: RunVar[anyio.CapacityLimiter] = RunVar("tmuxmcp.terminal.matching")


def _workers() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_WORKERS)
        _limiter.set(limiter)
        return limiter
