"""Starting a server and talking to it: once, with our configuration, and never by accident."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tmuxmcp.errors import DuplicateName, NoServer, NotFound, ServerGone, TmuxTimeout, TmuxUnusable
from tmuxmcp.tmux.client import MINIMAL_CONFIG, Client, Server, Started, Version
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.fake import FakeRunner, rows
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import Output, ProcessRunner
from tmuxmcp.tmux.socket import Form, Socket

from .conftest import IDS, tmux_program

NEW = command("new-session", "-d", "exec cat")
NO_SERVER = Output(1, b"", "no server running on /s\n")
GONE = Output(1, b"", "server exited unexpectedly\n")


def fake(
    *replies: object, form: Form = "path", config: str = "minimal", version: str = "3.5a"
) -> tuple[Client, FakeRunner]:
    runner = FakeRunner(*replies, version=version)  # type: ignore[arg-type]
    return Client(runner, Socket(form, "path:/s", "/s"), "/bin/tmux", config), runner


def another(client: Client, config: str = "minimal") -> Client:
    return Client(ProcessRunner(), client.socket, client.binary, config)


async def test_the_invocation(client: Client) -> None:
    client, runner = fake("said é\n")
    assert await client.call(command("list-sessions"), command("kill-pane", "-t", target("%1"))) == "said é\n"
    (call,) = runner.calls
    assert call.argv == ("/bin/tmux", "-u", "-N", "-S", "/s", "list-sessions", ";", "kill-pane", "-t", "%1")
    assert (call.stdin, call.cwd, call.env) == (b"", None, None)


async def test_output_that_is_no_utf8(client: Client, ids: dict[str, str]) -> None:
    await client.call(command("load-buffer", "-b", "x", "-"), stdin=b"a\xff\0b")
    assert await client.call(command("show-buffer", "-b", "x")) == "a\ufffd\0b"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("tmux 3.3a\n", Version(3, 3, "a")),
        ("3.4", Version(3, 4)),
        ("tmux next-3.8", Version(3, 7, "~")),
        ("tmux 3.6-rc2", Version(3, 6)),
        ("tmux 10.12c", Version(10, 12, "c")),
        ("tmux openbsd-7.4", None),
        ("tmux master", None),
        ("", None),
        ("screen 4.9.0", None),
    ],
)
def test_versions_are_read(text: str, version: Version | None) -> None:
    assert Version.parse(text) == version


def test_versions_are_ordered() -> None:
    said = ["3.1c", "3.2", "3.2a", "3.3", "3.3a", "3.4", "3.7c", "next-3.8", "3.8", "3.10", "4.0"]
    found = [Version.parse(text) for text in said]
    assert found == sorted(found, key=lambda version: version or Version(0, 0))
    assert Version(3, 7) >= (3, 7) > Version(3, 6, "a")


@pytest.mark.parametrize("said", ["tmux 3.2", "tmux 2.9a", "screen", ""])
async def test_a_tmux_that_is_too_old_is_unusable(said: str) -> None:
    client, runner = fake(version=said.removeprefix("tmux "))
    for attempt in (client.version(), client.call(command("list-sessions")), client.start(NEW, template=IDS)):
        with pytest.raises(TmuxUnusable, match=r"3\.2a or newer.*TMUXMCP_TMUX_BIN"):
            await attempt
    assert runner.calls == []


async def test_a_missing_tmux_is_unusable_and_may_come_later(tmp_path: Path, socket_path: Path) -> None:
    program = tmp_path / "tmux"
    client = Client(ProcessRunner(), Socket("path", "", str(socket_path)), str(program))
    with pytest.raises(TmuxUnusable, match="TMUXMCP_TMUX_BIN"):
        await client.call(command("list-sessions"))
    program.symlink_to(tmux_program())
    with pytest.raises(NoServer):
        await client.call(command("list-sessions"))


async def test_the_version_is_the_servers(client: Client, ids: dict[str, str]) -> None:
    said = subprocess.run([tmux_program(), "-V"], capture_output=True, text=True, check=True).stdout
    assert await client.version() == Version.parse(said)
    newer, runner = fake(rows(Template(version="#{version}"), {"version": "3.3a"}))
    runner.answer_versions = False
    runner.replies.insert(0, "tmux 3.8\n")
    assert await newer.version() == await newer.version() == Version(3, 3, "a")
    assert len(runner.calls) == 2


async def test_the_version_is_asked_again_of_the_next_server() -> None:
    client, runner = fake(NO_SERVER, version="3.3a")
    assert await client.version() == Version(3, 3, "a")
    runner.version = "3.8"
    assert await client.version() == Version(3, 3, "a")
    with pytest.raises(NoServer):
        await client.call(command("list-sessions"))
    assert await client.version() == Version(3, 8)


async def test_start_reads_back_who_and_what_it_started(client: Client) -> None:
    first = await client.start(NEW, template=IDS)
    assert first.server_started
    assert first.server == client.own == await client.server()
    assert client.provenance(first.server) == "minimal"
    second = await client.start(NEW, template=IDS)
    assert second == Started({**second.row, "session": "$1"}, first.server, False)
    assert client.own == first.server
    assert another(client).provenance(first.server) == "unknown"


async def test_the_minimal_configuration_holds(client: Client, ids: dict[str, str]) -> None:
    asked = [
        "history_limit",
        "pane_in_mode",
        "mouse",
        "status",
        "set-clipboard",
        "exit-empty",
        "exit-unattached",
    ]
    template = Template(**{name.replace("-", "_"): f"#{{{name}}}" for name in asked})
    (row,) = await client.rows(
        listing=command("display-message", "-t", target(ids["pane"])), template=template
    )
    # With an error in the configuration the first pane would be in a mode.
    assert row == {
        "history_limit": "50000",
        "pane_in_mode": "0",
        "mouse": "0",
        "status": "off",
        "set_clipboard": "off",
        "exit_empty": "1",
        "exit_unattached": "0",
    }
    assert await client.call(command("show-options", "-gv", "update-environment")) in ("", "\n")
    assert "automatic-rename off" in await client.call(command("show-options", "-gw"))


async def test_each_line_of_the_minimal_configuration_is_taken(client: Client, ids: dict[str, str]) -> None:
    lines = [line for line in MINIMAL_CONFIG.read_text().splitlines() if line.startswith("set ")]
    assert len(lines) > 10
    for line in lines:
        await client.call(command("source-file", "-"), stdin=line.encode())


@pytest.mark.parametrize(
    ("text", "provenance"),
    [("set -g @x 1\nno-such-command\n", "unknown"), ("set -g @tmuxmcp other\n", "unknown"), ("", "unknown")],
)
async def test_a_dropped_configuration_is_not_called_minimal(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, provenance: str
) -> None:
    broken = tmp_path / "broken.conf"
    broken.write_text(MINIMAL_CONFIG.read_text() + text if "no-such" in text else text)
    monkeypatch.setattr("tmuxmcp.tmux.client.MINIMAL_CONFIG", broken)
    started = await client.start(NEW, template=IDS)
    assert client.provenance(started.server) == provenance


async def test_what_other_configurations_prove(client: Client, tmp_path: Path) -> None:
    custom = tmp_path / "custom.conf"
    custom.write_text("set -g @custom yes\nset -g @tmuxmcp minimal\n")
    mine = another(client, str(custom))
    started = await mine.start(NEW, template=Template(custom="#{@custom}"))
    assert started.row == {"custom": "yes"}
    assert mine.provenance(started.server) == "custom"


@pytest.mark.parametrize(("form", "config"), [("inherit", "minimal"), ("path", "user")])
async def test_tmuxs_own_configuration_is_left_to_tmux(form: Form, config: str, tmp_path: Path) -> None:
    template = Template(**IDS.fields, server_pid="", server_start="", server_marker="")
    answer = {
        "session": "$0",
        "window": "@0",
        "pane": "%0",
        "server_pid": "7",
        "server_start": "9",
        "server_marker": "",
    }

    def reply(call: object) -> str:
        argv = call.argv  # type: ignore[attr-defined]
        assert "-f" not in argv
        assert ("-N" in argv) == (len(runner.calls) < 3)
        nonce = argv[argv.index("-F") + 1].partition("<")[0]
        return Template(**{name: answer[name] for name in template.fields}).format(nonce)

    client, runner = fake(NO_SERVER, NO_SERVER, reply, form=form, config=config)
    client.socket = Socket(form, form, str(tmp_path / "s"))
    started = await client.start(NEW, template=IDS)
    assert started.server == Server(7, 9)
    assert client.provenance(started.server) == "user"


async def test_a_start_waits_for_the_previous_server_to_exit(tmp_path: Path) -> None:
    done = Template(session="$0", server_pid="7", server_start="9", server_marker="minimal")

    def reply(call: object) -> str:
        argv = call.argv  # type: ignore[attr-defined]
        return done.format(argv[argv.index("-F") + 1].partition("<")[0])

    client, runner = fake(GONE, NO_SERVER, GONE, NO_SERVER, GONE, NO_SERVER, reply)
    client.socket = Socket("path", "", str(tmp_path / "s"))
    started = await client.start(NEW, template=Template(session="#{session_id}"))
    assert started == Started({"session": "$0"}, Server(7, 9), True)
    assert len(runner.calls) == 7
    assert list(tmp_path.iterdir()) == []


async def test_a_start_that_never_succeeds_says_so(tmp_path: Path) -> None:
    client, runner = fake()
    runner.default = GONE
    client.socket = Socket("path", "", str(tmp_path / "s"))
    with pytest.raises(TmuxUnusable, match="No tmux server can be started"):
        await client.start(NEW, template=IDS)
    assert list(tmp_path.iterdir()) == []


async def test_kill_and_start_over_and_over(client: Client) -> None:
    servers = set()
    for _ in range(10):
        started = await client.start(NEW, template=IDS)
        assert started.server_started
        servers.add(started.server.pid)
        await client.call(command("kill-server"))
    assert len(servers) == 10


async def test_many_at_once_start_one_server(client: Client) -> None:
    found: list[tuple[Client, Started]] = []

    async def start() -> None:
        mine = another(client)
        found.append((mine, await mine.start(NEW, template=IDS)))

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(start)
    assert len({started.server for _, started in found}) == 1
    assert len({started.row["session"] for _, started in found}) == 6
    (starter,) = (mine for mine, started in found if started.server_started)
    assert [mine.provenance(started.server) for mine, started in found].count("minimal") == 1
    assert starter.own is not None
    assert sorted(path.name for path in Path(client.socket.path).parent.iterdir()) == ["s"]


async def test_a_name_that_exists(client: Client) -> None:
    new = command("new-session", "-d", "-s", Arg("-s", "twice"), "exec cat")
    await client.start(new, template=IDS)
    with pytest.raises(DuplicateName, match="twice"):
        await client.start(new, template=IDS)


async def test_a_directory_is_the_cwd_of_the_client(client: Client, tmp_path: Path) -> None:
    template = Template(path="#{pane_current_path}", pane="#{pane_id}")
    for name in ["#(touch hit)", "a b;"]:
        (tmp_path / name).mkdir()
        for _ in range(2):
            started = await client.start(NEW, template=template, cwd=str(tmp_path / name))
            path = started.row["path"]
            with anyio.fail_after(10):
                while not path:  # tmux asks the system, which may not know yet
                    asked = command("display-message", "-t", target(started.row["pane"]))
                    ((path, _),) = [
                        row.values() for row in await client.rows(listing=asked, template=template)
                    ]
            assert path == str(tmp_path / name)
        assert list((tmp_path / name).iterdir()) == []


async def test_an_empty_environment_starts_a_server(client: Client) -> None:
    bare = Client(ProcessRunner({}), client.socket, client.binary)
    new = command("new-session", "-d", "-s", Arg("-s", "日本 é"), "exec cat")
    started = await bare.start(new, template=IDS)
    assert bare.provenance(started.server) == "minimal"
    named = await bare.rows(listing=command("list-sessions"), template=Template(name="#{session_name}"))
    assert named == [{"name": "日本 é"}]


async def test_the_server_gets_none_of_our_variables(client: Client) -> None:
    environ = {
        **os.environ,
        "TMUXMCP_SOCKET": "x",
        "LIBTMUX_SOCKET": "x",
        "TMUX": "/x,1,0",
        "TMUX_PANE": "%1",
        "KEPT": "y",
    }
    mine = Client(ProcessRunner(environ), client.socket, client.binary)
    await mine.start(NEW, template=IDS)
    said = await mine.call(command("show-environment", "-g"))
    assert "KEPT=y" in said.splitlines()
    assert not [line for line in said.splitlines() if line.startswith(("TMUX", "LIBTMUX_"))]


async def test_rows_after_a_check(client: Client, ids: dict[str, str]) -> None:
    check = command("has-session", "-t", target(ids["pane"]))
    asked = command("display-message", "-t", target(ids["pane"]))
    assert await client.rows(check, listing=asked, template=IDS) == [ids]
    gone = target("%999")
    with pytest.raises(NotFound):
        await client.rows(
            command("has-session", "-t", gone), listing=command("display-message", "-t", gone), template=IDS
        )


async def test_try_call_gives_the_refusal_itself(client: Client, ids: dict[str, str]) -> None:
    output = await client.try_call(command("has-session", "-t", target("%999")))
    assert output == Output(1, b"", "can't find pane: %999\n")


async def test_no_client_is_left_after_a_timeout_or_a_cancellation(
    client: Client, ids: dict[str, str]
) -> None:
    wait = command("wait-for", Arg("CHANNEL", "never"))
    with pytest.raises(TmuxTimeout):
        await client.call(wait, timeout=0.2)
    with anyio.move_on_after(0.2):
        await client.call(wait, timeout=60)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


async def test_calls_pass_while_others_wait(client: Client, ids: dict[str, str]) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(client.call, command("wait-for", Arg("CHANNEL", f"c{number}")))
        with anyio.fail_after(4):
            assert await client.rows(listing=command("list-panes", "-a"), template=IDS) == [ids]
        tasks.cancel_scope.cancel()


async def test_the_end_of_the_server_is_told_and_survived(client: Client, ids: dict[str, str]) -> None:
    own = client.own
    with pytest.raises(ServerGone):
        await client.call(command("run-shell", f"kill -9 {(await client.server()).pid}"))
    with pytest.raises(NoServer):
        await client.server()
    started = await client.start(NEW, template=IDS)
    assert started.server_started
    assert started.server != own
    assert client.provenance(started.server) == "minimal"


def test_nothing_here_knows_mcp() -> None:
    script = "import sys, tmuxmcp.tmux.ambient, tmuxmcp.tmux.fake; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
