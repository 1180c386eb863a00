"""Call every tool with arguments that its schema allows, and some that it does not, in any order.

Several clients do so on one socket that others use too, while another one sends lines of every shape. Nothing
may crash, go unanswered, break the protocol, be an internal error, or reach what is not ours; and no text may
be run that was not meant to be: a file that many of the values would make must not come into being. What is
wrong is printed; the exit status is 1 unless nothing was. ``make test-fuzz ARGS="--seed 7 --seconds 600"``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import anyio

from scripts.fuzz_arguments import Known, Made, Maker
from scripts.fuzz_frames import Lines
from tests.chaos.caller import Answer, Caller
from tests.chaos.scene import Scene, scene

RESULT_BYTES = 80_000
"""No result is larger that did not ask for more than the default."""
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
REFUSED = frozenset({"invalid_argument", "invalid_name"})


class Judge:
    """Judges answers, and keeps what was wrong."""

    def __init__(self) -> None:
        self.wrong: Counter[str] = Counter()
        self.valid: Counter[str] = Counter()
        self.untranslated: Counter[str] = Counter()
        """Refusals of tmux for which there is no error of ours."""
        self.outcomes: Counter[str] = Counter()
        self.invalid = 0
        self.lines = 0

    def judge(self, made: Made, answer: Answer, results: Mapping[str, Any]) -> None:
        """Judge the answer to a call."""
        shown = f"{made.tool} {json.dumps(made.arguments)[:600]}"
        if not made.valid:
            self.invalid += 1
            if answer.outcome not in REFUSED:
                self.wrong[f"{shown}\n    is against the schema, and was answered {answer.outcome}"] += 1
            return
        self.valid[made.tool] += 1
        if answer.outcome == "tmux_failed":
            self.untranslated[answer.result["message"]] += 1
        if "message" in answer.result:
            return
        size = len(json.dumps(answer.result, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if size > RESULT_BYTES and "max_bytes" not in json.dumps(made.arguments):
            self.wrong[f"{shown}\n    was answered in {size} bytes"] += 1
        for name, value in answer.result.items():
            schema = results[made.tool]["properties"].get(name)
            # Flags that a result mostly lacks are in no schema.
            kind: Any = TYPES[schema["type"]] if schema else bool
            if not isinstance(value, kind):
                self.wrong[f"{shown}\n    was answered {name}={value!r:.100}"] += 1

    def report(self, seed: int) -> str:
        calls = sum(self.valid.values())
        return (
            f"fuzz: seed {seed}: {calls} calls of {len(self.valid)} tools, {self.invalid} against the "
            f"schema, {self.lines} lines, {len(self.wrong)} kinds of wrong"
        )


async def call(caller: Caller, maker: Maker, known: Known, judge: Judge, results: dict[str, Any]) -> None:
    """Make one call and judge its answer."""
    made = maker.call()
    answer = await caller.answer(await caller.begin(made.tool, **made.arguments))
    judge.judge(made, answer, results)
    if made.tool.startswith("kill_"):
        known.forget(answer.result)
    else:
        known.learn(made.arguments, answer.result)


async def send(caller: Caller, lines: Lines, judge: Judge) -> None:
    """Send some lines, in pieces, and judge what comes."""
    least = most = 0
    seen, pending = caller.nameless, []
    for _ in range(10):
        line = lines.make()
        judge.lines += 1
        least += line.nameless is True
        most += line.nameless is not False
        if line.id is not None:
            pending.append(caller.expect(line.id, f"line {line.data[:300]!r}"))
        elif line.nameless is None and (id := _id_in(line.data)) is not None:
            caller.tolerate(id)
        for piece in lines.pieces(line.data):
            await caller.send(piece)
    pending.append(await caller.request("ping", {}))
    for each in pending:
        await caller.answer(each)
    # Refusals are written in order of arrival, so that all of them have come before the ping's answer.
    if not least <= caller.nameless - seen <= most:
        judge.wrong[f"{caller.nameless - seen} refusals without an id, not {least} to {most}"] += 1


def _id_in(line: bytes) -> int | str | None:
    """The id of a damaged request that is JSON all the same."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    id = frame.get("id") if isinstance(frame, dict) else None
    return id if isinstance(id, int | str) else None


async def fuzz(options: argparse.Namespace, scene: Scene, judge: Judge) -> None:
    """Call and send until the time is over."""
    canary = scene.place.directory / "canary"
    known, end = Known(), time.monotonic() + options.seconds
    server = scene.note_server()

    def over() -> bool:
        if canary.exists():
            judge.wrong["text was run that was not meant to be"] += 1
        return time.monotonic() > end or canary.exists()

    async with AsyncExitStack() as stack:
        callers = [scene.caller(TMUXMCP_WAIT_MAX_SECONDS="1") for _ in range(options.clients + 1)]
        for caller in callers:
            await stack.enter_async_context(caller)
            await caller.open()
        listed = (await callers[0].answer(await callers[0].request("tools/list", {}))).result["tools"]
        results = {tool["name"]: tool["outputSchema"] for tool in listed}

        async def calls(caller: Caller, number: int) -> None:
            choice = random.Random(f"{options.seed}:{number}")
            maker = Maker(listed, known, choice, str(canary))
            while not over():
                await call(caller, maker, known, judge, results)

        async def lines(caller: Caller) -> None:
            made = Lines(random.Random(f"{options.seed}:lines"))
            while not over():
                await send(caller, made, judge)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lines, callers[-1])
            for number in range(2 * options.clients):
                tasks.start_soon(calls, callers[number // 2], number)
    for caller in callers:
        judge.wrong.update(caller.wrong)
        judge.outcomes.update({key: times for key, times in caller.outcomes.items() if key[:4] != "line"})
    for said in scene.place.errors.read_text(errors="replace").splitlines():
        if said.startswith("tmuxmcp: defect") or "Traceback" in said:
            judge.wrong[said] += 1
    if scene.note_server() != server:
        judge.wrong["the tmux server has crashed or was ended"] += 1
    judge.wrong.update(f"left behind: {each}" for each in await scene.leftovers())


async def run(options: argparse.Namespace) -> Judge:
    judge = Judge()
    with scene() as set_up:
        set_up.settle_others()
        await fuzz(options, set_up, judge)
    return judge


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument("--seconds", type=float, default=60.0, help="default 60")
    parser.add_argument("--outcomes", action="store_true", help="print how often each call ended in what way")
    parser.add_argument("--clients", type=int, default=3, help="that call; one more sends lines (default 3)")
    options = parser.parse_args()
    judge = anyio.run(run, options)
    for wrong, times in judge.wrong.most_common():
        print(f"{times:4} x {wrong}")
    if options.outcomes:
        for outcome, times in sorted(judge.outcomes.items()):
            print(f"{times:6} {outcome}")
        for said, times in judge.untranslated.items():
            print(f"{times:6} {said}")
    print(judge.report(options.seed))
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
