"""Looks that are put off because nothing can have been printed, and what ends that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.bench import Bench
from tmuxmcp import limits
from tmuxmcp.terminal import witness
from tmuxmcp.terminal.clock import Ticker
from tmuxmcp.terminal.panes import STATE, State
from tmuxmcp.terminal.witness import Witness

counts_reads = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux's /proc/PID/io")


class FakeClock:
    """Time that passes in sleeps only."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def watching(
    monkeypatch: pytest.MonkeyPatch, counts: Sequence[int | None], pid: int | None = None
) -> Witness:
    """A witness that has been through two looks; each count is what the server has read by then."""
    told = iter(counts)
    monkeypatch.setattr(witness, "_reads", lambda server: next(told))
    row = dict.fromkeys(STATE.fields, "0") | {"server": "7:1", "pid": str(pid or os.getpid())}
    watching = Witness(State.parse(row))
    for _ in range(2):
        with watching.looking():
            pass
    return watching


def test_it_is_still_while_the_server_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = watching(monkeypatch, [10, 11, 11, 12, 12, 12])
    assert quiet.still
    assert quiet.still


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ([10, 11, 11, 12, 13], "something was read after the look"),
        ([10, 11, 11, 13, 13], "something more was read during the look"),
        ([10, 10, 10, 10, 10], "the look itself is not seen, so this is not the server"),
        ([10, 11, 11, 12, None], "the server has gone"),
        ([None] * 5, "the system does not tell"),
    ],
)
def test_it_is_not_still(monkeypatch: pytest.MonkeyPatch, counts: list[int | None], why: str) -> None:
    assert not watching(monkeypatch, counts).still, why


def test_it_is_not_still_when_the_panes_process_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not watching(monkeypatch, [10, 11, 11, 12, 12], child.pid).still


async def rested(still: Callable[[], bool], **limit: float) -> float:
    clock = FakeClock()
    await Ticker(clock, deadline=100).rest(still, **limit)
    return clock.time


async def test_a_look_is_put_off_while_it_is_still() -> None:
    assert await rested(lambda: False) == limits.TICK_MIN_SECONDS
    assert await rested(lambda: True) == pytest.approx(limits.LOOK_SECONDS)
    assert await rested(lambda: True, until=0.2) == pytest.approx(0.2)
    answers = iter([True, True, False])
    assert await rested(lambda: next(answers)) < 5 * limits.TICK_MIN_SECONDS


@counts_reads
async def test_a_quiet_wait_takes_few_looks(bench: Bench) -> None:
    await bench.tools("wait_for_text", pane_id="%0", patterns=["x"], timeout=0.1)
    before = bench.processes
    await bench.tools("wait_for_text", pane_id="%0", patterns=["x"], timeout=3)
    assert bench.processes - before < 15


async def test_what_happens_in_a_quiet_wait_ends_it(bench: Bench) -> None:
    tty = bench.tmux("display-message", "-p", "#{pane_tty}").strip()
    bench.tmux("new-session", "-d", "exec cat")

    async def outcome(act: Callable[[], object]) -> str:
        ended: dict[str, Any] = {}

        async def wait() -> None:
            ended.update(await bench.tools("wait_for_text", pane_id="%0", patterns=["printed"], timeout=20))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(1)  # by now looks are put off
            act()
        return str(ended["outcome"])

    assert await outcome(lambda: Path(tty).write_text("printed\n")) == "matched"
    assert await outcome(lambda: bench.tmux("kill-pane", "-t", "%0")) == "pane_gone"
