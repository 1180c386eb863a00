"""Signals are neither lost nor made up, whoever waits and however a wait ends. tmux itself is the witness."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import CancelScope

from tests.conftest import TMUX
from tmuxmcp.errors import InvalidArgument, NoServer, NotFound, ServerGone
from tmuxmcp.terminal import channels
from tmuxmcp.terminal.channels import Channels, Outcome
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import command
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import Output, ProcessRunner
from tmuxmcp.tmux.socket import Socket

LONG = 20.0
"""Seconds for what has to happen; it is over long before."""
BRIEF = 0.15
"""Seconds after which a wait that still waits is taken to be blocked."""

ROOT = Path(__file__).parent.parent
KILLED = """
import asyncio, sys
from tests.test_channels import Channels, client_on, nothing
from pathlib import Path
asyncio.run(Channels(client_on(Path(sys.argv[1]), sys.argv[2])).wait("c", 60, nothing))
"""


def client_on(path: Path, program: str = TMUX) -> Client:
    return Client(ProcessRunner(), Socket("path", f"path:{path}", str(path)), program)


async def nothing() -> None:
    pass


@pytest.fixture
async def client(socket_path: Path) -> AsyncIterator[Client]:
    client = client_on(socket_path)
    new = command("new-session", "-d", "-s", "base", "exec cat")
    await client.start(new, template=Template(id="#{session_id}"))
    yield client
    with suppress(NoServer, ServerGone):
        await client.call(command("kill-server"))


class Raw:
    """tmux as a person uses it."""

    def __init__(self, client: Client) -> None:
        self._argv = [TMUX, "-N", "-S", client.socket.path, "wait-for"]

    async def signal(self, channel: str, times: int = 1) -> None:
        for _ in range(times):
            await anyio.run_process([*self._argv, "-S", channel])

    def wait(self, channel: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._argv, channel], stdin=subprocess.DEVNULL)

    async def is_pending(self, channel: str) -> bool:
        """Whether a signal is remembered; it is taken. A wait that blocks is ended by a signal of its own."""
        waiter = self.wait(channel)
        if await over(waiter, BRIEF):
            return True
        await self.signal(channel)
        assert await over(waiter, LONG)
        return False


async def over(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends within the time."""
    with anyio.move_on_after(seconds):
        while process.poll() is None:
            await anyio.sleep(0.01)
    return process.poll() is not None


@pytest.fixture
def raw(client: Client) -> Raw:
    return Raw(client)


@pytest.fixture
def ours(client: Client) -> Channels:
    return Channels(client)


async def waiting(client: Client, channel: str, count: int = 1) -> None:
    """Until so many clients wait, as the process list shows them; they may be some milliseconds from it."""
    with anyio.fail_after(LONG):
        while len([seen for seen in await channels._look(client) if seen.channel == channel]) != count:
            await anyio.sleep(0.01)
    await anyio.sleep(0.05)


class Waits:
    """Waits that run beside the test."""

    def __init__(self, ours: Channels) -> None:
        self.ours = ours
        self.outcomes: list[Outcome] = []

    async def one(self, channel: str, seconds: float = LONG) -> None:
        self.outcomes.append(await self.ours.wait(channel, seconds, nothing))


async def test_a_signal_before_the_wait_is_taken_once(ours: Channels, raw: Raw) -> None:
    await ours.signal("c")
    assert await ours.wait("c", LONG, nothing) == "signaled"
    assert await ours.wait("c", BRIEF, nothing) == "timeout"
    assert not await raw.is_pending("c")


async def test_a_signal_during_the_wait_ends_it(client: Client, ours: Channels, raw: Raw) -> None:
    waits = Waits(ours)
    async with anyio.create_task_group() as group:
        group.start_soon(waits.one, "c")
        await waiting(client, "c")
        await raw.signal("c")
    assert waits.outcomes == ["signaled"]
    assert not await raw.is_pending("c")


@pytest.mark.parametrize("ended_by", ["timeout", "cancellation"])
@pytest.mark.parametrize("waits", [1, 3])
@pytest.mark.parametrize("signals", [0, 1, 2, 3])
async def test_signals_after_waits_that_gave_up_count_as_if_nobody_had_waited(
    client: Client, ours: Channels, raw: Raw, ended_by: str, waits: int, signals: int
) -> None:
    for _ in range(waits):
        if ended_by == "timeout":
            assert await ours.wait("c", 0.1, nothing) == "timeout"
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(ours.wait, "c", LONG, nothing)
                await waiting(client, "c")
                group.cancel_scope.cancel()
        await waiting(client, "c", 0)
    await raw.signal("c", signals)
    assert await raw.is_pending("c") == (signals % 2 == 1)
    assert not await raw.is_pending("c")


async def test_a_wait_that_is_cancelled_at_once_leaves_the_channel_alone(ours: Channels, raw: Raw) -> None:
    for seconds in (0.0, 0.001, 0.003, 0.01):
        with anyio.move_on_after(seconds):
            await ours.wait("c", LONG, nothing)
        assert not await raw.is_pending("c")
        await raw.signal("c")
        assert await raw.is_pending("c")


async def test_a_signal_wakes_all_waits(client: Client, ours: Channels, raw: Raw) -> None:
    waits, theirs = Waits(ours), raw.wait("c")
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(waits.one, "c")
        await waiting(client, "c", 4)
        await raw.signal("c")
    assert waits.outcomes == ["signaled"] * 3
    assert await over(theirs, LONG)
    assert not await raw.is_pending("c")


class Held(ProcessRunner):
    """Holds the second wait back, before its process is started."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self.go = anyio.Event()

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        if "wait-for" in argv and "-S" not in argv[argv.index("wait-for") :]:
            self.waits += 1
            if self.waits == 2:
                await self.go.wait()
        return await super().run(argv, **how)


@pytest.mark.parametrize("early", [True, False])
async def test_a_wait_that_gives_up_takes_no_signal_from_one_that_begins(
    client: Client, raw: Raw, early: bool
) -> None:
    runner = Held()
    ours = Channels(Client(runner, client.socket, client.binary))
    waits = Waits(ours)
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as first:
            first.start_soon(waits.one, "c")
            await waiting(client, "c")
            group.start_soon(waits.one, "c")
            while runner.waits < 2:
                await anyio.sleep(0.01)
            first.cancel_scope.cancel()
            if early:
                with CancelScope(shield=True):
                    await raw.signal("c")
            runner.go.set()
        if not early:
            await waiting(client, "c")
            await raw.signal("c")
    assert waits.outcomes == ["signaled"]
    assert not await raw.is_pending("c")


async def test_a_wait_that_gives_up_wakes_no_other(client: Client, ours: Channels, raw: Raw) -> None:
    waits, theirs = Waits(ours), raw.wait("c")
    async with anyio.create_task_group() as group:
        group.start_soon(waits.one, "c")
        await waiting(client, "c", 2)
        assert await ours.wait("c", 0.1, nothing) == "timeout"
        assert not waits.outcomes
        assert not await over(theirs, BRIEF)
        await raw.signal("c")
    assert waits.outcomes == ["signaled"]
    assert await over(theirs, LONG)
    await raw.signal("c")
    assert await raw.is_pending("c")


async def test_waits_of_one_process_need_no_process_list(
    client: Client, ours: Channels, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(client: Client) -> list[channels._Seen]:
        return []

    waits = Waits(ours)
    async with anyio.create_task_group() as group:
        group.start_soon(waits.one, "c")
        await waiting(client, "c")
        monkeypatch.setattr(channels, "_look", nobody)
        assert await ours.wait("c", 0.1, nothing) == "timeout"
        assert not waits.outcomes
        await raw.signal("c")
    assert waits.outcomes == ["signaled"]
    assert await ours.wait("c", 0.1, nothing) == "timeout"
    await raw.signal("c")
    assert await raw.is_pending("c")


async def test_a_process_list_that_cannot_be_read(
    ours: Channels, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when there are too many open files."""

    def full(path: str) -> list[str]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(os, "listdir", full)
    assert await ours.wait("c", 0.1, nothing) == "timeout"
    await raw.signal("c")
    assert await raw.is_pending("c")


async def test_another_process_that_waits_is_left_waiting(client: Client, ours: Channels, raw: Raw) -> None:
    theirs = raw.wait("c")
    await waiting(client, "c")
    assert await Channels(client).wait("c", 0.1, nothing) == "timeout"
    assert await ours.wait("c", 0.1, nothing) == "timeout"
    assert not await over(theirs, BRIEF)
    await raw.signal("c")
    assert await over(theirs, LONG)
    await raw.signal("c")
    assert await raw.is_pending("c")


async def test_waits_that_give_up_together_leave_nobody_in_the_queue(ours: Channels, raw: Raw) -> None:
    waits = Waits(ours)
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(waits.one, "c", 0.3)
    assert waits.outcomes == ["timeout"] * 4
    await raw.signal("c")
    assert await raw.is_pending("c")


async def test_a_signal_at_the_last_moment_is_neither_lost_nor_doubled(ours: Channels, raw: Raw) -> None:
    chance = random.Random(1)
    seen = set()
    for _ in range(25):
        waits = Waits(ours)
        async with anyio.create_task_group() as group:
            group.start_soon(waits.one, "c", 0.05)
            await anyio.sleep(0.05 + chance.uniform(-0.02, 0.02))
            await raw.signal("c")
        pending = await raw.is_pending("c")
        assert pending == (waits.outcomes == ["timeout"])
        seen.add(pending)
    assert seen == {True, False}


async def leave_behind_a_waiter(client: Client) -> None:
    """Kill a process of ours while it waits."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, client.socket.path, client.binary], cwd=ROOT
    ) as victim:
        await waiting(client, "c")
        victim.send_signal(signal.SIGKILL)


async def test_the_next_tmuxmcp_clears_up_after_a_killed_one(client: Client, raw: Raw) -> None:
    for _ in range(2):
        await leave_behind_a_waiter(client)
        await Channels(client).signal("c")
        await waiting(client, "c", 0)
        assert await raw.is_pending("c")


async def test_a_killed_tmuxmcp_does_not_count_among_those_who_wait(
    client: Client, ours: Channels, raw: Raw
) -> None:
    await ours.signal("other")
    await leave_behind_a_waiter(client)
    assert await ours.wait("c", 0.1, nothing) == "timeout"
    await waiting(client, "c", 0)
    await raw.signal("c")
    assert await raw.is_pending("c")


@pytest.mark.parametrize("end", ["kill-server", "kill-session", "SIGKILL"])
async def test_the_end_of_the_server_ends_a_wait(client: Client, ours: Channels, end: str) -> None:
    waits = Waits(ours)
    server = await client.server()
    async with anyio.create_task_group() as group:
        group.start_soon(waits.one, "c")
        await waiting(client, "c")
        if end == "SIGKILL":
            os.kill(server.pid, signal.SIGKILL)
        else:
            await client.call(command(end))
    assert waits.outcomes == ["server_gone"]


async def test_a_server_without_sessions_has_channels(client: Client, ours: Channels) -> None:
    await client.call(command("set-option", "-s", "exit-empty", "off"), command("kill-session"))
    await ours.signal("c")
    assert await ours.wait("c", LONG, nothing) == "signaled"


async def test_without_a_server_there_are_no_channels(socket_path: Path) -> None:
    ours = Channels(client_on(socket_path))
    with pytest.raises(NoServer):
        await ours.signal("c")
    with pytest.raises(NoServer):
        await ours.wait("c", LONG, nothing)


@pytest.mark.parametrize(
    "channel",
    ["a;", ";", "a b", "#{pid}", "#(touch x)", "'\"$HOME", "a\\;", "日本 😀", "%0"],
)
async def test_any_text_is_a_channel(client: Client, ours: Channels, channel: str) -> None:
    assert await ours.wait(channel, 0.1, nothing) == "timeout"
    await ours.signal(channel)
    assert await ours.wait(channel, LONG, nothing) == "signaled"
    waits = Waits(ours)
    async with anyio.create_task_group() as group:
        group.start_soon(waits.one, channel)
        await waiting(client, channel)
        await ours.signal(channel)
    assert waits.outcomes == ["signaled"]


async def test_no_hook_runs(client: Client, ours: Channels) -> None:
    listed = (await client.call(command("show-hooks", "-g"))).splitlines()
    hooks = sorted({line.split()[0].partition("[")[0] for line in listed})
    assert len(hooks) > 30
    await client.call(*(command("set-hook", "-g", hook, f"set-buffer -a -b log {hook},") for hook in hooks))
    assert "after-set-hook" in await client.call(command("show-buffer", "-b", "log"))
    await client.call(command("delete-buffer", "-b", "log"))
    await ours.signal("c")
    assert await ours.wait("c", LONG, nothing) == "signaled"
    assert await ours.wait("c", 0.1, nothing) == "timeout"
    with pytest.raises(NotFound):
        await client.call(command("show-buffer", "-b", "log"))


@pytest.mark.parametrize("channel", ["", "a\nb", "\x1b", "\ud800", "a\0", "-S", "--"])
async def test_what_no_channel_can_be_called(ours: Channels, channel: str) -> None:
    with pytest.raises(InvalidArgument):
        await ours.signal(channel)
    with pytest.raises(InvalidArgument):
        await ours.wait(channel, LONG, nothing)


async def test_ticks_while_it_waits(ours: Channels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmuxmcp.limits.PROGRESS_SECONDS", 0.05)
    ticks = []

    async def tick() -> None:
        ticks.append(anyio.current_time())

    assert await ours.wait("c", 0.4, tick) == "timeout"
    assert 3 <= len(ticks) <= 8


@pytest.mark.parametrize(
    ("line", "channel"),
    [
        ("tmux wait-for c", "c"),
        ("/usr/bin/tmux -u -N -S /tmp/s wait-for -- c ; list-commands", "c"),
        ("tmux -S/tmp/./s wait c", "c"),
        ("tmux -L s wait c", "c"),
        ("ld.so --library-path /l /opt/tmux -N wait-for c", "c"),
        ("tmux new-session -d ; wait-for c", "c"),
        ("tmux -S /tmp/other wait-for c", None),
        ("tmux -L other wait-for c", None),
        ("tmux wait-for -S c", None),
        ("tmux wait-for", None),
        ("sh -c sleep 9; tmux wait-for c", None),
        ("vim wait-for c", None),
        ("wait-for c", None),
        ("", None),
    ],
)
def test_who_waits_by_the_process_list(line: str, channel: str | None) -> None:
    assert channels._channel(line.split(), client_on(Path("/tmp/s"))) == channel


async def test_the_process_list_is_the_same_by_ps(
    client: Client, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = raw.wait("c")
    await waiting(client, "c")
    monkeypatch.setattr("os.path.exists", lambda path: False)
    assert [(seen.channel, seen.orphaned) for seen in await channels._look(client)] == [("c", False)]
    await raw.signal("c")
    assert await over(theirs, LONG)
