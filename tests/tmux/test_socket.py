"""The pinned path is the one that tmux would take itself; one process at a time starts a server."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tmuxmcp.errors import StartupError, TmuxTimeout, TmuxUnusable
from tmuxmcp.tmux.socket import MAX_PATH_BYTES, Socket, prepare, resolve, start_lock

from .conftest import tmux_program


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with a short path."""
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp") as directory:
        yield Path(directory).resolve()


def ask_tmux(environ: dict[str, str], *flags: str) -> str:
    """The socket path that tmux computes; the server that tells it is ended."""
    argv = [tmux_program(), *flags, "-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{socket_path}"]
    path = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run([tmux_program(), "-S", path, "kill-server"], env=environ, check=True)
    return path


def test_a_name_gives_the_path_of_tmux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "there").mkdir()
    (home / "link").symlink_to("there")
    base = {"PATH": os.environ["PATH"]}
    tmpdirs = ["there", "link", str(home / "link"), "./there/", str(home / "missing"), "", None]
    for number, tmpdir in enumerate(tmpdirs):
        environ = base if tmpdir is None else {**base, "TMUX_TMPDIR": tmpdir}
        label = f"tmuxmcp-{os.getpid()}-{number}"
        expected = Socket("name", f"name:{label}", ask_tmux(environ, "-L", label))
        assert resolve(f"name:{label}", environ) == resolve(label, environ) == expected


def test_inherit_is_the_server_around_us_else_the_default(home: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "TMUX_TMPDIR": str(home)}
    assert resolve("inherit", environ) == Socket("inherit", "inherit", ask_tmux(environ))
    for tmux, path in [("/a/b,12,0", "/a/b"), ("/a/b", "/a/b")]:
        assert resolve("inherit", {**environ, "TMUX": tmux}).path == path
    for nothing in ["", ",12,0"]:
        assert resolve("inherit", {**environ, "TMUX": nothing}).path == f"{home}/tmux-{os.getuid()}/default"
    assert resolve("name:x", {**environ, "TMUX": "/a/b,12,0"}).path == f"{home}/tmux-{os.getuid()}/x"


def test_a_path_is_taken_as_it_is() -> None:
    assert resolve("path:/a b/#(x)", {}) == Socket("path", "path:/a b/#(x)", "/a b/#(x)")


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "name:",
        "a/b",
        "../x",
        "name:..",
        ".",
        "a b",
        "x" * 65,
        "name:a:b",
        "path:",
        "path:x",
        "path:/a/",
        "path:/a\nb",
        "ünï",
    ],
)
def test_what_is_no_selector(selector: str) -> None:
    with pytest.raises(StartupError, match="not usable"):
        resolve(selector, {})


def test_a_path_has_to_fit_a_socket_address(home: Path) -> None:
    room = MAX_PATH_BYTES - len("/é")
    assert resolve(f"path:/{'x' * (room - 1)}é", {}).path
    for long in [f"/{'x' * room}é", f"/{'x' * MAX_PATH_BYTES}"]:
        with pytest.raises(StartupError, match=f"{MAX_PATH_BYTES} bytes"):
            resolve(f"path:{long}", {})
    (home / ("d" * 90)).mkdir()
    with pytest.raises(StartupError, match="TMUX_TMPDIR"):
        resolve("name:tmuxmcp", {"TMUX_TMPDIR": str(home / ("d" * 90))})


def test_the_limit_is_the_systems(home: Path) -> None:
    path = str(home / "x").ljust(MAX_PATH_BYTES, "x")
    assert ask_tmux({"PATH": os.environ["PATH"]}, "-S", path) == path
    with pytest.raises(subprocess.CalledProcessError):
        ask_tmux({"PATH": os.environ["PATH"]}, "-S", f"{path}x")


def test_a_directory_that_tmux_refuses_is_found_at_once(home: Path) -> None:
    environ = {"TMUX_TMPDIR": str(home)}
    directory = Path(resolve("name:x", environ).path).parent
    directory.mkdir(mode=0o777)
    directory.chmod(0o777)
    with pytest.raises(StartupError, match="chmod 700"):
        resolve("name:x", environ)
    directory.chmod(0o700)
    resolve("name:x", environ)
    directory.rmdir()
    directory.touch()
    with pytest.raises(StartupError, match="your directory"):
        resolve("inherit", environ)
    (home / "file").touch()
    with pytest.raises(StartupError, match="Not a directory"):
        resolve("name:x", {"TMUX_TMPDIR": str(home / "file")})


def test_a_file_in_the_sockets_place_is_kept(home: Path) -> None:
    """tmux itself would remove it."""
    (home / "notes").write_text("mine")
    socket = Socket("path", f"path:{home}/notes", str(home / "notes"))
    with pytest.raises(StartupError, match="not a socket"):
        resolve(socket.selector, {})
    with pytest.raises(TmuxUnusable, match="not a socket"):
        prepare(socket)
    assert (home / "notes").read_text() == "mine"


def test_only_tmuxs_own_directory_is_made(home: Path) -> None:
    socket = resolve("name:x", {"TMUX_TMPDIR": str(home)})
    prepare(socket)
    prepare(socket)
    assert Path(socket.path).parent.stat().st_mode & 0o777 == 0o700
    Path(socket.path).parent.chmod(0o707)
    with pytest.raises(TmuxUnusable, match="chmod 700"):
        prepare(socket)
    with pytest.raises(TmuxUnusable, match="No such file"):
        prepare(resolve(f"path:{home}/missing/x", {}))
    assert not (home / "missing").exists()


@pytest.mark.parametrize("path", ["/tmp/plain", "/tmp/a b", "/tmp/it's", "/tmp/$(x);&|#"])
def test_the_attach_command_is_one_for_a_shell(path: str) -> None:
    line = Socket("path", f"path:{path}", path).attach_command("/opt/my tmux/tmux")
    assert shlex.split(line) == ["/opt/my tmux/tmux", "-N", "-S", path, "attach"]
    printed = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines() == shlex.split(line)


def test_the_attach_command_of_the_default() -> None:
    assert Socket("name", "name:x", "/tmp/tmux-0/x").attach_command() == "tmux -N -S /tmp/tmux-0/x attach"


async def test_one_holds_the_lock_and_no_file_is_left(home: Path) -> None:
    socket = Socket("path", f"path:{home}/s", str(home / "s"))
    inside = 0

    async def hold() -> None:
        nonlocal inside
        async with start_lock(socket, 10):
            inside += 1
            assert inside == 1
            await anyio.sleep(0.02)
            inside -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(hold)
    assert list(home.iterdir()) == []


async def test_the_lock_is_waited_for_with_a_deadline(home: Path) -> None:
    socket = Socket("path", f"path:{home}/s", str(home / "s"))
    async with start_lock(socket, 1):
        with pytest.raises(TmuxTimeout):
            async with start_lock(socket, 0.05):
                pass
    async with start_lock(socket, 1):
        pass
    with pytest.raises(TmuxUnusable):
        async with start_lock(Socket("path", "", str(home / "missing" / "s")), 1):
            pass


async def test_two_spellings_of_a_path_share_one_lock(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to("real")
    async with start_lock(Socket("path", "", str(home / "real" / "s")), 1):
        with pytest.raises(TmuxTimeout):
            async with start_lock(Socket("path", "", str(home / "link" / "s")), 0.05):
                pass
