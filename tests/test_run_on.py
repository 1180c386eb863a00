"""Only in a pane that is as the last command left it is the next one typed without a look before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.panes import Pane, pane
from tmuxmcp.errors import NotFound, PaneBusy, PaneInMode, PaneInputOff, PaneSynchronized, ToolError
from tmuxmcp.terminal.keyboard import Stroke
from tmuxmcp.terminal.watch import Ending
from tmuxmcp.tmux.runner import Output

pytestmark = pytest.mark.anyio


class Recorder:
    """Tells the invocations that type from the others."""

    def __init__(self, pane: Pane) -> None:
        self._runner = pane.client.runner
        self.typed: list[bool] = []
        pane.client.runner = self

    async def run(self, argv: Sequence[str], **how: Any) -> Output:
        self.typed.append("load-buffer" in argv)
        return await self._runner.run(argv, **how)


def told(ending: Ending) -> tuple[str, int | None, str]:
    return ending.outcome, ending.status, ending.text


async def leave(p: Pane) -> None:
    """Run a command until the pane is remembered as it left it."""
    with anyio.fail_after(30):
        while not p.terminal.memory(p.id).left:
            assert told(await p.run("echo left")) == ("completed", 0, "left\n")


async def test_no_look_is_taken_before(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        recorder = Recorder(p)
        with anyio.fail_after(60):
            for number in range(1000):
                await leave(p)
                recorder.typed.clear()
                assert told(await p.run(f"echo {number}; sh -c 'exit 3'")) == ("completed", 3, f"{number}\n")
                assert sum(recorder.typed) == 1 or not recorder.typed[0]
                if recorder.typed[0]:
                    break


async def half_a_line(p: Pane) -> None:
    await p.type("touch bad")


async def a_line_and_the_cursor_back_at_its_beginning(p: Pane) -> None:
    await p.type("touch bad", "C-a")


async def an_unfinished_line(p: Pane) -> None:
    row = int(p.tmux("display-message", "-p", "#{cursor_y}"))
    await p.type("touch 'bad", "Enter")
    with anyio.fail_after(20):
        while int(p.tmux("display-message", "-p", "#{cursor_y}")) == row:
            await anyio.sleep(0.01)


async def another_width(p: Pane) -> None:
    p.tmux("resize-window", "-x", "150", "-y", "40")


async def output_of_others(p: Pane) -> None:
    tty = p.tmux("display-message", "-p", "#{pane_tty}").strip()
    Path(tty).write_text("from elsewhere\r\n")
    await p.screen("from elsewhere")


async def another_program(p: Pane) -> None:
    pid = p.tmux("display-message", "-p", "#{pane_pid}")
    p.tmux("respawn-pane", "-k")
    assert p.tmux("display-message", "-p", "#{pane_pid}") != pid


async def a_cleared_pane(p: Pane) -> None:
    await p.type("clear", "Enter")
    await p.until(lambda screen: "left" not in screen)
    p.tmux("clear-history")


async def a_shell_in_the_shell(p: Pane) -> None:
    """At the same place of the screen, where it can be."""
    name = p.tmux("display-message", "-p", "#{pane_current_command}").strip()
    await p.type(f"clear; {name}", "Enter")
    await p.until(lambda screen: "left" not in screen)
    p.tmux("clear-history")


CHANGES = (
    half_a_line,
    a_line_and_the_cursor_back_at_its_beginning,
    an_unfinished_line,
    another_width,
    output_of_others,
    another_program,
    a_cleared_pane,
    a_shell_in_the_shell,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_what_happened_meanwhile_does_not_matter(
    socket_path: Path, shell: str, change: Callable[[Pane], Awaitable[None]]
) -> None:
    async with pane(socket_path, shell) as p:
        await leave(p)
        await change(p)
        assert told(await p.run("echo one; sh -c 'exit 4'")) == ("completed", 4, "one\n")
        assert told(await p.run("echo 'two\nthree'")) == ("completed", 0, "two\nthree\n")
        assert told(await p.run("ls")) == ("completed", 0, "")


async def _busy(p: Pane) -> None:
    await p.type("cat", "Enter")
    await p.program("cat")


async def _mode(p: Pane) -> None:
    p.tmux("copy-mode")


async def _off(p: Pane) -> None:
    p.tmux("select-pane", "-d")


async def _synchronized(p: Pane) -> None:
    p.tmux("split-window", "-d", "-f", "cat")
    p.tmux("set-option", "-w", "synchronize-panes", "on")


async def _gone(p: Pane) -> None:
    p.tmux("new-window", "-d", "cat")
    p.tmux("kill-pane", "-t", p.id)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_busy, PaneBusy),
        (_mode, PaneInMode),
        (_off, PaneInputOff),
        (_synchronized, PaneSynchronized),
        (_gone, NotFound),
    ],
)
async def test_a_refusal_is_as_ever(
    socket_path: Path, shell: str, change: Callable[[Pane], Awaitable[None]], error: type[ToolError]
) -> None:
    async with pane(socket_path, shell) as p:
        await leave(p)
        await change(p)
        with pytest.raises(error):
            await p.run("touch bad", timeout=5)
        assert not p.tmux("list-buffers")
        assert not (socket_path.parent / "home" / "bad").exists()


async def test_a_command_that_reads_is_not_typed_into(socket_path: Path, shell: str) -> None:
    """Not even where the shell reads with the editor that its prompt has."""
    async with pane(socket_path, shell) as p:
        await leave(p)
        command = "read x; echo got $x" if "fish" not in shell else "sh -c 'read x; echo got $x'"
        reading = await p.run(command, timeout=0.5)
        assert reading.outcome == "timed_out"
        with suppress(PaneBusy):
            assert (await p.run("touch bad", timeout=3)).outcome == "not_started"
        await p.type("this", "Enter")
        await p.screen("got this")
        assert told(await p.run("ls")) == ("completed", 0, "")


async def test_what_was_typed_just_before_has_the_terminal(socket_path: Path, shell: str) -> None:
    """The shell that is still about to read it is not taken for one at its prompt."""
    async with pane(socket_path, shell) as p:
        for _ in range(10):
            await leave(p)
            await p.keyboard.type_everywhere(p.id, Stroke(text="cat > it", keys=("Enter",)))
            with pytest.raises(PaneBusy):
                await p.run("touch bad", timeout=2)
            await p.program("cat")
            await p.type("", "C-c")
            await p.program(Path(shell).name, "ksh93")
        assert told(await p.run("wc -c < it; rm it; ls")) == ("completed", 0, "0\n")


async def test_keys_that_end_no_line_are_not_waited_for(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await leave(p)
        await p.keyboard.type_everywhere(p.id, Stroke(text="touch bad", keys=("Left",)))
        assert p.terminal.memory(p.id).entered is None
        assert told(await p.run("ls")) == ("completed", 0, "")


async def test_a_key_that_somebody_presses_while_a_command_is_sent(socket_path: Path, shell: str) -> None:
    """The command is run as it was given, or not at all, and what is left of it is nobody's input."""
    ran = 0
    async with pane(socket_path, shell) as p:
        await leave(p)
        for number in range(16):
            endings: list[Ending] = []

            async def run(number: int = number, endings: list[Ending] = endings) -> None:
                endings.append(await p.run(f"touch {number}\n: ; touch {number}.end"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await anyio.sleep(number / 1000)
                p.tmux("send-keys", "-t", p.id, *(["x"] if number % 2 else ["Enter"]))
            await p.type("", "C-u")
            there = sorted(path.name for path in (socket_path.parent / "home").glob(f"{number}*"))
            if endings[0].outcome == "completed":
                ran += 1
                assert there == [f"{number}", f"{number}.end"]
            else:
                assert (endings[0].outcome, there) == ("not_started", [])
        assert ran
