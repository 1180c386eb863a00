"""Waiting for a tmux channel without losing a signal that comes when nobody waits any more.

tmux remembers a signal that finds no waiter, and a second one erases it again. Up to 3.7 a client that
is killed while it waits stays in the channel's queue, where it swallows the next signal. So a wait that
gives up signals the channel itself: that takes its own client out of the queue, and a signal that
arrived at the same moment is left behind for whoever waits next.

It would wake everyone else who waits for the same channel, so then it is left out: the next signal
wakes them, and clears the queue. Who else waits is read from the process list; whom that does not show
is woken. A client whose tmuxmcp was killed is found there too: it is taken out by the next tmuxmcp that
uses a channel, and swallows a signal that comes before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import anyio
from anyio import CancelScope, to_thread

from tmuxmcp import limits
from tmuxmcp.errors import NoServer, ServerGone, ToolError
from tmuxmcp.terminal.processes import parent_of
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, Command, command
from tmuxmcp.tmux.records import new_nonce
from tmuxmcp.tmux.runner import Runner

Outcome = Literal["signaled", "timeout", "server_gone"]

_MARK: Final = re.compile(r"tmuxmcp-wait-(?P<owner>\d+)-[0-9a-f]+")
_GIVING_UP_SECONDS: Final = 3.0
"""What each step of a wait's end may take: mostly some milliseconds, but tmux, or the system, may be busy."""
_ENDING_SECONDS: Final = 0.1
_SPARE_SECONDS: Final = 60.0
"""What a waiting client may live beyond its time, if nothing else ends it."""


class Channels:
    """The channels of the pinned server, as this process uses them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = anyio.Lock()
        self._waiters: dict[str, set[_Waiter]] = {}
        self._swept = False

    async def signal(self, channel: str) -> None:
        """Wake all who wait for `channel`, else be remembered for the next wait. Raises `NoServer`."""
        await self._sweep()
        await self._client.call(_signal(channel))

    async def wait(self, channel: str, seconds: float, tick: Callable[[], Awaitable[None]]) -> Outcome:
        """Wait for a signal, or take the one that is remembered; `tick` is called about once a second.

        ``server_gone`` is for a server that ends meanwhile. Raises `NoServer`.
        """
        await self._sweep()
        waiter = _Waiter(self._client, channel)
        async with self._lock:  # Not between another wait's look at who else waits and its signal.
            self._waiters.setdefault(channel, set()).add(waiter)
        in_time = False
        async with anyio.create_task_group() as group:
            group.start_soon(waiter.run, seconds + _SPARE_SECONDS)
            try:
                await _ended(waiter, seconds, tick)
                in_time = waiter.ended.is_set()
            finally:
                with CancelScope(shield=True):
                    await self._leave(waiter, in_time)
        return await waiter.outcome() if in_time else "timeout"

    async def _leave(self, waiter: _Waiter, in_time: bool) -> None:
        """End a wait; one whose result is not told gives back the signal that it may have got."""
        channel = waiter.channel
        async with self._lock:
            others = self._waiters[channel]
            others.discard(waiter)
            if not others:
                del self._waiters[channel]
            if in_time:
                pass
            elif others:
                await self._hand_over(waiter, others)
            elif not await self._has_others(waiter):
                await self._release(channel)
                with anyio.move_on_after(_GIVING_UP_SECONDS):
                    await waiter.ended.wait()
            await waiter.end()

    async def _hand_over(self, waiter: _Waiter, others: set[_Waiter]) -> None:
        """Let no signal be lost that came, or comes, before the clients of the others are in the queue."""
        with anyio.move_on_after(_GIVING_UP_SECONDS):
            for other in others:
                await other.queued.wait()
        if waiter.ended.is_set():
            # Those that the same signal has woken are about to end.
            with anyio.move_on_after(_ENDING_SECONDS):
                for other in others:
                    await other.ended.wait()
            if not all(other.ended.is_set() for other in others):
                await self._release(waiter.channel)

    async def _has_others(self, waiter: _Waiter) -> bool:
        """Whether anyone but this process waits for the channel."""
        return any(
            other.channel == waiter.channel and other.mark != waiter.mark and not other.orphaned
            for other in await _look(self._client)
        )

    async def _sweep(self) -> None:
        """Take out the clients that a killed tmuxmcp left behind, where nobody else waits."""
        async with self._lock:
            if not self._swept:
                self._swept = True
                seen = await _look(self._client)
                busy = {other.channel for other in seen if not other.orphaned}
                for channel in {other.channel for other in seen} - busy:
                    await self._release(channel)

    async def _release(self, channel: str) -> None:
        with suppress(ToolError):
            await self._client.call(_signal(channel), timeout=_GIVING_UP_SECONDS)


class _Waiter:
    """One tmux client that waits. Only `end` ends it before its time: a cancellation does not reach it."""

    def __init__(self, client: Client, channel: str) -> None:
        self.channel = channel
        self.mark = f"tmuxmcp-wait-{os.getpid()}-{new_nonce()}"
        self.queued = anyio.Event()
        """Set when tmux has begun: the client is in the channel's queue, or has taken a signal."""
        self.ended = anyio.Event()
        self._client = client
        self._life = CancelScope(shield=True)
        self._printed = ""
        self._error: ToolError | None = None

    async def run(self, seconds: float) -> None:
        try:
            with self._life:
                self._printed = await self._client.call(
                    command("list-commands", "-F", ".", "list-commands"),
                    command("wait-for", Arg("CHANNEL", self.channel)),
                    # Tells of every session, and whether the server ends without one. No hook runs after it.
                    command("list-commands", "-F", f"{self.mark}#{{S:.}}#{{exit-empty}}", "wait-for"),
                    timeout=seconds,
                    begun=self.queued.set,
                )
        except ToolError as error:
            self._error = error
        finally:
            self.queued.set()
            self.ended.set()

    async def end(self) -> None:
        self._life.cancel()
        await self.ended.wait()

    async def outcome(self) -> Outcome:
        if self._error is not None and not isinstance(self._error, ServerGone):
            raise self._error
        if f"{self.mark}." in self._printed:
            return "signaled"
        # A server that ends wakes its clients as a signal does, when its sessions are gone already, and goes
        # on to answer until they have left.
        if f"{self.mark}1" in self._printed:
            return "server_gone"
        try:
            await self._client.call(command("list-commands", "wait-for"))
        except (NoServer, ServerGone):
            return "server_gone"
        return "signaled"


class _Seen(NamedTuple):
    """A client in the process list that waits for a channel of our server; `mark` if tmuxmcp started it."""

    channel: str
    mark: str
    orphaned: bool


def _signal(channel: str) -> Command:
    return command("wait-for", "-S", Arg("CHANNEL", channel))


async def _ended(waiter: _Waiter, seconds: float, tick: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(seconds):
        while not waiter.ended.is_set():
            with anyio.move_on_after(limits.PROGRESS_SECONDS):
                await waiter.ended.wait()
            await tick()


async def _look(client: Client) -> list[_Seen]:
    """Who waits for channels of our server. Empty where the system does not tell."""
    seen = []
    for parent, line in await _processes(client.runner):
        if (channel := _channel(line, client)) is not None:
            mark = next(filter(None, map(_MARK.match, line)), None)
            orphaned = mark is not None and int(mark["owner"]) != parent
            seen.append(_Seen(channel, mark[0] if mark else "", orphaned))
    return seen


def _channel(line: Sequence[str], client: Client) -> str | None:
    """The channel that a command line waits for, if it is one of tmux on our socket."""
    at = next((at for at, word in enumerate(line) if word.startswith("wait")), 0)
    options, rest = line[:at], line[at + 1 :]
    programs = {"tmux", os.path.basename(client.binary)}
    if "-c" in options or not programs & {os.path.basename(word) for word in options}:
        return None  # Not tmux; `sh -c` may only be about to call it.
    said = " ".join(options)
    socket = client.socket.path
    if (path := re.search(r" -S ?(\S+)", said)) and os.path.realpath(path[1]) != os.path.realpath(socket):
        return None
    if (name := re.search(r" -L ?(\S+)", said)) and name[1] != os.path.basename(socket):
        return None
    if rest[:1] == ["--"]:
        rest = rest[1:]
    elif rest and rest[0].startswith("-"):
        return None
    return re.sub(r"\\;$", ";", rest[0]) if rest else None


async def _processes(runner: Runner) -> list[tuple[int, list[str]]]:
    """The parent and the command line of every process that we may see and that could be waiting."""
    if os.path.exists("/proc/self/cmdline"):
        return await to_thread.run_sync(_from_proc)
    with suppress(ToolError):
        ps = ["ps", "-A", "-ww", "-o", "ppid=,args="]
        answer = await runner.run(ps, timeout=_GIVING_UP_SECONDS, max_output=10_000_000)
        lines = (line.split() for line in os.fsdecode(answer.stdout).splitlines())
        return [(int(line[0]), line[1:]) for line in lines if line and line[0].isdigit()]
    return []


def _from_proc() -> list[tuple[int, list[str]]]:
    found = []
    pids: list[str] = []
    with suppress(OSError):
        pids = os.listdir("/proc")
    for pid in filter(str.isdigit, pids):
        with suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
            if b"\0wait" in line and (parent := parent_of(int(pid))) is not None:
                found.append((parent, os.fsdecode(line).split("\0")[:-1]))
    return found
