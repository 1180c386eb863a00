"""tmux's words, from the versions that say them, and as the tmux at hand says them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tmuxmcp.errors import (
    DuplicateName,
    InvalidArgument,
    InvalidName,
    NoServer,
    NoSpace,
    NotFound,
    PaneDead,
    PaneInMode,
    ServerGone,
    TmuxFailed,
    TmuxTimeout,
    TmuxUnusable,
    TooLarge,
    ToolError,
)
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, Command, command, target
from tmuxmcp.tmux.errors import translate
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.runner import Output, ProcessRunner
from tmuxmcp.tmux.socket import Socket

from .conftest import tmux_program

SAID: list[tuple[type[ToolError], str]] = [
    (NoServer, "error connecting to /s (No such file or directory)"),
    (NoServer, "error connecting to /s (Connection refused)"),
    (NoServer, "no server running on /s"),
    (ServerGone, "server exited unexpectedly"),
    (ServerGone, "lost server"),
    (TmuxUnusable, "error connecting to /s (Permission denied)"),
    (TmuxUnusable, "access not allowed"),
    (TmuxUnusable, "directory /tmp/tmux-0 has unsafe permissions"),
    (TmuxUnusable, "error creating /tmp/tmux-0 (Permission denied)"),
    (TmuxUnusable, "error creating /s (Read-only file system)"),
    (TmuxUnusable, "couldn't create directory /etc/passwd/tmux-0 (Not a directory)"),
    (TmuxUnusable, "error connecting to /s (File name too long)"),
    (TmuxUnusable, "error connecting to /s (Not a directory)"),
    (TmuxUnusable, "protocol version mismatch (client 8, server 7)"),
    (TmuxUnusable, "tmux: need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968"),
    (NotFound, "can't find session: x"),
    (NotFound, "can't find session: \n"),
    (NotFound, "can't find window: @4"),
    (NotFound, "can't find pane: %9"),
    (NotFound, "no such session: x"),
    (NotFound, "no such pane: %9"),
    (NotFound, "no current target"),
    (NotFound, "no current session"),
    (NotFound, "no sessions"),
    (NotFound, "invalid option: nope"),
    (NotFound, "ambiguous option: s"),
    (NotFound, "unknown variable: NOPE"),
    (NotFound, "no buffers"),
    (NotFound, "no buffer x"),
    (NotFound, "no buffer"),
    (NotFound, "unknown buffer: x"),
    (DuplicateName, "duplicate session: a b"),
    (InvalidName, "invalid session: "),
    (InvalidName, "invalid session name: a\\001"),
    (InvalidName, "invalid window name: a\\001"),
    (NoSpace, "no space for new pane"),
    (NoSpace, "size or position no space for a new pane"),
    (NoSpace, "no space for a new pane"),
    (NoSpace, "create pane failed: pane too small"),
    (PaneDead, "target pane has exited"),
    (PaneInMode, "no current client"),
    (InvalidArgument, "not in a mode"),
    (InvalidArgument, "respawn pane failed: pane base:0.0 still active"),
    (InvalidArgument, "index in use: 3"),
    (InvalidArgument, "create window failed: index 3 in use"),
    (InvalidArgument, "can't set layout: zzz"),
    (InvalidArgument, "invalid layout: zzz"),
    (InvalidArgument, "malformed layout header: zzz"),
    (InvalidArgument, "invalid layout checksum: zzz"),
    (InvalidArgument, "width too small"),
    (InvalidArgument, "height too large"),
    (InvalidArgument, "lines invalid"),
    (InvalidArgument, "size invalid"),
    (InvalidArgument, "width is invalid"),
    (InvalidArgument, "value is invalid: x"),
    (InvalidArgument, "value is too small: 0"),
    (InvalidArgument, "bad value: x"),
    (InvalidArgument, "unknown value: x"),
    (TooLarge, "failed to send command"),
    (TooLarge, "command too long"),
    (TmuxFailed, "unknown command: nope"),
    (TmuxFailed, "command list-panes: unknown flag -Z"),
    (TmuxFailed, ""),
]


@pytest.mark.parametrize(
    ("error", "text"), SAID, ids=lambda part: part if isinstance(part, str) else part.code
)
def test_each_text_has_its_error(error: type[ToolError], text: str) -> None:
    found = translate(Output(1, b"", f"{text}\n"), "/s")
    assert type(found) is error
    assert found.message.endswith(".") or error is TmuxFailed
    assert "{" not in found.message


def test_details_name_what_was_meant() -> None:
    def details(text: str) -> dict[str, object]:
        found = translate(Output(1, b"", text), "/s")
        assert found is not None
        return found.details

    assert details("can't find pane: %9\n") == {"kind": "pane", "target": "%9"}
    assert details("duplicate session: a {b}") == {"name": "a {b}"}
    assert details("no server running on /s") == {"socket": "/s"}


def test_success_and_its_one_exception() -> None:
    assert translate(Output(0, b"", ""), "/s") is None
    assert translate(Output(0, b"x", "a hook's words: can't find pane: %1"), "/s") is None
    assert isinstance(translate(Output(0, b"", "access not allowed\n"), "/s"), TmuxUnusable)


def test_an_unknown_text_is_shown_but_not_without_end() -> None:
    found = translate(Output(1, b"", "x" * 10_000), "/s")
    assert isinstance(found, TmuxFailed)
    assert len(found.message) < 300
    silent = translate(Output(-9, b"", ""), "/s")
    assert silent is not None
    assert "-9" in silent.message


async def test_no_server_and_what_it_means_for_a_target(client: Client) -> None:
    with pytest.raises(NoServer):
        await client.call(command("list-sessions"))
    with pytest.raises(NotFound, match="No tmux server runs"):
        await client.call(command("has-session", "-t", target("%1")), command("list-sessions"))
    assert not Path(client.socket.path).exists()


async def test_no_command_but_start_starts_a_server(client: Client) -> None:
    for name in ["new-session", "start-server", "display-message", "list-sessions", "attach-session"]:
        with pytest.raises(NoServer):
            await client.call(command(name))
        assert not Path(client.socket.path).exists()


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (command("has-session", "-t", target("%99")), NotFound),
        (command("has-session", "-t", target("@99")), NotFound),
        (command("has-session", "-t", target("$99")), NotFound),
        (command("has-session", "-t", target("=bas")), NotFound),
        (command("has-session", "-t", target("=b*")), NotFound),
        (command("kill-session", "-t", target("=bas")), NotFound),
        (command("capture-pane", "-p", "-t", target("%99")), NotFound),
        (command("send-keys", "-t", target("%99"), "x"), NotFound),
        (command("show-options", "-g", Arg("NAME", "no-such-option")), NotFound),
        (command("show-environment", "-g", Arg("NAME", "NO_SUCH")), NotFound),
        (command("paste-buffer", "-b", Arg("-b", "none"), "-t", target("=base:")), NotFound),
        (command("delete-buffer", "-b", Arg("-b", "none")), NotFound),
        (command("rename-session", "-t", target("=other"), "--", Arg("NAME", "base")), DuplicateName),
        (command("respawn-pane", "-t", target("=base:")), InvalidArgument),
        (command("send-keys", "-t", target("=base:"), "-X", "cancel"), InvalidArgument),
        (command("move-window", "-s", target("=other:"), "-t", Arg("-t", "=base:0")), InvalidArgument),
        (command("no-such-command"), TmuxFailed),
        (command("list-panes", "-Z"), TmuxFailed),
        (command("set-buffer", "x" * 17_000), TooLarge),
    ],
    ids=lambda part: " ".join(map(str, part.args))[:40] if isinstance(part, Command) else part.code,
)
async def test_refusals_of_tmux(
    client: Client, ids: dict[str, str], asked: Command, error: type[ToolError]
) -> None:
    await client.call(command("new-session", "-d", "-s", "other", "exec cat"))
    with pytest.raises(error) as caught:
        await client.call(asked)
    assert type(caught.value) is error


async def test_no_space_for_a_pane(client: Client, ids: dict[str, str]) -> None:
    split = command("split-window", "-d", "-t", target(ids["pane"]), "exec cat")
    with pytest.raises(NoSpace):
        await client.call(*[split] * 100)


async def test_a_stale_socket_is_no_server(client: Client) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(client.socket.path)
    with pytest.raises(NoServer):
        await client.call(command("list-sessions"))


async def test_a_mute_listener_is_a_timeout(client: Client) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(client.socket.path)
        mute.listen()
        with pytest.raises(TmuxTimeout):
            await client.call(command("list-sessions"), timeout=0.2)


async def test_the_server_dies_during_a_call(client: Client, ids: dict[str, str]) -> None:
    with pytest.raises(ServerGone) as caught:
        await client.call(command("run-shell", f"kill -9 {(await client.server()).pid}"))
    assert "create_session" in caught.value.message


async def test_a_socket_path_that_is_too_long(tmp_path: Path) -> None:
    path = f"/tmp/{'x' * 200}"
    client = Client(ProcessRunner(), Socket("path", f"path:{path}", path), tmux_program())
    with pytest.raises(TmuxUnusable):
        await client.call(command("list-sessions"))


async def test_a_server_of_another_version_is_not_called_gone() -> None:
    """A client up to 3.5a says so of a server from 3.6 on, whatever it asks, while the server lives."""
    gone = Output(1, b"", "server exited unexpectedly\n")
    runner = FakeRunner("tmux 3.5a\n", default=gone, answer_versions=False)
    client = Client(runner, Socket("path", "path:/s", "/s"), "tmux")
    with pytest.raises(TmuxUnusable, match="different versions"):
        await client.call(command("list-sessions"))


async def test_a_server_that_is_ending_is_gone() -> None:
    """While a killed server goes, its socket takes connections and hangs up on them, more than once."""
    going = Output(1, b"", "server exited unexpectedly\n")
    gone = Output(1, b"", "no server running on /s\n")
    runner = FakeRunner(Output(0, b"tmux 3.5a\n", ""), going, going, going, gone, answer_versions=False)
    client = Client(runner, Socket("path", "path:/s", "/s"), "tmux")
    with pytest.raises(ServerGone):
        await client.call(command("list-sessions"))
