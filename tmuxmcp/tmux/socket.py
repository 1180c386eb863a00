"""Which socket the process is pinned to, how a person attaches to it, and the lock for starting its server.

A selector is resolved once, to the path that tmux's own `-L` (or nothing at all) would give; from
then on only `-S PATH` is used, so that neither TMUX nor TMUX_TMPDIR can move us.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal, NamedTuple

import anyio

from tmuxmcp.errors import StartupError, TmuxTimeout, TmuxUnusable

Form = Literal["name", "inherit", "path"]

MAX_PATH_BYTES: Final = 107 if sys.platform == "linux" else 103
"""The longest path that fits the system's socket address, its closing NUL aside."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_POLL_SECONDS: Final = 0.01


class Socket(NamedTuple):
    """A pinned socket: `selector` as configured (in its long spelling), `path` as handed to tmux."""

    form: Form
    selector: str
    path: str

    def attach_command(self, program: str = "tmux") -> str:
        """The shell line with which a person looks at the same sessions; it never starts a server."""
        return shlex.join([program, "-N", "-S", self.path, "attach"])


def resolve(selector: str, environ: Mapping[str, str]) -> Socket:
    """The socket that ``name:<n>``, a bare name, ``inherit`` or ``path:/abs`` stands for.

    `inherit` is the server that the process was started in (TMUX), else tmux's default one. Raises
    `StartupError` when the selector is none of these or when no socket can be at the place.
    """
    if selector == "inherit":
        inherited = environ.get("TMUX", "").partition(",")[0]
        path = inherited or os.path.join(_directory(environ), "default")
        return _checked(Socket("inherit", selector, path))
    if selector.startswith("path:"):
        path = selector.removeprefix("path:")
        if not os.path.isabs(path) or path.endswith("/") or not path.isprintable():
            raise StartupError(
                f"The socket {selector!r} is not usable: write path: and the absolute path of a socket."
            )
        return _checked(Socket("path", selector, path))
    name = selector.removeprefix("name:")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise StartupError(
            f"The socket {selector!r} is not usable: write name:<name> with 1 to 64 of A-Z a-z 0-9 . _ -, "
            "path:/absolute/path, or inherit."
        )
    return _checked(Socket("name", f"name:{name}", os.path.join(_directory(environ), name)))


def _directory(environ: Mapping[str, str]) -> str:
    """tmux's directory for sockets: in TMUX_TMPDIR when that exists, else in /tmp, symlinks resolved."""
    base = os.path.realpath("/tmp")
    if wanted := environ.get("TMUX_TMPDIR"):
        with suppress(OSError):
            base = os.path.realpath(wanted, strict=True)
    directory = os.path.join(base, _own_directory())
    if fault := _fault(directory):
        raise StartupError(f"{fault} Or choose another place with TMUX_TMPDIR.")
    return directory


def _own_directory() -> str:
    return f"tmux-{os.getuid()}"


def _fault(directory: str) -> str | None:
    """Why tmux would refuse its own directory for sockets, and the remedy; None when it can be used."""
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{directory} is not usable: {error.strerror}. Repair that."
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & stat.S_IRWXO:
        return (
            f"tmux refuses {directory}: it has to be your directory, closed to others. Run chmod 700 on it."
        )
    return None


def _not_a_socket(path: str) -> str | None:
    """Why tmux must not start a server here: it would remove the file that is in its place."""
    try:
        taken = not stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return None
    return f"{path} exists and is not a socket." if taken else None


def _checked(socket: Socket) -> Socket:
    if fault := _not_a_socket(socket.path):
        raise StartupError(f"{fault} Choose another socket.")
    if len(os.fsencode(socket.path)) > MAX_PATH_BYTES:
        raise StartupError(
            f"The socket path {socket.path} is longer than the {MAX_PATH_BYTES} bytes that this system "
            "takes. Choose a shorter name, or a shorter directory with TMUX_TMPDIR or path:."
        )
    return socket


def prepare(socket: Socket) -> None:
    """Make tmux's own directory for sockets, as `tmux -L` does; any other directory has to exist.

    Raises `TmuxUnusable` when there can be no socket.
    """
    directory = os.path.dirname(socket.path)
    try:
        if os.path.basename(directory) == _own_directory():
            with suppress(FileExistsError):
                os.mkdir(directory, 0o700)
            fault = _fault(directory)
        else:
            os.stat(directory)
            fault = None
    except OSError as error:
        fault = f"The directory of the socket, {directory}, is not usable: {error.strerror}. Create it."
    if fault := fault or _not_a_socket(socket.path):
        raise TmuxUnusable(f"{fault} Or choose another socket with TMUXMCP_SOCKET.", socket=socket.path)


@asynccontextmanager
async def start_lock(socket: Socket, timeout: float) -> AsyncIterator[None]:
    """Hold the advisory lock under which a server is started on this socket.

    Every tmuxmcp process that would start one takes it, so that the check before and the evidence
    after belong to one starter. The file stands beside the socket only while it is held. (tmux has
    a `.lock` file of its own, which we leave alone: holding it would block tmux.)
    """
    path = os.path.realpath(os.path.dirname(socket.path)) + f"/{os.path.basename(socket.path)}.tmuxmcp-start"
    try:
        with anyio.fail_after(timeout):
            while (fd := _try_lock(path)) is None:
                await anyio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise TmuxTimeout(
            f"Another process has been starting a tmux server on {socket.path} for {timeout:g} seconds. "
            "Try again.",
            timeout=timeout,
        ) from None
    except OSError as error:
        raise TmuxUnusable(
            f"The lock {path} cannot be taken: {error.strerror}. Its directory has to be writable for you: "
            "make it so, or choose another socket with TMUXMCP_SOCKET.",
            socket=socket.path,
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(fd)


def _try_lock(path: str) -> int | None:
    """The locked file's descriptor, or None while another holds it or has just removed it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None
