"""Do bad things to tmux, to panes, to clients and to our own process, and judge what comes of it.

Each round is one fault with calls in flight, on a private socket that others use too, through the real server
over standard input and output. What is wrong or left behind is printed with the round that reproduces it:
``make test-chaos ARGS="--seed 7 --round 12"``. The exit status is 1 unless nothing was.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import anyio

from tests.chaos import of_clients, of_panes, of_resources, of_tmux
from tests.chaos.faults import FAULTS
from tests.chaos.scene import scene
from tests.chaos.world import Broken, World

KINDS = (of_tmux, of_panes, of_clients, of_resources)


@dataclass
class Total:
    """What all rounds came to."""

    rounds: int = 0
    faults: int = 0
    calls: int = 0
    wrong: int = 0
    left: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.rounds += 1
        self.faults += world.faults
        self.wrong += len(world.wrong)
        self.left += len(world.left)
        for caller in world.callers:
            self.calls += caller.calls
            self.outcomes += caller.outcomes

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.faults} faults, {self.calls} calls, {self.wrong} wrong answers, "
            f"{self.left} leftovers"
        )


def order(seed: int, names: list[str]) -> Iterator[str]:
    """The faults in the order of the rounds: all of them, again and again, each time shuffled."""
    choice = random.Random(seed)
    while True:
        yield from choice.sample(names, len(names))


async def play(number: int, name: str, seed: int, total: Total) -> None:
    """One round."""
    fault, choice = FAULTS[name], random.Random(f"{seed}:{number}:{name}")
    began = time.monotonic()
    with scene() as set_up:
        if fault.others:
            set_up.settle_others()
        made = World(set_up, fault.caller, choice)
        try:
            async with made:
                await fault.inflict(made)
                await made.verdict()
        except Broken as broken:
            made.wrong.append(str(broken))
        except Exception:  # noqa: BLE001  (a round that breaks is a finding like any other)
            made.wrong.append(traceback.format_exc())
    total.add(made)
    print(f"{number:4} {name}: {time.monotonic() - began:.1f} s", flush=True)
    for kind, found in (("wrong", made.wrong), ("left behind", made.left)):
        for each in found:
            print(f"     {kind}: {each}", flush=True)


async def run(options: argparse.Namespace) -> Total:
    total = Total()
    names = [name for name in FAULTS if not options.only or name in options.only]
    rounds = enumerate(order(options.seed, names), 1)
    end = time.monotonic() + options.seconds

    async def work() -> None:
        for number, name in rounds:
            # Every fault comes at least once, however long that takes.
            if number > (options.rounds or len(names)) and (options.rounds or time.monotonic() > end):
                return
            await play(number, name, options.seed, total)

    if options.round:
        number, name = next(itertools.islice(rounds, options.round - 1, None))
        await play(number, name, options.seed, total)
        return total
    async with anyio.create_task_group() as tasks:
        for _ in range(options.jobs):
            tasks.start_soon(work)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument("--seconds", type=float, default=150.0, help="no round begins later (default 150)")
    parser.add_argument("--rounds", type=int, default=0, help="that many rounds, whatever time they take")
    parser.add_argument("--round", type=int, default=0, help="this round alone")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at once (default 2)")
    parser.add_argument("--only", nargs="*", choices=sorted(FAULTS), help="these faults")
    parser.add_argument("--outcomes", action="store_true", help="print how often each call ended in what way")
    options = parser.parse_args()
    total = anyio.run(run, options)
    if options.outcomes:
        for outcome, times in sorted(total.outcomes.items()):
            print(f"{times:6} {outcome}")
    print(f"chaos: seed {options.seed}: {total}")
    return 0 if not total.wrong and not total.left else 1


if __name__ == "__main__":
    sys.exit(main())
