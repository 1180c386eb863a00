"""Hostile text in every string of every tool: it stays the text that it is, or is refused.

What would run a command, were any of it read as a format, a shell's word, a flag, a target or tmux's own
language, makes a file; other sessions and the server's settings are compared before and after. Each is
tried several times, since what tmux starts for a format may die with the client that asked.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import offer
from tests.bench import Bench, Counting
from tests.conftest import TMUX
from tests.inventory import ALL, words
from tmuxmcp.arguments import Parameters
from tmuxmcp.errors import ToolError
from tmuxmcp.terminal.keyboard import pasted

TIMES = 5
RUNS = 'touch "$HIT"'
"""Makes the canary file, in a shell that tmux starts as well as in one of a pane."""
PAYLOADS = [
    *(f"#({RUNS})", f"a##({RUNS})", f"}}#({RUNS})", "#{pid}", "#{E:@evil}", "#S", "#[fg=red]", "%H:%M %%"),
    *("%1;", "@0x", "$0:0", "=bystander", "bystan", "byst*", "bystander:", "{last}", "!", "+", "-", ":", "~"),
    *("a;", ";", r"a\;", "; kill-server", "a\nkill-server\n", f"';{RUNS};'", "-t", "--", f"-F#({RUNS})"),
    *(f"$({RUNS})", f"`{RUNS}`", f"|{RUNS}&", "'", '"', "\\", "\t", "\x03", "\x1b[A\r", "\x1b[201~"),
    *("\x9b201~", "é😀日本", "\u2028", "", "../..", "/dev/null", "x" * 1500),
]
REFUSED = ["a\0b", "\ud800"]
"""What no tool takes anywhere."""

PANES = "#{pane_id} #{window_id} #{session_id} #{session_name} #{window_name} #{window_layout} #{pane_title} "
PANES += "#{pane_pid} #{pane_dead} #{pane_in_mode} #{window_active} #{pane_active} #{pane_input_off}"


class World:
    """A tmux server with a session `target`, and one that nothing may happen to."""

    def __init__(self, directory: Path) -> None:
        self.path, self.hit = directory / "s", directory / "hit"
        self.directories, self.typed = directory / "directories", directory / "typed"
        self.directories.mkdir()
        given = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "HIT": str(self.hit), "LC_ALL": "C.UTF-8"}
        start = [TMUX, "-u", "-S", str(self.path), "-f", "/dev/null", "new-session", "-d", "-s", "bystander"]
        # A name that is given does not follow the program.
        subprocess.run(
            [*start, "-n", "first", "exec cat"],
            check=True,
            env=given,
            cwd=directory,
            stdin=subprocess.DEVNULL,
        )
        for line in (
            "set-option -g default-command 'exec cat'",
            f"set-option -g @evil '#({RUNS})'",
            "set-option -g history-limit 200",
            "split-window -d -t %0",
            "new-window -d -t bystander: -n second",
            "set-option -t bystander @mine value",
            "set-environment -t bystander MINE value",
            "set-hook -t bystander pane-exited 'display-message x'",
            "set-buffer -b mine value",
            "send-keys -t %0 'text of the bystander' Enter",
        ):
            self.tmux(*shlex.split(line))
        self.renew()

    def tmux(self, *words: str) -> str:
        argv = [TMUX, "-u", "-N", "-S", str(self.path), *words]
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout

    def renew(self) -> None:
        """End every session but the bystander, and make the target anew."""
        self.tmux("kill-session", "-a", "-t", "bystander")
        ids = ("-P", "-F", "#{session_id} #{window_id} #{pane_id}")
        sink = f"stty raw -echo; exec cat >{self.typed}"
        made = self.tmux("new-session", "-d", "-s", "target", "-x", "100", "-y", "40", *ids, sink)
        self.session, self.window, self.pane = made.split()
        self.shell = self.tmux("new-window", "-d", "-t", "target:", *ids, "exec sh").split()[2]
        self.other = self.tmux("split-window", "-d", "-t", self.shell, *ids, "exec cat").split()[2]

    def state(self) -> str:
        """Everything about the bystander, and about the server."""
        of = ("-t", "bystander:")
        commands = [
            ("list-panes", "-a", "-f", "#{==:#{session_name},bystander}", "-F", PANES),
            *(("show-options", flag) for flag in ("-s", "-g", "-gw")),
            *(("show-options", *flags, *of) for flags in ((), ("-w",), ("-p",))),
            *(("show-hooks", *flags) for flags in (("-g",), ("-gw",), of)),
            *(("show-environment", *flags) for flags in (("-g",), of)),
            ("list-keys",),
            ("list-buffers",),
            ("capture-pane", "-p", "-S", "-", "-t", "%0"),
        ]
        words = [word for command in commands for word in (*command, ";")]
        return self.tmux(*words[:-1])

    def end(self, pane: str) -> str:
        """Kill a pane, and tell the name that its window had."""
        shown = ("display-message", "-p", "-t", pane, "#{window_name}")
        return self.tmux(*shown, ";", "kill-pane", "-t", pane).removesuffix("\n")

    async def is_unharmed(self, bench: Bench) -> bool:
        """Whether no canary has made its file, by the time that a later process of tmux has made another."""
        control = self.hit.with_name("control")
        self.tmux("run-shell", f"touch {control}")
        await bench.until(control.exists)
        control.unlink()
        return not self.hit.exists()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        made = World(Path(directory).resolve())
        yield made
        with suppress(subprocess.CalledProcessError):
            made.tmux("kill-server")


class Case:
    """One string parameter of one tool. Its path is written as in the manifest: ``operations.text``."""

    def __init__(self, tool: str, path: str, schema: Mapping[str, Any], is_list: bool) -> None:
        self.tool, self.path, self.is_list = tool, path, is_list
        self.required = schema.get("required", [])

    def arguments(self, world: World, value: str) -> dict[str, Any]:
        """A whole call with this value."""
        valid: dict[str, Any] = {
            "session": world.session,
            "window_id": world.window,
            "pane_id": world.pane,
            "with_pane_id": world.other,
            "name": "status",
            "scope": "session",
            "names": ["pane_id"],
            "pattern": "x",
            "corner": "top-left",
            "channel": "c",
            "new_name": "n",
            "title": "t",
            "text": "x",
            "layout": "tiled",
            "lines": 500,
            "enabled": True,
            "command": ":",
            "tool": "list_panes",
        }
        holder, _, name = self.path.rpartition(".")
        given = {each: valid[each] for each in self.required if each != name}
        given |= MORE.get(self.tool, {})
        if self.tool == "run_shell_command" and name == "command":
            given["pane_id"] = world.shell
        given[name] = [value] if self.is_list else value
        return {holder: [given]} if holder else given


MORE: dict[str, dict[str, Any]] = {
    "wait_for_text": {"timeout": 0.01},
    "wait_for_channel": {"timeout": 0.01},
    "respawn_pane": {"kill": True},
    "resize_window": {"width": 70},
    "resize_pane": {"width": 30},
    "run_shell_command": {"timeout": 10},
}


def cases() -> Iterator[Case]:
    for tool in ALL:
        function = offer.functions()[tool]
        yield from _cases(tool, Parameters(function.arguments).schema, "")


def _cases(tool: str, schema: Mapping[str, Any], prefix: str) -> Iterator[Case]:
    for name, each in schema["properties"].items():
        inner = each.get("items", each)
        if inner["type"] == "object" and "properties" in inner:
            yield from _cases(tool, inner, f"{name}.")
        elif inner["type"] == "string" and "enum" not in inner:
            yield Case(tool, f"{prefix}{name}", schema, inner is not each)


def test_every_string_of_every_tool_is_tried() -> None:
    tried = {(case.tool, case.path) for case in cases()}
    strings = words(
        "session window_id pane_id with_pane_id name names new_name title channel pattern patterns stop "
        "cursor run text keys command start_directory"
    )
    for tool, row in offer.rows().items():
        for path in row.sinks:
            if path.rpartition(".")[2] in strings:
                assert (tool, path) in tried


Arrived = Callable[[dict[str, Any]], str]
ARRIVED: dict[tuple[str, str], Arrived] = {
    ("rename_session", "new_name"): lambda result: str(result["name"]),
    ("rename_window", "new_name"): lambda result: str(result["name"]),
    ("set_pane_title", "title"): lambda result: str(result["title"]),
    ("create_session", "name"): lambda result: str(result["name"]),
    ("create_session", "window_name"): lambda result: str(result["window_name"]),
    ("create_window", "name"): lambda result: str(result["window_name"]),
    ("run_shell_command", "command"): lambda result: str(result["output"])[1:-1],
    **{
        (tool, "start_directory"): lambda result: Path(result["path"]).name
        for tool in ("create_session", "create_window", "split_window", "respawn_pane")
    },
}
"""What has become of a value that was taken."""
TYPED = {
    ("send_keys", "text"),
    ("send_keys", "keys"),
    ("send_keys_batch", "operations.text"),
    ("send_keys_batch", "operations.keys"),
    ("paste_text", "text"),
}
"""What reaches the pane's program byte for byte."""


def carried(world: World, case: Case, value: str) -> str:
    """The argument that carries a payload: itself, or what has to hold it as one literal word."""
    name = case.path.rpartition(".")[2]
    if name == "command":
        return f"printf '[%s]' {shlex.quote(value)}" + "; exec cat" * (case.tool == "respawn_pane")
    if name == "start_directory" and value not in ("", ".", "..") and "/" not in value and len(value) < 256:
        directory = world.directories / value
        directory.mkdir(exist_ok=True)
        return str(directory)
    return value


@pytest.mark.parametrize("tool", [tool for tool in ALL if any(case.tool == tool for case in cases())])
async def test_hostile_text_stays_text_or_is_refused(world: World, tool: str) -> None:
    bench = Bench(world.path, Counting())
    before = world.state()
    for case in cases():
        if case.tool == tool:
            await _try(bench, world, case)
            world.renew()
    assert world.state() == before
    assert await world.is_unharmed(bench)


async def _try(bench: Bench, world: World, case: Case) -> None:
    key, typed = (case.tool, case.path), ""
    taken: set[str] = set()
    for value in PAYLOADS:
        arguments = case.arguments(world, carried(world, case, value))
        results = await _repeat(bench, world, case, arguments)
        assert len(results) in (0, TIMES), value
        taken |= {value for _ in results}
        for result in results:
            if key in ARRIVED and (value.isprintable() or case.path != "command"):
                assert ARRIVED[key](result) == value
            if key in TYPED:
                typed += pasted(value, bracketed=True) if case.tool == "paste_text" else value
    for value in REFUSED:
        assert await _repeat(bench, world, case, case.arguments(world, value)) == []
    if key in TYPED:
        await bench.until(lambda: len(world.typed.read_bytes()) >= len(typed.encode()))
        assert world.typed.read_bytes() == typed.encode()
    assert bool(taken) == (key in ARRIVED or key in TYPED or key in FREE), taken


async def _repeat(bench: Bench, world: World, case: Case, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Make the same call several times; the results of those that were not refused."""
    results: list[dict[str, Any]] = []
    creates = case.tool.startswith(("create", "split"))

    async def once() -> None:
        if case.tool == "wait_for_channel":
            with suppress(ToolError):
                await bench.tools("signal_channel", channel=arguments["channel"])
        with suppress(ToolError):
            result = await bench.tools(case.tool, **arguments)
            if creates:
                result["window_name"] = world.end(result["pane_id"])
            results.append(result)

    async with anyio.create_task_group() as group:
        for _ in range(TIMES):
            if creates or case.tool == "respawn_pane":
                await once()
            else:
                group.start_soon(once)
    return results


FREE = {
    ("search_panes", "pattern"),
    ("wait_for_text", "patterns"),
    ("wait_for_text", "stop"),
    ("show_environment", "names"),
    ("wait_for_channel", "channel"),
    ("signal_channel", "channel"),
    ("respawn_pane", "command"),
}
"""What takes nearly any text, and tells nothing of it."""


async def test_a_canary_would_sing(world: World) -> None:
    """The same texts do run where tmux expands them, so that silence means something."""
    bench = Bench(world.path, Counting())
    assert await world.is_unharmed(bench)

    def sang() -> bool:
        world.tmux("rename-window", "-t", world.window, f"#({RUNS})")
        return world.hit.exists()

    await bench.until(sang)
    world.hit.unlink()
