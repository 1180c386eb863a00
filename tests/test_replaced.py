"""What becomes of runs and waits whose tmux server, pane's program or caller goes under them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from tests.conftest import TMUX
from tests.panes import Pane, pane
from tmuxmcp.errors import InvalidCursor
from tmuxmcp.terminal import shells
from tmuxmcp.terminal.cursor import Cursor, Mark
from tmuxmcp.terminal.foreground import Readiness, readiness
from tmuxmcp.terminal.handle import Handle
from tmuxmcp.terminal.keyboard import Stroke
from tmuxmcp.terminal.matching import compile
from tmuxmcp.terminal.panes import State
from tmuxmcp.terminal.shells import Dialect, Marks
from tmuxmcp.terminal.wait import Wait, Waited, Wanted
from tmuxmcp.terminal.watch import Ending

pytestmark = pytest.mark.anyio

T = TypeVar("T")


async def when(condition: Callable[[], object]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await anyio.sleep(0.01)


async def during(call: Awaitable[T], act: Callable[[], Awaitable[object]]) -> T:
    """What a call returns during which `act` happens."""
    results: list[T] = []

    async def make() -> None:
        results.append(await call)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make)
        await act()
    return results[0]


async def lasting(p: Pane, act: Callable[[], Awaitable[object]], timeout: float = 20) -> Ending:
    """The ending of a command during which `act` happens."""

    async def once_it_runs() -> None:
        await p.program("sleep")
        await act()

    return await during(p.run("sleep 60", timeout), once_it_runs)


async def waiting(p: Pane, act: Callable[[], Awaitable[object]], cursor: Cursor | None = None) -> Waited:
    """The end of a wait during which `act` happens."""
    looked = anyio.Event()

    async def progress(seconds: float, /) -> None:
        looked.set()

    async def once_it_waits() -> None:
        await looked.wait()
        await act()

    wanted = Wanted(compile(["never"], regex=False, match_case=True))
    deadline = anyio.current_time() + 20
    wait = Wait(p.terminal, p.id, wanted, deadline=deadline, progress=progress)
    return await during(wait.until(cursor), once_it_waits)


def restart(p: Pane) -> Callable[[], Awaitable[None]]:
    """Kills the tmux server, and starts another one with the same ids."""

    async def act() -> None:
        os.kill(int(p.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
        argv = [TMUX, "-f", "/dev/null", "-S", p.client.socket.path, "new-session", "-d", "exec cat"]
        await when(lambda: not subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode)

    return act


def respawn(p: Pane) -> Callable[[], Awaitable[None]]:
    async def act() -> None:
        p.tmux("respawn-pane", "-k", "-t", p.id)

    return act


async def cursor(p: Pane) -> Cursor:
    mark = Mark(p.id)
    return mark.parse((await p.terminal.look(p.id, along=mark.commands)).told)[0]


async def test_another_server_with_the_same_ids_is_not_the_one_before(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await lasting(p, restart(p))
        assert (ending.outcome, ending.running) == ("server_gone", False)
        assert (await waiting(p, restart(p))).outcome == "server_gone"
        old = await cursor(p)
        assert (await waiting(p, restart(p), old)).outcome == "server_gone"
        with pytest.raises(InvalidCursor):
            await Wait(p.terminal, p.id, Wanted(), deadline=anyio.current_time() + 20).until(old)


async def test_another_program_in_the_pane_is_not_the_one_before(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await lasting(p, respawn(p))
        assert (ending.outcome, ending.status, ending.running) == ("shell_exited", None, False)
        assert "respawn-pane" in ending.note
        waited = await waiting(p, respawn(p))
        assert waited.outcome == "pane_gone"
        assert "respawn-pane" in waited.note


@asynccontextmanager
async def halted(pid: int) -> AsyncIterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_tmux_that_stands_still_ends_no_wait_before_its_time(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        server = int(p.tmux("display-message", "-p", "#{pid}"))

        async def out_of_time() -> None:
            async with halted(server):
                await anyio.sleep(2)

        ending = await lasting(p, out_of_time, timeout=1)
        assert (ending.outcome, ending.running) == ("timed_out", True)
        assert ending.marks is not None
        assert ending.state is not None
        run = Handle.of(ending.marks, ending.state)
        await p.type("", "C-c")
        wait = Wait(p.terminal, p.id, Wanted(run=run), deadline=anyio.current_time() + 20)
        assert (await wait.until()).outcome == "run_completed"

        async def long() -> None:
            async with halted(server):
                await anyio.sleep(6)
            await p.type("", "C-c")

        assert (await lasting(p, long)).outcome == "completed"


async def test_a_line_of_a_cancelled_run_is_taken_before_the_next_one(socket_path: Path) -> None:
    """Nothing shows yet that the shell will run the line that it has been sent, which reads what follows."""
    slow = """bind -x '"\\C-u": for ((i = 0; i < 100000; i++)); do :; done'"""
    async with pane(socket_path, "bash", rc=f"{slow}\n") as p:
        await p.run("true")
        script = shells.script("echo one\n:", Dialect.POSIX, Marks.new(), in_history=False)
        p.terminal.memory(p.id).untaken = script.marks.nonce
        await p.keyboard.type(p.id, Stroke(text=script.line, before=("C-u",), keys=("Enter",)))
        ending = await p.run("echo two\n:")
        assert (ending.outcome, ending.text) == ("completed", "two\n")


async def test_half_a_command_is_not_run(socket_path: Path, shell: str) -> None:
    """A paste that our process was killed in ends early; its reader is released by the next one."""
    async with pane(socket_path, shell) as p:
        await p.run("true")
        script = shells.script(
            "echo one\necho two\n" * 200,
            Dialect.FISH if "fish" in shell else Dialect.ZSH if "zsh" in shell else Dialect.POSIX,
            Marks.new(),
            in_history=False,
        )
        await p.keyboard.type(p.id, Stroke(text=script.line, keys=("Enter",)))
        await p.screen(script.marks.ready)
        await p.keyboard.type(p.id, Stroke(text=script.payload[: len(script.payload) // 2]))
        ending = await p.run("echo three")
        assert (ending.outcome, ending.text) == ("completed", "three\n")
        assert "\none\n" not in p.tmux("capture-pane", "-p", "-S", "-")


async def test_output_stands_on_clean_rows(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        ending = await p.run("seq 300; printf '\\033[10A'")
        assert ending.outcome == "completed"
        assert (await p.run("echo hi")).text == "hi\n"
        assert (await p.run("seq 9")).text == "".join(f"{each}\n" for each in range(1, 10))


async def test_a_script_is_no_shell_that_starts(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.type("sh -c 'printf x; sleep 60; true'", "Enter")
        await p.program("sh")
        await p.screen("\nx")
        state: State = (await p.terminal.look(p.id)).state
        assert await readiness(state, p.client.runner, starting=True) is Readiness.NOT_YET
