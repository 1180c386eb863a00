"""What hooks and aliases around tmux do to the hints, seen by a client, and which tools set hooks off."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import offer
from tests.conftest import TMUX
from tests.inventory import ALL
from tests.test_program import CONSERVATIVE, Program
from tests.test_sinks_traced import CALLS, Traced

DIRECT = {
    name: {
        "readOnlyHint": row.hints.read_only,
        "destructiveHint": row.hints.destructive,
        "idempotentHint": row.hints.idempotent,
        "openWorldHint": row.hints.open_world,
    }
    for name, row in offer.rows().items()
}


class Ambient:
    """A tmux server that is there before we are, as its owner has set it up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tmux("new-session", "-d", "-s", "theirs", "exec cat")

    def tmux(self, *words: str) -> str:
        argv = [TMUX, "-S", str(self.path), "-f", "/dev/null", *words]
        return subprocess.run(
            argv, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout


@pytest.fixture
def theirs(socket_path: Path) -> Ambient:
    return Ambient(socket_path)


def inherited(path: Path, **environ: str) -> Program:
    """The program as a client starts it in a pane of that server."""
    return Program(path, TMUXMCP_SOCKET="inherit", TMUX=f"{path},1,0", TMUX_PANE="%0", **environ)


def advertised(program: Program) -> dict[str, Any]:
    return {tool["name"]: tool["annotations"] for tool in program.tools()}


def test_a_quiet_server_keeps_the_direct_hints(theirs: Ambient) -> None:
    with inherited(theirs.path, TMUXMCP_TOOLSETS="inspect,manage,execute,teardown") as program:
        program.open()
        assert advertised(program) == DIRECT
        document = program.capabilities()
        assert document["resolved_socket_path"] == str(theirs.path)
        assert document["ambient"] == {"state": "quiet", "hooks": 0, "aliases": 0}
        assert document["configuration_provenance"] == "unknown"
        assert document["hints"].startswith("advertised equals direct.")
        assert "Commands that run later can add some" in document["hints"]
        assert {tool["name"]: tool["hints"]["advertised"] for tool in document["tools"]} == DIRECT
        assert program.do("get_server_info")["ambient"] == "quiet"


@pytest.mark.parametrize(
    ("setup", "hooks", "aliases"),
    [
        (["set-hook -g after-list-panes[7] new-window"], 1, 0),
        (["set-hook -g -w window-renamed kill-window"], 1, 0),
        (["set-hook -t theirs: after-capture-pane kill-server"], 1, 0),
        (["set-hook -w -t theirs: window-layout-changed kill-window"], 1, 0),
        (["set-hook -p -t theirs: pane-exited kill-window"], 1, 0),
        (["set-option -s command-alias[50] list-panes=kill-server"], 0, 1),
        (["set-option -s command-alias[50] x=y", "set-hook -g alert-bell kill-server"], 1, 1),
    ],
    ids=["global", "window-global", "session", "window", "pane", "alias", "both"],
)
def test_hooks_and_aliases_in_any_scope_turn_all_hints_conservative(
    theirs: Ambient, setup: list[str], hooks: int, aliases: int
) -> None:
    for line in setup:
        theirs.tmux(*line.split())
    with inherited(theirs.path) as program:
        program.open()
        hints = advertised(program)
        assert list(hints) == [name for name in ALL if offer.rows()[name].toolset != "teardown"]
        assert all(each == CONSERVATIVE for each in hints.values())
        document = program.capabilities()
        assert document["ambient"] == {"state": "active", "hooks": hooks, "aliases": aliases}
        assert f"{hooks} hooks and {aliases} command aliases" in document["hints"]
        for tool in document["tools"]:
            assert tool["hints"] == {"advertised": CONSERVATIVE, "direct": DIRECT[tool["name"]]}
        assert program.record()["ambient"] == document["ambient"]


def test_a_read_can_change_something_by_a_hook_and_the_hints_say_so(theirs: Ambient) -> None:
    theirs.tmux("set-hook", "-g", "after-list-panes", "set-option -g @read yes")
    with inherited(theirs.path) as program:
        program.open()
        assert advertised(program)["list_panes"] == CONSERVATIVE
        # Looking for hooks has set none off.
        assert theirs.tmux("show-options", "-gqv", "@read") == ""
        assert program.do("list_panes")["panes"]
        assert theirs.tmux("show-options", "-gqv", "@read") == "yes\n"


@pytest.mark.parametrize(
    "environ",
    [
        {"TMUXMCP_SOCKET": "inherit"},
        {"TMUXMCP_TMUX_CONFIG": "user"},
        {"TMUXMCP_TMUX_CONFIG": "/dev/null"},
    ],
    ids=str,
)
def test_a_server_that_is_not_there_yet_is_quiet_only_with_the_minimal_configuration(
    socket_path: Path, environ: dict[str, str]
) -> None:
    with Program(socket_path, **{"TMUX": f"{socket_path},1,0", **environ}) as program:
        program.open()
        assert all(each == CONSERVATIVE for each in advertised(program).values())
        assert program.record()["ambient"] == {"state": "unknown"}
    with Program(socket_path) as program:
        program.open()
        hints = advertised(program)
        assert hints == {name: DIRECT[name] for name in hints}


@pytest.mark.parametrize("tool", ALL)
async def test_the_rows_tell_which_tools_set_hooks_off(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    server = Traced(socket_path, monkeypatch)
    tmux = server.bench.tmux
    hooks = {
        line.split()[0].partition("[")[0]
        for flag in ("-g", "-gw")
        for line in tmux("show-hooks", flag).splitlines()
    }
    words = [("set-hook", "-g", hook, "set-option -ga @fired x", ";") for hook in sorted(hooks)]
    tmux(*[word for each in words for word in each][:-1])

    def fired() -> str:
        # No hook runs after this command, which shows options too.
        return tmux("show-hooks", "-g", "@fired")

    tmux("set-option", "-g", "@fired", "x")
    before = fired()
    for arguments in CALLS[tool]:
        await server.call(tool, server.filled(arguments))
    can = offer.rows()[tool].may_trigger_configured_hooks
    # show-hooks itself sets none off either; from tmux 3.5 on, the check of a target that fails does.
    assert fired() == before or can
    assert fired() != before or not can or tool == "show_hooks"
