"""One round: a scene, a server of ours and its client, and a judge of everything that is called.

The judge knows what each call must have done outside of its own answer: a command notes in a file that
it ran, and a pane writes what was typed into it to another.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from itertools import count
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio

from tests.chaos.caller import Answer, Caller, Pending
from tests.chaos.scene import OTHERS, Scene, processes, until

GONE = frozenset({"pane_gone", "server_gone", "not_found", "no_server"})
"""How calls end whose pane or tmux server goes while they are under way, or before."""
FINE = frozenset(
    {"ok", "completed", "matched", "any_output", "quiet", "signaled", "sent", "timeout", "timed_out"}
)
"""How calls end when nothing is wrong."""
UNTYPED = frozenset({"pane_busy", "pane_dead", "pane_in_mode", "pane_input_off", "pane_synchronized"})
"""Refusals that promise that nothing was typed."""
_NEVER = UNTYPED | {"not_started", "invalid_argument", "too_large"}


class Broken(Exception):
    """What a round needs could not be had, so that it ends here."""


class Ran(NamedTuple):
    """A command that was to run: what it must print, and with which status it must end."""

    token: str
    command: str
    output: str
    status: int
    pending: Pending
    strict: bool


class World:
    """What a fault is injected into."""

    def __init__(self, scene: Scene, make: Callable[[Scene], Caller], choice: random.Random) -> None:
        self.scene = scene
        self.choice = choice
        self.pane = ""
        self.faults = 0
        self.wrong: list[str] = []
        self.left: list[str] = []
        self.callers: list[Caller] = []
        self._make = make
        self._stack = AsyncExitStack()
        self._numbers = count(1)
        self._ran: list[Ran] = []
        self._sent: list[tuple[str, Pending]] = []
        self._sink = ""
        self._descriptors = 0

    @property
    def caller(self) -> Caller:
        """The server of ours that lives, and its client."""
        return self.callers[-1]

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        try:
            await self.replace()
            await self.new_pane()
            await self.ends((await self.run()).pending, {"completed"})
        except BaseException:
            await self._stack.aclose()
            raise
        self._descriptors = descriptors(self.caller.process.pid)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        for caller in self.callers:
            self.wrong += caller.wrong

    async def replace(self) -> None:
        """Start a server of ours, in place of one that has ended."""
        self.callers.append(self._make(self.scene))
        await self._stack.enter_async_context(self.caller)
        if not await self.caller.open():
            raise Broken(f"the server did not start: {self.scene.place.errors.read_text()[-300:]}")

    async def new_pane(self) -> None:
        """Make the pane that calls are about from now on."""
        self.pane = (await self.needs("create_session"))["pane_id"]
        self.scene.note_server()

    # What is called

    async def run(self, pane: str = "", *, lasting: bool = False, **arguments: Any) -> Ran:
        """Begin a command that notes that it ran; with `lasting`, one that goes on until it is ended."""
        token = f"t{next(self._numbers)}"
        status = 0 if lasting else self.choice.choice((0, 1, 3, 77))
        lines = self.choice.choice((0, 1, 5, 300))
        note = f"echo {token} >> {self.scene.notes}/ran"
        command, output = f"{note}; seq {lines}", "\n".join(map(str, range(1, lines + 1)))
        if lasting:
            command = f"{note}; sleep 1000"
        elif self.choice.random() < 0.4:
            # Too long for a literal, so that a reader in the pane collects it.
            words = "-".join(f"{token}é" for _ in range(self.choice.choice((9, 400))))
            command, output = f"{command}\nprintf %s {words}", f"{output}\n{words}".removeprefix("\n")
        command = f"{command}; sh -c 'exit {status}'"
        pending = await self.caller.begin(
            "run_shell_command", pane_id=pane or self.pane, command=command, **arguments
        )
        self._ran.append(Ran(token, command, output, status, pending, not lasting))
        return self._ran[-1]

    async def sink(self) -> str:
        """A pane that writes what is typed into it to a file, byte for byte."""
        if not self._sink:
            pane = (await self.needs("create_session"))["pane_id"]
            file = self.scene.notes / "sink"
            command = f"exec sh -c 'stty raw -echo; echo ready; exec cat > {file}'"
            made = await self.needs("respawn_pane", pane_id=pane, command=command, kill=True)
            seen = {"pane_id": pane, "cursor": made["cursor"], "patterns": ["ready"], "timeout": 20}
            await self.ends(await self.caller.begin("wait_for_text", **seen), {"matched"})
            self._sink = pane
        return self._sink

    async def type(self, size: int | None = None) -> Pending:
        """Begin to type or paste a text of about that many bytes into the sink."""
        pane, token = await self.sink(), f"<{next(self._numbers)}:"
        size = size or self.choice.choice((1, 100, 5000, 60_000))
        text = f"{token}{'x' * size}>"
        if self.choice.random() < 0.5 and size <= 60_000:
            pending = await self.caller.begin("send_keys", pane_id=pane, text=text)
        else:
            pending = await self.caller.begin("paste_text", pane_id=pane, text=text, bracketed=False)
        self._sent.append((text, pending))
        return pending

    async def read(self) -> Pending:
        """Begin one of the tools that only look."""
        pane: dict[str, Any] = {"pane_id": self.pane}
        tool, arguments = self.choice.choice(
            [
                ("list_sessions", {}),
                ("list_windows", {}),
                ("list_panes", {}),
                ("get_server_info", {}),
                ("get_pane_info", pane),
                ("capture_pane", pane),
                ("capture_since", pane),
                ("snapshot_pane", pane),
                ("search_panes", {"pattern": "x"}),
                ("get_tmux_variables", {"names": ["pid", "start_time"]}),
                ("show_option", {"name": "history-limit", "scope": "session", "session": OTHERS}),
                ("show_environment", {}),
                ("show_hooks", {}),
                (
                    "call_read_tools_batch",
                    {"operations": [{"tool": "list_panes"}, {"tool": "list_sessions"}]},
                ),
            ]
        )
        return await self.caller.begin(tool, **arguments)

    async def wait(self, *, timeout: float = 25, pane: str = "") -> Pending:
        """Begin a wait for text that never comes, and see it under way."""
        pending = await self.caller.begin(
            "wait_for_text", pane_id=pane or self.pane, patterns=["nothing prints this"], timeout=timeout
        )
        await self.moving(pending)
        return pending

    async def some(self, number: int) -> list[Pending]:
        """Begin that many calls of any kind."""
        pending = []
        for _ in range(number):
            kind = self.choice.choice(("run", "type", "read", "read", "wait", "channel"))
            if kind == "run":
                pending.append((await self.run(timeout=5)).pending)
            elif kind == "type":
                pending.append(await self.type())
            elif kind == "read":
                pending.append(await self.read())
            elif kind == "wait":
                arguments = {"pane_id": self.pane, "quiet_for": 0.2, "timeout": 2}
                pending.append(await self.caller.begin("wait_for_text", **arguments))
            else:
                channel = f"c{self.choice.randrange(3)}"
                pending.append(await self.caller.begin("wait_for_channel", channel=channel, timeout=1))
        return pending

    async def moving(self, pending: Pending) -> None:
        """Wait until a call tells its progress: it is under way, and a command has been typed."""
        with anyio.move_on_after(20):
            while not (pending.moving.is_set() or pending.over.is_set()):
                await anyio.sleep(0.01)
            return
        self.wrong.append(f"{pending.what}: no progress in 20 s")

    def began(self, ran: Ran) -> bool:
        """Whether a command has begun to run."""
        return ran.token in self._noted()

    async def lasting(self, pane: str = "", **arguments: Any) -> Ran:
        """Begin a command that goes on until it is ended, and see it under way."""
        ran = await self.run(pane, lasting=True, **arguments)
        await self.seen(ran)
        return ran

    async def seen(self, ran: Ran) -> None:
        """Wait until a command has begun to run."""
        if not await until(lambda: self.began(ran) or ran.pending.over.is_set()):
            self.wrong.append(f"run_shell_command: {ran.command[:60]!r} did not begin")

    async def pause(self, seconds: float) -> None:
        """Let something between nothing and `seconds` go by: this is the fault's moment, not an order."""
        await anyio.sleep(self.choice.uniform(0, seconds))

    # What must have come of it

    async def must(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to succeed."""
        answer = await self.caller.call(tool, **arguments)
        if answer.outcome not in FINE:
            self.wrong.append(f"{tool} {str(arguments)[:200]}: {answer.outcome}: {answer.result}")
        return answer.result

    async def needs(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool without whose result the round cannot go on."""
        answer = await self.caller.call(tool, **arguments)
        if answer.outcome not in FINE:
            raise Broken(f"{tool} {str(arguments)[:200]}: {answer.outcome}: {answer.result}")
        return answer.result

    async def ends(self, pending: Pending, allowed: Iterable[str]) -> Answer:
        """Wait for a call that has to end in one of these ways."""
        answer = await self.caller.answer(pending)
        if answer.outcome not in allowed:
            told = f"{pending.what}: {answer.outcome}, not {sorted(allowed)}: {str(answer.result)[:300]}"
            screen = self.scene.tmux("capture-pane", "-p", "-J", "-t", self.pane, check=False)
            last = (f"  | {line[:160]}" for line in screen.rstrip().split("\n")[-6:])
            self.wrong.append("\n".join([told, *last]))
        return answer

    async def all_end(self, pending: Iterable[Pending], allowed: Iterable[str]) -> None:
        for each in pending:
            await self.ends(each, allowed)

    async def recovered(self, **session: Any) -> None:
        """A new session has to work in every way."""
        made = await self.needs("create_session", **session)
        pane = made["pane_id"]
        self.scene.note_server()
        for _ in range(2):
            ran = await self.run(pane)
            await self.ends(ran.pending, {"completed"})
        pasted = await self.needs("paste_text", pane_id=pane, text="echo past''ed", enter=True)
        seen = {"pane_id": pane, "cursor": pasted["cursor"], "patterns": ["pasted"], "timeout": 20}
        await self.ends(await self.caller.begin("wait_for_text", **seen), {"matched"})
        await self.channel("again")
        await self.must("kill_session", session=made["session_id"])

    async def channel(self, name: str) -> None:
        """A channel has to pass on one signal: nobody left behind takes it, and none is left over."""
        await self.ends(
            await self.caller.begin("wait_for_channel", channel=name, timeout=0.2), {"timeout", "signaled"}
        )
        await self.must("signal_channel", channel=name)
        await self.ends(await self.caller.begin("wait_for_channel", channel=name, timeout=20), {"signaled"})
        await self.ends(await self.caller.begin("wait_for_channel", channel=name, timeout=0.2), {"timeout"})

    async def verdict(self) -> None:
        """Judge what was called, and look for what was left."""
        self._judge_runs()
        await self._judge_typed()
        await self._judge_process()
        self.caller.close_input()
        if not await self.caller.ended():
            self.wrong.append("the process did not end with its input")
        self.left += await self.scene.leftovers()

    def _noted(self) -> list[str]:
        file = self.scene.notes / "ran"
        return file.read_text().split() if file.exists() else []

    def _judge_runs(self) -> None:
        noted = self._noted()
        for ran in self._ran:
            times, answer = noted.count(ran.token), ran.pending.answer
            if times > 1:
                self.wrong.append(f"{ran.command[:80]!r} ran {times} times")
            if answer is None:
                continue
            if answer.outcome in _NEVER and times:
                self.wrong.append(f"{ran.command[:80]!r} ran, and was told to be {answer.outcome}")
            if answer.outcome == "completed" and ran.strict:
                got = answer.result["output"], answer.result.get("exit_status")
                wanted = ran.output, ran.status
                if times != 1 or (got != wanted and not answer.result["truncated"]):
                    self.wrong.append(f"{ran.command[:80]!r} ran {times} times: {got} and not {wanted}")

    async def _judge_typed(self) -> None:
        file = self.scene.notes / "sink"
        whole = {text for text, _ in self._sent}
        needed = [text for text, pending in self._sent if pending.answer and pending.answer.outcome == "ok"]

        def typed() -> list[str]:
            return re.findall(r"<[^>]*>", file.read_text()) if file.exists() else []

        if not self._sink_lives():
            return
        if not await until(lambda: set(needed) <= set(typed())):
            missing = [text[:20] for text in needed if text not in typed()]
            self.wrong.append(f"typed, and not there: {missing}")
        there = typed()
        if len(there) != len(set(there)) or not set(there) <= whole:
            self.wrong.append(f"typed twice or in pieces: {[text[:20] for text in there]}")
        rest = re.sub(r"<[^>]*>", "", file.read_text()) if file.exists() else ""
        if rest:
            self.wrong.append(f"a piece of what was typed: {rest[:80]!r}")

    def _sink_lives(self) -> bool:
        return (
            bool(self._sink)
            and self._sink in self.scene.tmux("list-panes", "-a", "-F", "#{pane_id}", check=False).split()
        )

    async def _judge_process(self) -> None:
        """At rest, a server of ours has the descriptors that it had, and no child."""
        pid = self.caller.process.pid
        if self.caller.process.poll() is None and not await until(
            lambda: descriptors(pid) <= self._descriptors
        ):
            self.left.append(f"{descriptors(pid)} descriptors, and it had {self._descriptors}")
        if not await until(lambda: not self._children()):
            self.left.append(f"children {self._children()}")

    def _children(self) -> list[str]:
        return [each.line for each in processes() if each.parent == self.caller.process.pid]


def descriptors(pid: int) -> int:
    """How many files a process has open; 0 where the system does not tell."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0
