"""Variables, options, hooks and the environment: told exactly, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench import Bench
from tmuxmcp.errors import InvalidArgument, NotFound, ToolError

# Variables


async def test_variables_of_a_target(bench: Bench) -> None:
    names = ["pane_id", "window_id", "session_name", "pane_width", "pane_title"]
    bench.tmux("select-pane", "-t", "%0", "-T", "two  blanks  ")
    got = await bench.tools("get_tmux_variables", names=names, pane_id="%0")
    assert got == {
        "variables": {
            "pane_id": "%0",
            "window_id": "@0",
            "session_name": "a",
            "pane_width": "80",
            "pane_title": "two  blanks  ",
        }
    }
    assert (await bench.tools("get_tmux_variables", names=["session_id"], session="a"))["variables"] == {
        "session_id": "$0"
    }
    assert (await bench.tools("get_tmux_variables", names=["window_name"], window_id="@0"))["variables"] == {
        "window_name": "w"
    }


async def test_one_process_for_each_variable(bench: Bench) -> None:
    await bench.tools("get_server_info")
    before = bench.processes
    await bench.tools("get_tmux_variables", names=["pid", "version", "pid"])
    assert bench.processes - before == 2


async def test_variables_without_a_target(bench: Bench) -> None:
    got = await bench.tools(
        "get_tmux_variables", names=["version", "pid", "socket_path", "start_time", "host"]
    )
    assert got["variables"]["socket_path"] == str(bench.path)
    assert got["variables"]["pid"].isdigit()
    with pytest.raises(InvalidArgument, match="pane_id cannot be read without a target"):
        await bench.tools("get_tmux_variables", names=["pid", "pane_id"])


@pytest.mark.parametrize("name", ["PATH", "http_proxy", "status", "buffer_sample", "cursor_character", "zz"])
async def test_what_is_no_variable_of_tmux_is_refused(bench: Bench, name: str) -> None:
    bench.tmux("set-environment", "-g", name, "SECRET")
    with pytest.raises(InvalidArgument) as refused:
        await bench.tools("get_tmux_variables", names=[name], pane_id="%0")
    assert name not in refused.value.message


@pytest.mark.parametrize("name", ["#(touch x)", "pane_id}#{pid", "@x", "", "1a", "pane_id\n"])
async def test_what_is_no_name_is_refused(bench: Bench, name: str) -> None:
    with pytest.raises(InvalidArgument):
        await bench.tools("get_tmux_variables", names=[name], pane_id="%0")


# Options


async def test_an_option_of_each_scope(bench: Bench) -> None:
    bench.tmux("set-option", "-g", "history-limit", "777")
    for target in ({}, {"session": "a"}):
        got = await bench.tools("show_option", name="history-limit", scope="session", **target)
        assert got == {"name": "history-limit", "value": "777", "inherited": bool(target)}
    bench.tmux("set-option", "-t", "=a:", "history-limit", "77")
    got = await bench.tools("show_option", name="history-limit", scope="session", session="a")
    assert got == {"name": "history-limit", "value": "77", "inherited": False}
    bench.tmux("set-option", "-w", "-t", "@0", "mode-keys", "vi")
    got = await bench.tools("show_option", name="mode-keys", scope="pane", pane_id="%0")
    assert got == {"name": "mode-keys", "value": "vi", "inherited": True}
    got = await bench.tools("show_option", name="mode-keys", scope="window")
    assert got == {"name": "mode-keys", "value": "emacs", "inherited": False}


async def test_values_are_exact(bench: Bench) -> None:
    for value in ("", "two  blanks ", "'q' \"d\" \\ $HOME #{pid}", "tab\tline\nline", "é😀", "~", "%", "''"):
        bench.tmux("set-option", "-g", "@mine", value)
        got = await bench.tools("show_option", name="@mine", scope="session", session="a")
        assert got == {"name": "@mine", "value": value, "inherited": True}


async def test_the_elements_of_a_list(bench: Bench) -> None:
    bench.tmux(
        "set-option", "-g", "update-environment", "", ";", "set-option", "-g", "update-environment[3]", "X Y"
    )
    bench.tmux("set-option", "-g", "update-environment[0]", "A")
    got = await bench.tools("show_option", name="update-environment", scope="session", session="a")
    assert got["value"] == "A\nX Y"
    got = await bench.tools("show_option", name="update-environment[3]", scope="session")
    assert got == {"name": "update-environment[3]", "value": "X Y", "inherited": False}
    with pytest.raises(NotFound, match="no element 9"):
        await bench.tools("show_option", name="update-environment[9]", scope="session")
    assert (await bench.tools("show_option", name="user-keys", scope="server"))["value"] == ""


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("mous", "session"),
        ("@nope", "session"),
        ("history-limit", "server"),
        ("history-limit", "window"),
        ("escape-time", "session"),
        ("after-new-window", "session"),
        ("nope[0]", "session"),
    ],
)
async def test_an_option_that_is_not_in_the_scope_is_not_found(bench: Bench, name: str, scope: str) -> None:
    with pytest.raises(NotFound) as refused:
        await bench.tools("show_option", name=name, scope=scope)
    assert ("Do you mean mouse?" in refused.value.message) == (name == "mous")


async def test_a_format_in_a_name_is_refused(bench: Bench) -> None:
    for name in ("#(touch x)", "@#{pid}", "a b", "-g", ""):
        with pytest.raises(ToolError):
            await bench.tools("show_option", name=name, scope="session")


async def test_the_target_has_to_be_of_the_scope(bench: Bench) -> None:
    for scope, target in (
        ("server", {"session": "a"}),
        ("session", {"pane_id": "%0"}),
        ("pane", {"window_id": "@0"}),
    ):
        with pytest.raises(InvalidArgument, match="is not the target"):
            await bench.tools("show_option", name="mode-keys", scope=scope, **target)
    with pytest.raises(InvalidArgument, match="is not the target"):
        await bench.tools("show_hooks", scope="window", pane_id="%0")


# Hooks


def hook(name: str, index: int, scope: str, command: str) -> dict[str, Any]:
    return {"name": name, "index": index, "scope": scope, "command": command}


async def test_hooks_of_every_scope(bench: Bench) -> None:
    assert await bench.tools("show_hooks") == {"hooks": []}
    bench.tmux("set-hook", "-g", "after-new-window", "display-message 'a  b'")
    bench.tmux("set-hook", "-ga", "after-new-window", "if-shell true { kill-server }")
    bench.tmux("set-hook", "-gw", "window-renamed", "display-message w")
    bench.tmux("set-hook", "-t", "=a:", "after-new-window", "display-message own")
    bench.tmux("set-hook", "-p", "-t", "%0", "pane-exited", "display-message 'p\nq'")
    first = {"name": "after-new-window", "index": 0, "scope": "session", "command": 'display-message "a  b"'}
    second = {
        "name": "after-new-window",
        "index": 1,
        "scope": "session",
        "command": "if-shell true { kill-server }",
    }
    third = {"name": "window-renamed", "index": 0, "scope": "window", "command": "display-message w"}
    assert (await bench.tools("show_hooks"))["hooks"] == [first, second, third]
    assert (await bench.tools("show_hooks", scope="session"))["hooks"] == [first, second]
    assert (await bench.tools("show_hooks", scope="window", name="window-renamed"))["hooks"] == [third]
    assert (await bench.tools("show_hooks", name="after-new-session"))["hooks"] == []
    assert (await bench.tools("show_hooks", session="a"))["hooks"] == [
        hook("after-new-window", 0, "session", "display-message own")
    ]
    assert (await bench.tools("show_hooks", window_id="@0"))["hooks"] == []
    (found,) = (await bench.tools("show_hooks", pane_id="%0"))["hooks"]
    assert (found["name"], found["scope"]) == ("pane-exited", "pane")
    with pytest.raises(NotFound, match="Do you mean after-new-session or after-new-window"):
        await bench.tools("show_hooks", name="after-new")


# The environment


async def test_the_environment_is_exact(bench: Bench) -> None:
    values = {
        "EMPTY": "",
        "LINES2": 'a\nunset X;\nFAKE="x"; export FAKE;\n',
        "QUOTED": "\"'\\`$HOME;",
        "U": "é😀 ",
    }
    for name, value in values.items():
        bench.tmux("set-environment", "-g", name, value if not value.endswith(";") else value[:-1] + "\\;")
    bench.tmux("set-environment", "-t", "=a:", "OWN", "1", ";", "set-environment", "-r", "-t", "=a:", "U")
    got = await bench.tools("show_environment", names=[*values, "NOPE", "FAKE"])
    assert got == {
        "variables": [{"name": name, "value": value} for name, value in values.items()],
        "missing": ["NOPE", "FAKE"],
    }
    everything = {row["name"]: row for row in (await bench.tools("show_environment"))["variables"]}
    assert (
        everything.items() >= {name: {"name": name, "value": value} for name, value in values.items()}.items()
    )
    own = {row["name"]: row for row in (await bench.tools("show_environment", session="a"))["variables"]}
    assert own["OWN"] == {"name": "OWN", "value": "1"}
    assert own["U"] == {"name": "U", "removed": True}
    assert "EMPTY" not in own


async def test_an_environment_that_does_not_fit_is_read_by_name(bench: Bench) -> None:
    for number in range(6):
        bench.tmux("set-environment", "-t", "=a:", f"BIG{number}", "x" * 12_000)
    got = await bench.tools("show_environment", session="a")
    assert got["left_out"] == ["BIG3", "BIG4", "BIG5", *got["left_out"][3:]]
    rest = await bench.tools("show_environment", session="a", names=got["left_out"])
    assert "left_out" not in rest
    assert [row["name"] for row in rest["variables"]] == got["left_out"]
