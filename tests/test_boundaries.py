"""What no tool does, whatever it is asked for: leave the pinned socket, or have the host run a command."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tmuxmcp
from tests.inventory import ALL
from tests.test_sinks_traced import CALLS, Traced
from tests.tracing import places

PACKAGE = Path(tmuxmcp.__file__).parent
STARTS_PROCESSES = {"subprocess", "multiprocessing", "pty", "asyncio.subprocess", "asyncio.create_subprocess"}
STARTS_PROCESSES |= {
    f"os.{name}" for name in ("system", "popen", "fork", "forkpty", "posix_spawn", "startfile")
}
RUN_ON_THE_HOST = {
    "run-shell",
    "if-shell",
    "pipe-pane",
    "set-hook",
    "bind-key",
    "display-popup",
    "confirm-before",
}
"""Commands with which tmux itself runs commands: at once, or when something happens."""
LEAVE_THE_SOCKET = {"-L", "start-server", "kill-server", "switch-client", "attach-session", "lock-server"}


@pytest.fixture
async def server(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traced:
    """A server on which every tool has been called, with every process recorded."""
    monkeypatch.setenv("TMUX", "/elsewhere,1,0")
    monkeypatch.setenv("TMUX_PANE", "%0")
    made = Traced(socket_path, monkeypatch)
    for tool in ALL:
        for arguments in CALLS[tool]:
            await made.call(tool, made.filled(arguments))
    return made


async def test_every_process_is_on_the_pinned_socket(server: Traced) -> None:
    asked = [call for call in server.recorder.calls if call.argv[1:] != ("-V",) and call.argv[0] != "ps"]
    assert len(asked) > len(ALL)
    for call in asked:
        assert call.argv[0] == server.bench.client.binary
        options = list(call.argv[1 : call.argv.index("-S")])
        assert options in (["-u", "-N"], ["-u"]) or options[:2] == ["-u", "-f"]
        assert call.argv[call.argv.index("-S") + 1] == str(server.bench.path)
        assert not LEAVE_THE_SOCKET & set(call.argv)
        # Only a new session may start the server.
        assert "-N" in options or "new-session" in call.argv


async def test_no_process_has_the_host_run_a_command(server: Traced) -> None:
    commands = {place.command for call in server.recorder.calls for place in places(call)}
    assert "if-shell -F" in commands  # which chooses by a format, and starts nothing
    assert not RUN_ON_THE_HOST & commands
    # What a session, a window or a pane starts is what the server is configured with.
    assert {
        (place.command, place.text.partition(" ")[0])
        for call in server.recorder.calls
        for place in places(call)
        if place.kind == "shell"
    } == {("respawn-pane", "cat")}


def test_one_module_starts_processes_and_not_through_a_shell() -> None:
    starting = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", None) or ""
                names = {f"{module}.{each.name}".strip(".") for each in node.names}
                used = names | {module}
            elif isinstance(node, ast.Attribute):
                used = {ast.unparse(node)}
            else:
                continue
            if any(name == each or name.startswith(f"{each}.") for name in used for each in STARTS_PROCESSES):
                starting.add(path.relative_to(PACKAGE).as_posix())
            assert not any(name.startswith(("os.exec", "os.spawn")) for name in used), path
        assert "shell=True" not in ast.unparse(tree), path
    assert starting == {"tmux/runner.py"}
