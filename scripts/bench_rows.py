"""The rows of the table: each piece of work, how it is timed, and what a right answer to it is."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from scripts.bench_process import cpu
from scripts.bench_products import Server, Wrong
from scripts.bench_scene import Pane, Scene, until
from scripts.bench_table import Row

SEQ = 5000
IN_A_ROW = 3
"""How often a server is asked in its turn. Most calls are not the first one after another server's."""
TYPED = "select 1;"
PRINTED_AFTER = 0.5
"""Seconds between the call that waits and the text that it waits for, on average."""
SPREAD = 0.25
"""By so much it varies: the longest interval at which a product polls, so that none is favoured."""
CAPTURES = 100
RUNS = 20
STREAM = 100_000
READ_EVERY = 0.25
"""Seconds between two reads of the stream; so long is a model busy with what it read at the very least."""


class Bench:
    """Measures running servers against each other: every round asks each of them once, in random order."""

    def __init__(self, scene: Scene, servers: Sequence[Server], rounds: int) -> None:
        self.scene = scene
        self.servers = servers
        self.rounds = rounds
        self.rows: list[Row] = []
        self._random = random.Random(0)

    def row(self, **what: Any) -> Row:
        row = Row(**what)
        self.rows.append(row)
        print(f"  {row.title}", file=sys.stderr, flush=True)
        return row

    def measure(
        self,
        row: Row,
        asks: str,
        once: Callable[[Server], float],
        *,
        rounds: int | None = None,
        floor: bool = True,
        in_a_row: int = 1,
    ) -> None:
        """Take samples of every server that has a tool for it, until its first wrong answer."""
        for server in self.servers:
            if asks not in server.product.asks:
                row.wrong(server.name, "no such tool")
        for _ in range(rounds or self.rounds):
            if floor:
                row.floor.extend(self.scene.spawn() * 1000 for _ in range(in_a_row))
            for server in self.shuffled():
                try:
                    for _ in range(0 if server.name in row.notes else in_a_row):
                        row.add(server.name, once(server))
                except Wrong as wrong:
                    row.wrong(server.name, str(wrong))

    def shuffled(self) -> list[Server]:
        return self._random.sample(self.servers, len(self.servers))

    def noop(self, server: Server) -> None:
        """What a call costs on the way in and out, whatever it does: the SDK, its transport, and a client."""
        row = self.row(title="a tool that does nothing, on the SDK alone", ranked=False)
        for _ in range(self.rounds * 3):
            row.floor.append(self.scene.spawn() * 1000)
            row.add(self.servers[0].name, server.ask("noop").seconds * 1000)
        row.notes = {each.name: "" for each in self.servers}

    def reads(self, panes: int) -> None:
        """The tools that take one tmux process, on a server with this many panes."""
        scene, pane = self.scene, self.scene.first.id

        def work(asks: str, right: Callable[[str], bool], *values: Any) -> None:
            row = self.row(title=f"{asks}, {_count(panes, 'pane')}", bar=1.5, family=asks, at=panes)
            self.measure(row, asks, lambda server: _timed(server, right, asks, *values), in_a_row=IN_A_ROW)

        all_panes = set(scene.panes())
        page = min(panes, 100)  # what is beyond a page has to be announced
        work("list sessions", lambda text: "bench" in text)
        work("list windows", lambda text: len(set(re.findall(r"@\d+", text))) >= page)
        work(
            "list panes",
            lambda text: len(all_panes & set(re.findall(r"%\d+", text))) == panes or "next_offset" in text,
        )
        work("one pane's row", lambda text: pane in text, pane)
        work("capture", lambda text: scene.text in text, pane)
        work("snapshot", lambda text: scene.text in text, pane)
        row = self.row(title=f"type `{TYPED}`, {_count(panes, 'pane')}", bar=1.5, family="type", at=panes)
        self._type(row)

    def _type(self, row: Row) -> None:
        """Type a line of code, again and again: all of it has to arrive the first time."""
        pane = self.scene.first.id
        for server in self.servers:
            if "type" in server.product.asks:
                server.ask("type", pane, TYPED)
                until(lambda: self._last_line() != self.scene.text)
                if (shown := self._last_line()) != TYPED:
                    row.wrong(server.name, f"`{shown}` arrives")
                self._clear()
        self.measure(
            row,
            "type",
            lambda server: _timed(server, lambda text: True, "type", pane, TYPED),
            in_a_row=IN_A_ROW,
        )
        self._clear()

    def _clear(self) -> None:
        self.scene.tmux("send-keys", "-t", self.scene.first.id, "C-u")
        until(lambda: self._last_line() == self.scene.text)

    def _last_line(self) -> str:
        """The last one of the first pane, where `cat` waits."""
        return self.scene.tmux("capture-pane", "-p", "-t", self.scene.first.id).rstrip().rpartition("\n")[2]

    def runs(self, panes: dict[str, list[Pane]]) -> None:
        """Commands in a pane of each product's own."""

        def work(title: str, command: str, bar: float | None, right: Callable[[str], bool]) -> None:
            row = self.row(title=title, bar=bar)
            self.measure(
                row, "run", lambda server: _timed(server, right, "run", panes[server.name][0].id, command)
            )

        def all_of_it(text: str) -> bool:
            numbers = [int(line) for line in _lines(text) if line.isdigit()]
            if numbers != list(range(1, SEQ + 1)):
                raise Wrong(f"only {len(numbers)} of {SEQ} lines" if _succeeded(text) else "never ends")
            return _succeeded(text)

        work("run `true`", "true", 6, _succeeded)
        work(f"run `seq 1 {SEQ}`", f"seq 1 {SEQ}", None, all_of_it)

    def waits(self, panes: dict[str, list[Pane]]) -> None:
        """How soon a wait notices."""
        row = self.row(title=f"text printed {PRINTED_AFTER:g} s after the call → the wait's answer", bar=12)

        def once(server: Server) -> float:
            pane, text = panes[server.name][0], f"mark-{self._random.getrandbits(48)}"
            call = server.call(*server.product.asks["wait"](pane.id, text, 10))
            time.sleep(PRINTED_AFTER + (self._random.random() - 0.5) * SPREAD)
            with open(pane.tty, "wb", buffering=0) as terminal:
                terminal.write(f"\r\n{text}\r\n".encode())
            printed = time.perf_counter()
            came, answer = server.collect([call])[0]
            if text not in answer or came < printed:
                raise Wrong("answers without the text")
            return (came - printed) * 1000

        self.measure(row, "wait", once, rounds=max(5, self.rounds // 2))

    def idle(self, panes: dict[str, list[Pane]], seconds: float) -> None:
        """What a wait costs in which nothing happens."""
        title = f"CPU of a quiet wait of {seconds:g} s, with the tmux processes it starts"
        row = self.row(title=title, unit="% of a core", bar=4)
        tmux = self.row(title="the same, in the tmux server", unit="% of a core")
        tmux_pid = self.scene.server_pid()

        def once(server: Server) -> float:
            before, tmux_before = cpu(server.process.pid), cpu(tmux_pid)
            began = time.perf_counter()
            server.ask("wait", panes[server.name][0].id, "what nobody prints", seconds)
            took = time.perf_counter() - began
            if took < 0.9 * seconds:
                raise Wrong(f"gave up after {took:.0f} s")
            tmux.add(server.name, (cpu(tmux_pid) - tmux_before) / took * 100)
            return (cpu(server.process.pid) - before) / took * 100

        self.measure(row, "wait", once, rounds=1, floor=False)
        tmux.notes = dict(row.notes)

    def parallel(self, panes: dict[str, list[Pane]]) -> None:
        """Many calls at once, sent without waiting for an answer."""
        first, rounds = self.scene.first.id, max(3, self.rounds // 5)

        def captures(count: int, server: Server) -> float:
            began = time.perf_counter()
            request = server.product.asks["capture"](first)
            answers = server.collect([server.call(*request) for _ in range(count)])
            if not all(self.scene.text in text for _, text in answers):
                raise Wrong("wrong answers")
            return (max(came for came, _ in answers) - began) * 1000

        def runs(count: int, server: Server) -> float:
            began = time.perf_counter()
            asks = [
                server.product.asks["run"](pane.id, f"echo this-is-{at}-{self._random.getrandbits(32)}")
                for at, pane in enumerate(panes[server.name][:count])
            ]
            answers = server.collect([server.call(*ask) for ask in asks])
            for (_, arguments), (_, text) in zip(asks, answers, strict=True):
                if not _succeeded(text) or arguments["command"].removeprefix("echo ") not in _lines(text):
                    raise Wrong("wrong answers")
            return (max(came for came, _ in answers) - began) * 1000

        for count in (1, 10, CAPTURES):
            row = self.row(title=f"{_count(count, 'capture')} at once", family="captures at once", at=count)
            self.measure(row, "capture", partial(captures, count), rounds=rounds)
        for server in self.servers:  # what was printed into a pane before is no part of this
            if "run" in server.product.asks:
                with suppress(Wrong):
                    runs(RUNS, server)
        for count in (1, 5, RUNS):
            row = self.row(
                title=f"{_count(count, 'run')} at once, each in its pane", family="runs at once", at=count
            )
            self.measure(row, "run", partial(runs, count), rounds=rounds)

    def history(self, panes: dict[str, list[Pane]], lines: int) -> None:
        """What a long history costs a command and a read."""
        for server in self.servers:
            self.scene.lines(panes[server.name][1], lines)
        row = self.row(title=f"run `true`, {lines:,} lines of history", family="run true", at=lines)
        self.measure(
            row,
            "run",
            lambda server: _timed(server, _succeeded, "run", panes[server.name][1].id, "true"),
            rounds=max(5, self.rounds // 2),
        )
        row = self.row(title=f"read on, {lines:,} lines of history", family="read on", at=lines)
        asks = "read on from a cursor"
        cursors = {
            server.name: json.loads(server.ask(asks, panes[server.name][1].id, {}).text)["cursor"]
            for server in self.servers
            if asks in server.product.asks
        }

        def once(server: Server) -> float:
            values = (panes[server.name][1].id, {"cursor": cursors[server.name]})
            return _timed(server, lambda text: "cursor" in text, asks, *values)

        self.measure(row, asks, once, rounds=max(5, self.rounds // 2))

    def follow(self, lines: int) -> None:
        """Read a long stream while it is printed, from cursor to cursor, until its end."""
        row = self.row(title=f"follow {lines:,} lines as they are printed: bytes to the model", unit="kB")
        for server in self.shuffled():
            if server.product.follow is None:
                row.wrong(server.name, "no incremental read")
                continue
            pane = self.scene.pane(f"exec {sys.executable} -c '{_STREAM}' {lines}")
            until(partial(self._shows, pane, "ready"))
            with server.product.start(self.scene, **server.product.follow_environ) as follower:
                try:
                    size, seen = self._follow(follower, pane, lines)
                except Wrong as wrong:
                    row.wrong(server.name, str(wrong))
                    continue
            missing, repeated = lines - len(set(seen)), len(seen) - len(set(seen))
            row.add(server.name, size / 1000)
            if missing or repeated:
                row.wrong(server.name, f"{missing:,} lines lost, {repeated:,} twice")
            self.scene.tmux("kill-pane", "-t", pane.id)

    def _shows(self, pane: Pane, text: str) -> bool:
        return text in self.scene.tmux("capture-pane", "-p", "-t", pane.id)

    def _follow(self, server: Server, pane: Pane, lines: int) -> tuple[int, list[int]]:
        """Bytes that the model was given, and the numbers of the lines in them."""
        assert server.product.follow is not None
        reads = server.product.follow(server, pane.id)
        size, printed = len(next(reads)[0].encode()), ""
        self.scene.tmux("send-keys", "-t", pane.id, "Enter")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and f"line {lines} of" not in printed[-1000:]:
            time.sleep(READ_EVERY)
            text, new = next(reads)
            size += len(text.encode())
            printed += new
        return size, [int(number) for number in re.findall(r"\bline (\d+) of", printed)]


# Ten thousand lines a second.
_STREAM = (
    'import sys, time; print("ready", flush=True); input(); n = int(sys.argv[1]); '
    '[(sys.stdout.write(f"line {at} of {n}\\n"), at % 500 or (sys.stdout.flush(), time.sleep(.05))) '
    "for at in range(1, n + 1)]; sys.stdout.flush(); time.sleep(600)"
)


def _timed(server: Server, right: Callable[[str], bool], asks: str, *values: Any) -> float:
    """Milliseconds until the answer, which has to be right."""
    answer = server.ask(asks, *values)
    if not right(answer.text):
        raise Wrong("wrong answer")
    return answer.seconds * 1000


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _succeeded(text: str) -> bool:
    return re.search(r'"exit_(status|code)": ?0\b', text) is not None


def _lines(text: str) -> list[str]:
    """The lines of every text in an answer, whatever an answer looks like."""
    return [line.rstrip() for each in _texts(json.loads(text)) for line in each.split("\n")]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
