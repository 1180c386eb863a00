"""Where every parameter of every tool lands, traced and not declared.

Each tool is called on a real tmux with values that stand nowhere else. Every process that it starts is
taken apart, each value is looked for in arguments, standard input, working directory and environment, and
what tmux does at that position (tests/tmux_positions.toml, measured) has to be what the manifest says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]

from tests import offer
from tests.bench import Bench, Counting
from tests.inventory import ALL
from tests.tracing import OURS, Place, Recorder, Unknown, holds, strongest, traced
from tmuxmcp.errors import ToolError
from tmuxmcp.manifest import Sink
from tmuxmcp.tmux.fake import Invocation

MARK = f"{OURS}Traced"
SESSION = f"{OURS}Session"
S: dict[str, Any] = {"session": SESSION}
W: dict[str, Any] = {"window_id": "@1"}
P: dict[str, Any] = {"pane_id": "%2"}
SIZE: dict[str, Any] = {"max_lines": 7771, "max_bytes": 65432}

HERE = f"/{MARK}"
"""Stands for a directory of this name."""

CALLS: dict[str, list[dict[str, Any]]] = {
    "list_sessions": [{}],
    "list_windows": [{**S, "limit": 771, "offset": 98765}],
    "list_panes": [{**S, "limit": 771, "offset": 98765}, W],
    "get_server_info": [{}],
    "get_session_info": [S, {"session": "$1"}],
    "get_window_info": [W],
    "get_pane_info": [P],
    "capture_pane": [
        {**P, **SIZE, "start_line": -54321, "end_line": 8765},
        {**P, "join_wrapped": False, "escapes": True},
    ],
    "capture_since": [{**P, **SIZE}, {**P, "cursor": MARK}],
    "snapshot_pane": [{**P, "max_lines": 7771, "escapes": True}],
    "search_panes": [
        {**S, "pattern": MARK, "regex": True, "match_case": True, "max_matches": 771, "offset": 98765},
        {**W, "pattern": MARK, "history_lines": 54321, "context_lines": 17},
    ],
    "find_pane_by_position": [{**W, "corner": "bottom-right"}],
    "wait_for_text": [
        {
            **P,
            "patterns": [MARK],
            "stop": [f"{MARK}Stop"],
            "regex": True,
            "match_case": True,
            "timeout": 0.117,
        },
        {**P, "cursor": MARK, "quiet_for": 0.113, "timeout": 0.117},
        {**P, "run": MARK},
    ],
    "get_tmux_variables": [{"names": ["window_silence_flag"], **each} for each in (S, W, P)],
    "show_option": [
        {"name": f"@{MARK}", "scope": "session", **S},
        {"name": f"@{MARK}", "scope": "window", **W},
        {"name": f"@{MARK}", "scope": "pane", **P},
    ],
    "show_environment": [S, {"names": [MARK]}, {**S, "names": [f"{MARK}Long"]}],
    "show_hooks": [
        {"name": MARK, "scope": "session", **S},
        {"name": MARK, "scope": "window", **W},
        {"name": MARK, **P},
    ],
    "call_read_tools_batch": [
        {"operations": [{"tool": "search_panes", "arguments": {"pattern": MARK}}], "on_error": "stop"}
    ],
    "rename_session": [{**S, "new_name": MARK}],
    "rename_window": [{**W, "new_name": MARK}],
    "select_window": [W],
    "select_pane": [P],
    "select_layout": [{**W, "layout": "even-vertical"}],
    "resize_window": [{**W, "width": 217, "height": 61}, {**W, "follow_client": True}],
    "resize_pane": [{**P, "width": 37, "height": 17}, {**P, "zoom": True}],
    "move_window": [{**W, **S, "index": 771}],
    "swap_pane": [{**P, "with_pane_id": "%3"}],
    "set_pane_title": [{**P, "title": MARK}],
    "enter_copy_mode": [{**P, "scroll_up": 771}],
    "exit_copy_mode": [P],
    "wait_for_channel": [{"channel": MARK, "timeout": 0.117}],
    "signal_channel": [{"channel": MARK}],
    "set_mouse_enabled": [{**S, "enabled": False}],
    "set_history_limit": [{**S, "lines": 54321}],
    "create_session": [
        {"name": MARK, "window_name": f"{MARK}Window", "width": 217, "height": 61, "start_directory": HERE}
    ],
    "create_window": [{**S, "name": MARK, "start_directory": HERE, "select": True}],
    "split_window": [
        {**P, "direction": "above", "size": 7, "start_directory": HERE, "select": True},
        {**P, "percent": 37},
    ],
    "respawn_pane": [{**P, "command": f"cat {MARK}; exec cat", "start_directory": HERE, "kill": True}],
    "run_shell_command": [
        {"pane_id": "%4", "command": f": {MARK}", "timeout": 5.117, **SIZE, "suppress_history": False}
    ],
    "send_keys": [
        {**P, "text": MARK, "keys": ["M-F11"], "enter": True},
        {"pane_id": "%5", "text": MARK, "keys": ["M-F11"]},
    ],
    "send_keys_batch": [
        {
            "operations": [{**P, "text": MARK, "keys": ["M-F11"], "enter": True, "delay_ms": 17}],
            "on_error": "continue",
        }
    ],
    "paste_text": [{**P, "text": MARK, "bracketed": False, "enter": True}],
    "set_synchronize_panes": [{**W, "enabled": True}],
    "clear_pane_scrollback": [P],
    "kill_pane": [P],
    "kill_window": [W],
    "kill_session": [S],
}
UNTRACEABLE = {"enter", "enabled"}
"""Switches that make us send a constant: a `true` cannot be recognised in what they cause."""


def values(
    arguments: Mapping[str, Any], holder: str = "", *, switches: bool = False
) -> Iterator[tuple[str, Any]]:
    """The parameters of a call with the values to look for; those of switches only if asked."""
    for name, value in arguments.items():
        path = f"{holder}{name}"
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and path == "operations":
                yield from values(each, "operations.", switches=switches)
            elif isinstance(each, dict):
                yield from ((path, inner) for _, inner in values(each))
            elif switches or not isinstance(each, bool):
                yield path, each


class Traced:
    """A tmux server with named objects, and the tools on it, with every process and pattern recorded."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench = Bench(path, Counting())
        self.directory = path.parent
        self.recorder = Recorder(self.bench.client.runner)
        self.bench.client.runner = self.recorder
        self.patterns: list[str] = []
        compiled = re2.compile

        def compile(pattern: str, options: object) -> object:
            self.patterns.append(pattern)
            return compiled(pattern, options)

        monkeypatch.setattr(re2, "compile", compile)
        tmux = self.bench.tmux
        tmux("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "exec cat")
        tmux("new-session", "-d", "-s", SESSION, "-x", "120", "-y", "50", "exec cat")
        tmux("split-window", "-d", "-t", "%1", "exec cat")
        tmux("split-window", "-d", "-t", "%1", "exec cat")
        tmux("new-window", "-d", "-t", f"{SESSION}:", "exec sh")
        tmux("new-window", "-d", "-t", f"{SESSION}:", "exec cat")
        tmux("split-window", "-d", "-t", "%5", "exec cat")
        tmux("set-option", "-w", "-t", "%5", "synchronize-panes", "on")

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        with suppress(ToolError):
            await self.bench.tools(tool, **arguments)

    def filled(self, arguments: Mapping[str, Any], after: str = "", only: str = "") -> dict[str, Any]:
        """Arguments whose directory exists; with `after` behind the texts of the parameter `only`."""

        def fill(value: Any, path: str) -> Any:
            if isinstance(value, list):
                return [fill(each, path) for each in value]
            if isinstance(value, dict):
                inner = f"{path}." if path == "operations" else ""
                return {name: fill(each, f"{inner}{name}" if inner else path) for name, each in value.items()}
            end = after if path == only else ""
            if value == HERE:
                directory = self.directory / f"{MARK}{end}"
                directory.mkdir(exist_ok=True)
                return str(directory)
            return f"{value}{end}" if isinstance(value, str) and OURS in value else value

        return {name: fill(value, name) for name, value in arguments.items()}

    def places(self, value: Any) -> list[Place]:
        return traced(self.recorder.calls, value)

    def sinks(self, value: Any) -> Iterator[Sink]:
        yield from (place.sink for place in self.places(value))
        if any(holds(pattern, value) for pattern in self.patterns):
            yield "regex"


@pytest.fixture
def server(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traced:
    return Traced(socket_path, monkeypatch)


def test_every_parameter_of_every_tool_has_a_value_to_look_for() -> None:
    assert list(CALLS) == ALL
    for name, row in offer.rows().items():
        given = {path for call in CALLS[name] for path, _ in values(call, switches=True)}
        assert given == set(row.sinks), name


@pytest.mark.parametrize("tool", ALL)
async def test_every_value_lands_where_the_manifest_says(server: Traced, tool: str) -> None:
    found: dict[str, list[Sink]] = {}
    for arguments in CALLS[tool]:
        filled = server.filled(arguments)
        server.recorder.calls.clear()
        server.patterns.clear()
        await server.call(tool, filled)
        for path, value in values(filled):
            found.setdefault(path, []).extend(server.sinks(value))
    said = offer.rows()[tool].sinks
    assert {path: strongest(sinks) for path, sinks in found.items()} == {path: said[path] for path in found}
    for switch in set(said) - set(found):
        assert said[switch] == "none" or switch.rpartition(".")[2] in UNTRACEABLE, switch


@pytest.mark.parametrize("tool", ALL)
async def test_no_value_is_expanded_as_a_format(server: Traced, tool: str) -> None:
    """Where tmux would expand a text, it is refused before tmux sees it, or arrives with every # doubled."""
    for arguments in CALLS[tool]:
        for path in dict.fromkeys(path for path, value in values(arguments) if OURS in str(value)):
            for hostile in ("#{pid}", "#(true)", "#S", "}#{pid}"):
                filled = server.filled(arguments, hostile, path)
                server.recorder.calls.clear()
                await server.call(tool, filled)
                for where, value in values(filled):
                    if where == path and OURS in str(value):
                        assert not [place for place in server.places(value) if place.expanded], value


def invocation(*words: str, **how: Any) -> Invocation:
    given = {"stdin": b"", "cwd": None, "env": None, "timeout": 1, "max_output": 1, **how}
    return Invocation(("tmux", "-u", "-N", "-S", "/s", *words), **given)


@pytest.mark.parametrize(
    ("call", "sink", "expanded"),
    [
        (invocation("rename-window", "-t", "@1", "--", "Zq7#{pid}"), "tmux-state-value", True),
        (invocation("list-panes", "-f", "#{m:Zq7,x}"), "tmux-lookup", True),
        (invocation("has-session", "-t", "=a:", ";", "new-window", "Zq7"), "shell-command", False),
        (invocation("if-shell", "-F", "x", "kill-pane ; send-keys -t %1 -H 5a 71 37"), "pane-input", False),
        (invocation("load-buffer", "-", stdin=b"Zq7"), "pane-input", False),
        (invocation("split-window", cwd="/Zq7"), "tmux-state-value", False),
        (invocation("if-shell", "Zq7", "kill-pane"), "shell-command", True),
    ],
)
def test_a_value_is_found_wherever_it_stands(call: Invocation, sink: Sink, expanded: bool) -> None:
    (place,) = traced([call], "Zq7")
    assert (place.sink, place.expanded) == (sink, expanded)


@pytest.mark.parametrize(
    "call",
    [
        invocation("Zq7", "-t", "%1"),
        invocation("new-command", "Zq7"),
        invocation("kill-pane", "Zq7"),
        invocation("kill-pane", stdin=b"Zq7"),
        invocation("kill-pane", env={"NAME": "Zq7"}),
        invocation("kill-pane", cwd="/Zq7"),
        invocation("-L", "Zq7", "kill-pane"),
        Invocation(("ps", "Zq7"), b"", None, None, 1, 1),
    ],
)
def test_a_value_in_a_place_that_is_not_known_is_an_error(call: Invocation) -> None:
    with pytest.raises(Unknown):
        [place.sink for place in traced([call], "Zq7")]
