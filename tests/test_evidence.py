"""The evidence for every `destructive = false` in the manifest: the tool observes, or only adds.

Everything that tmux tells about a server is written down before and after the call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calls import Tools
from tests.sinks import Server

pytestmark = pytest.mark.anyio

State = dict[str, str]
"""What is on a server: every session, window and pane, every pane's text, every setting."""

PANE = (
    "#{pane_id} #{window_id} #{session_id} #{session_name} #{session_created} #{session_group} "
    "#{window_name} #{window_index} #{window_active} #{window_zoomed_flag} "
    "#{pane_active} #{pane_pid} #{pane_tty} #{pane_title} #{pane_dead} #{pane_in_mode} #{pane_synchronized} "
    "#{pane_input_off} #{pane_start_command} #{history_limit}"
)
SETTINGS = (
    ("show-options", "-s"),
    ("show-options", "-g"),
    ("show-options", "-gw"),
    ("show-hooks", "-g"),
    ("show-environment", "-g"),
    ("list-keys",),
    ("list-buffers", "-F", "#{buffer_name} #{buffer_sample}"),
)


async def state(server: Server) -> State:
    found: State = {}
    for name, *args in SETTINGS:
        found[" ".join((name, *args))] = await server.tmux(name, *args)
    for line in (await server.tmux("list-panes", "-a", "-F", PANE)).splitlines():
        pane, window, session, _ = line.split(maxsplit=3)
        found[pane] = line
        found[f"{pane} text"] = (
            await server.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", pane)
        ).rstrip()
        found[f"{pane} options"] = await server.tmux("show-options", "-p", "-t", pane)
        found[f"{window} options"] = await server.tmux("show-options", "-w", "-t", window)
        found[f"{session} options"] = await server.tmux("show-options", "-t", session)
        found[f"{session} environment"] = await server.tmux("show-environment", "-t", session)
    return found


@pytest.fixture
async def server(socket_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with two sessions, of which one has two windows, and one of those two panes.

    The working directory has a name that runs a command wherever tmux takes it for a format.
    """
    hostile = tmp_path / "#(touch hit)"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    made = Server(socket_path)
    first = await made.sink(mode="true", says="some\\ntext\\n")
    await made.sink(split=first.pane_id)
    await made.tmux("new-window", "-d", "-n", "other", "-t", "$0:", "exec cat")
    await made.sink()
    await made.tmux("set-option", "-w", "-t", first.window_id, "@mine", "value")
    await made.tmux("set-environment", "-t", "$0", "MINE", "value")
    await made.tmux("set-buffer", "-b", "mine", "value")
    return made


async def adds(server: Server, tool: str, **arguments: Any) -> None:
    """Assert that a call makes one pane, and leaves all that was there as it was."""
    before = await state(server)
    made = await Tools(server.terminal)(tool, **arguments)
    after = await state(server)
    assert {key: after.get(key) for key in before} == before
    new = {key.split()[0] for key in after.keys() - before.keys()}
    assert new <= {made["pane_id"], made["window_id"], made["session_id"]}
    assert made["pane_id"] in new
    assert not list(Path.cwd().parent.rglob("hit"))


async def test_create_session_adds(server: Server) -> None:
    await adds(server, "create_session")
    await adds(server, "create_session", name="a;", window_name="kill-server;", width=10, height=5)
    await adds(server, "create_session", start_directory=str(Path.cwd()))


async def test_create_window_adds(server: Server) -> None:
    await adds(server, "create_window", session="$0")
    await adds(server, "create_window", session="$1", name="kill-server;", start_directory=str(Path.cwd()))


async def test_split_window_adds(server: Server) -> None:
    await adds(server, "split_window", pane_id="%0")
    await adds(server, "split_window", pane_id="%1", direction="left", percent=30)
    await adds(server, "split_window", pane_id="%0", size=3, start_directory=str(Path.cwd()))
