"""Make many calls of all kinds to one process, and see whether it grows or slows down.

A sample is taken at rest, after each share of the calls. The first tenth is left out: what is loaded and
kept once is no leak. Latencies are those of calls one by one, told in bare tmux processes of the same
moment, because the machine has other things to do too. The numbers go to ``build/soak.json`` and
``build/soak.svg``; the exit status is 1 when something grew. ``make soak ARGS="--calls 50000"``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from scripts.soak_plot import svg
from tests.chaos.caller import Answer, Caller
from tests.chaos.scene import Scene, scene
from tests.chaos.world import FINE, descriptors
from tests.conftest import TMUX

BUILD = Path(__file__).parent.parent / "build"
SAMPLES = 50
TOGETHER = 4
"""Calls in flight at once."""
TIMED = ("list_panes", "snapshot_pane", "send_keys", "run_shell_command")
"""The tools whose latencies are told."""
TIMES = 12
"""How often each of them is called for one sample."""


@dataclass(frozen=True)
class Sample:
    """The process at rest, after so many calls. Latencies are medians, in bare tmux processes."""

    calls: int
    seconds: float
    memory_kb: int
    descriptors: int
    threads: int
    tmux_memory_kb: int
    bare_ms: float
    latency: dict[str, float]


class Mix:
    """Makes calls of all kinds, and keeps what was wrong."""

    def __init__(self, caller: Caller, choice: random.Random) -> None:
        self.wrong: list[str] = []
        self._caller = caller
        self._choice = choice
        self._numbers = count(1)
        self._panes: list[str] = []
        self._cursors: dict[str, str] = {}
        self._kinds: tuple[tuple[Callable[[str], Awaitable[None]], int], ...] = (
            (self._read, 40),
            (self._go_on, 12),
            (self._type, 12),
            (self._run, 12),
            (self._wait, 5),
            (self._signal, 4),
            (self._come_and_go, 4),
            (self._miss, 6),
            (self._cancel, 3),
            (self._clear, 2),
        )

    async def prepare(self) -> None:
        """Make the panes that the calls are about."""
        for _ in range(TOGETHER):
            self._panes.append((await self._call("create_session"))["pane_id"])

    async def one(self, lane: int) -> None:
        """Make calls of one kind, on the pane of this lane."""
        (kind,) = self._choice.choices(
            [kind for kind, _ in self._kinds], [weight for _, weight in self._kinds]
        )
        await kind(self._panes[lane])

    async def timed(self) -> dict[str, float]:
        """Call each of `TIMED` once, and tell how long it took."""
        pane = self._panes[0]
        arguments: dict[str, dict[str, Any]] = {
            "list_panes": {},
            "snapshot_pane": {"pane_id": pane},
            "send_keys": {"pane_id": pane, "keys": ["Enter"]},
            "run_shell_command": {"pane_id": pane, "command": "true"},
        }
        return {tool: (await self._ends(tool, FINE, **arguments[tool])).seconds for tool in TIMED}

    async def _call(self, tool: str, /, **arguments: object) -> dict[str, str]:
        return (await self._ends(tool, FINE, **arguments)).result

    async def _ends(self, tool: str, outcomes: frozenset[str], /, **arguments: object) -> Answer:
        answer = await self._caller.call(tool, **arguments)
        if answer.outcome not in outcomes:
            self.wrong.append(f"{tool}: {answer.outcome}: {str(answer.result)[:300]}")
        return answer

    async def _read(self, pane: str) -> None:
        tool, arguments = self._choice.choice(
            (
                ("list_panes", {}),
                ("list_sessions", {}),
                ("capture_pane", {"pane_id": pane}),
                ("snapshot_pane", {"pane_id": pane}),
                ("search_panes", {"pattern": "x+", "regex": True}),
                ("get_server_info", {}),
                ("show_option", {"name": "mouse", "scope": "server"}),
                ("get_tmux_variables", {"names": ["pid"]}),
                ("call_read_tools_batch", {"operations": [{"tool": "list_windows"}, {"tool": "list_panes"}]}),
            )
        )
        await self._ends(tool, FINE | {"not_found"}, **arguments)

    async def _go_on(self, pane: str) -> None:
        cursor = {"cursor": self._cursors[pane]} if pane in self._cursors else {}
        self._cursors[pane] = (await self._call("capture_since", pane_id=pane, **cursor))["cursor"]

    async def _type(self, pane: str) -> None:
        number = next(self._numbers)
        if self._choice.random() < 0.5:
            await self._call("send_keys", pane_id=pane, text=f"# {number}", enter=True)
        else:
            text = f"# {number} {'x' * self._choice.choice((10, 2000))}"
            await self._call("paste_text", pane_id=pane, text=text, enter=True)

    async def _run(self, pane: str) -> None:
        number = next(self._numbers)
        command = self._choice.choice(
            (f"echo {number}", f"printf '%s\\n' {number}\n", f"seq 3 >&2; echo {number}")
        )
        answer = await self._ends(
            "run_shell_command", frozenset({"completed"}), pane_id=pane, command=command
        )
        if not str(answer.result.get("output")).endswith(str(number)):
            self.wrong.append(f"run_shell_command {command!r}: {answer.result}")

    async def _wait(self, pane: str) -> None:
        how = self._choice.choice(
            ({"quiet_for": 0.05}, {"patterns": ["never"], "timeout": 0.1}, {"timeout": 0.05})
        )
        await self._call("wait_for_text", pane_id=pane, **how)

    async def _signal(self, pane: str) -> None:
        await self._call("signal_channel", channel=pane)
        await self._ends("wait_for_channel", frozenset({"signaled"}), channel=pane, timeout=20)

    async def _come_and_go(self, pane: str) -> None:
        made = await self._call("create_session", name=f"s{next(self._numbers)}")
        await self._call("split_window", pane_id=made["pane_id"])
        await self._call("send_keys", pane_id=made["pane_id"], text="x" * 5000)
        await self._call("kill_session", session=made["session_id"])

    async def _miss(self, pane: str) -> None:
        gone = f"%{10**6 + next(self._numbers)}"
        for tool in ("send_keys", "run_shell_command", "wait_for_text"):
            arguments = {"send_keys": {"text": "x"}, "run_shell_command": {"command": "x"}}.get(tool, {})
            await self._ends(tool, frozenset({"not_found"}), pane_id=gone, **arguments)
        await self._ends("kill_pane", frozenset({"invalid_argument"}), pane_id="x")

    async def _cancel(self, pane: str) -> None:
        pending = await self._caller.begin("wait_for_text", pane_id=pane, patterns=["never"], timeout=5)
        await anyio.sleep(self._choice.uniform(0, 0.05))
        await self._caller.cancel(pending)

    async def _clear(self, pane: str) -> None:
        await self._call("clear_pane_scrollback", pane_id=pane)
        self._cursors.pop(pane, None)


async def sample(caller: Caller, scene: Scene, mix: Mix, began: float) -> Sample:
    """Measure, now that no call is in flight."""
    pid = caller.process.pid
    memory, opened, threads = _memory(pid), descriptors(pid), _threads(pid)
    bare: list[float] = []
    took: dict[str, list[float]] = {tool: [] for tool in TIMED}
    argv = [TMUX, "-u", "-N", "-S", str(scene.place.socket), "list-sessions"]
    for _ in range(TIMES):
        begun = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
        bare.append(time.perf_counter() - begun)
        for tool, seconds in (await mix.timed()).items():
            took[tool].append(seconds)
    spawn = statistics.median(bare)
    return Sample(
        calls=caller.calls,
        seconds=round(time.monotonic() - began, 1),
        memory_kb=memory,
        descriptors=opened,
        threads=threads,
        tmux_memory_kb=_memory(scene.note_server()),
        bare_ms=round(spawn * 1000, 2),
        latency={tool: round(statistics.median(seconds) / spawn, 2) for tool, seconds in took.items()},
    )


def _memory(pid: int) -> int:
    """Resident memory, in kB."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(told.stdout)


def _threads(pid: int) -> int:
    """How many threads a process has; 0 where the system does not tell."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


async def soak(calls: int, seed: int) -> tuple[list[Sample], list[str]]:
    """Make the calls. The samples, and what was wrong."""
    samples: list[Sample] = []
    with scene() as place:
        place.settle_others()
        async with place.caller() as caller:
            await caller.open()
            mix = Mix(caller, random.Random(seed))
            await mix.prepare()
            began = time.monotonic()
            for step in range(1, SAMPLES + 1):

                async def lane(number: int, goal: int) -> None:
                    while caller.calls < goal:
                        await mix.one(number)

                async with anyio.create_task_group() as tasks:
                    for number in range(TOGETHER):
                        tasks.start_soon(lane, number, calls * step // SAMPLES)
                samples.append(await sample(caller, place, mix, began))
                print(json.dumps(asdict(samples[-1])), flush=True)
            wrong = [*mix.wrong, *caller.wrong]
        wrong += [f"left behind: {each}" for each in await place.leftovers()]
    return samples, wrong


def growth(samples: list[Sample]) -> list[str]:
    """What is more at the end than it was, beyond what measuring gives."""
    settled = samples[len(samples) // 10 :]
    third = len(settled) // 3
    early, late = settled[:third], settled[-third:]
    found = []

    def compare(what: str, value: Callable[[Sample], float], factor: float, more: float) -> None:
        before, after = statistics.median(map(value, early)), statistics.median(map(value, late))
        grew = after > before * factor + more
        print(f"{what}: {before:g} at first, {after:g} at last{' GREW' if grew else ''}")
        if grew:
            found.append(what)

    compare("memory (kB)", lambda each: each.memory_kb, 1.03, 1000)
    compare("descriptors", lambda each: each.descriptors, 1, 0)
    compare("threads", lambda each: each.threads, 1, 4)  # which come and go
    for tool in TIMED:
        compare(f"{tool} (in bare tmux processes)", partial(_latency, tool), 1.5, 0.5)
    return found


def _latency(tool: str, sample: Sample) -> float:
    return sample.latency[tool]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument("--calls", type=int, default=5000, help="default 5000")
    options = parser.parse_args()
    samples, wrong = anyio.run(soak, options.calls, options.seed)
    BUILD.mkdir(exist_ok=True)
    (BUILD / "soak.json").write_text(json.dumps([asdict(each) for each in samples], indent=1) + "\n")
    (BUILD / "soak.svg").write_text(
        svg(
            [each.calls for each in samples],
            {
                "memory (MB)": [each.memory_kb / 1000 for each in samples],
                "descriptors": [each.descriptors for each in samples],
                **{f"{tool} (x tmux)": [each.latency[tool] for each in samples] for tool in TIMED},
            },
        )
    )
    grew = growth(samples)
    for each in wrong[:20]:
        print(f"wrong: {each}")
    print(f"soak: seed {options.seed}: {samples[-1].calls} calls, {len(wrong)} wrong, {len(grew)} grew")
    return 1 if wrong or grew else 0


if __name__ == "__main__":
    sys.exit(main())
