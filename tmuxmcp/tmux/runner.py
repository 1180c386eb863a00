"""The only place that starts a process.

Every tmux process has a deadline, a bounded answer and a clean environment; it is killed and reaped
when its time is up or its caller is cancelled, so that no client outlives a call.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, Final, NamedTuple, Protocol

import anyio

from tmuxmcp.errors import InvalidDirectory, TmuxFailed, TmuxTimeout, TmuxUnusable, TooLarge

MAX_PROCESSES: Final = 4
"""tmux processes at work at once: its server is one thread, so that more only wait for each other."""

WORKING_SECONDS: Final = 0.5
"""A process that takes longer (`wait-for`) is waiting and not working: it gives its place to others."""

_PIPES_SECONDS: Final = 0.05
"""Longer than most processes take."""
_CHUNK: Final = 1 << 16
_SCRUBBED: Final = ("TMUXMCP_", "LIBTMUX_")


class Output(NamedTuple):
    """What a process left behind. `stdout` is as printed; `stderr` is decoded for reading."""

    returncode: int
    stdout: bytes
    stderr: str


class Runner(Protocol):
    """Runs one process to its end."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        max_output: int,
        begun: Callable[[], object] | None = None,
    ) -> Output:
        """Run `argv` (its first element is the program) within `timeout` seconds, queueing included.

        `env` replaces the environment, scrubbed all the same; `cwd` is taken literally; `begun` is called
        when the process first prints. Raises `TmuxTimeout`, `TmuxUnusable` (the program cannot be started),
        `InvalidDirectory` (`cwd` cannot be entered) and `TooLarge` (more than `max_output` bytes of answer,
        or too long an argument list).
        """
        ...


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what points tmux at another server (TMUX, TMUX_PANE) and without our own settings."""
    return {
        name: value
        for name, value in environ.items()
        if name not in ("TMUX", "TMUX_PANE") and not name.startswith(_SCRUBBED)
    }


class ProcessRunner:
    """Starts real processes, directly and without a shell.

    `subprocess.Popen` spawns (vfork where the system has it); pipes and the end of the process are
    watched by the event loop itself, which costs less than asyncio's own subprocess machinery.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = scrubbed(os.environ if environ is None else environ)
        self._places = anyio.Semaphore(MAX_PROCESSES, fast_acquire=True)

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        max_output: int,
        begun: Callable[[], object] | None = None,
    ) -> Output:
        try:
            with anyio.fail_after(timeout):
                await self._places.acquire()
                placed = True
                try:
                    environ = self._environ if env is None else scrubbed(env)
                    child = _Child(_spawn(argv, stdin, cwd, environ), max_output, begun)
                    try:
                        with anyio.move_on_after(WORKING_SECONDS):
                            return await child.output()
                        self._places.release()
                        placed = False
                        return await child.output()
                    finally:
                        await child.end()
                finally:
                    if placed:
                        self._places.release()
        except TimeoutError:
            raise TmuxTimeout(
                f"tmux did not answer within {timeout:g} seconds. Its server may be busy or stuck, and may "
                "do what it was asked for when it goes on: look before you try again, and if it stays so, "
                "have a person attach to it.",
                timeout=timeout,
            ) from None


def _spawn(
    argv: Sequence[str], stdin: bytes, cwd: str | None, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    try:
        with _file(stdin) if stdin else nullcontext() as file:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL if file is None else file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                bufsize=0,
                # What a terminal sends to our process group (Ctrl-C) is not meant for tmux. A session of its
                # own would do the same, but Linux schedules each session apart, and a new one comes last.
                process_group=0,
            )
    except OSError as error:
        if cwd is not None and error.filename == cwd:
            raise InvalidDirectory(
                f"The directory {cwd} cannot be entered: {error.strerror}. Choose another one.", directory=cwd
            ) from None
        if error.errno == errno.E2BIG:
            raise TooLarge("The command is longer than the system takes at once. Send less.") from None
        if error.errno in _NO_ROOM:
            raise TmuxFailed(
                f"{argv[0]} cannot be started now: {error.strerror}. Try again when the system has room."
            ) from None
        raise TmuxUnusable(
            f"{argv[0]} cannot be started: {error.strerror}. Install tmux 3.2a or newer, or set "
            "TMUXMCP_TMUX_BIN to its path.",
            program=argv[0],
        ) from None


_NO_ROOM: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
)


@contextmanager
def _file(data: bytes) -> Iterator[IO[bytes]]:
    """A file without a name that holds `data`.

    A pipe would end when we are killed while we write, and tmux would type half a text as if it were all.
    """
    in_memory = hasattr(os, "memfd_create")
    with (
        open(os.memfd_create("tmuxmcp"), "w+b", buffering=0)
        if in_memory
        else tempfile.TemporaryFile(buffering=0)
    ) as file:
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]
        file.seek(0)
        yield file


class _Child:
    """A started process: the event loop drains its pipes, and then notices its end.

    A process closes its pipes when it ends, and has most often ended by the time that we see it: so its end
    is watched for only then, or after `_PIPES_SECONDS`, as something else may hold the pipes for longer.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], max_output: int, begun: Callable[[], object] | None
    ) -> None:
        self._process = process
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self._max_output = max_output
        self._size = 0
        self._over = anyio.Event()
        assert process.stdout is not None
        assert process.stderr is not None
        self._answer: dict[int, list[bytes]] = {}
        self._open: set[int] = set()
        self._out, self._err = process.stdout.fileno(), process.stderr.fileno()
        for fd in (self._out, self._err):
            self._answer[fd] = []
            self._watch(fd)
        self._pidfd: int | None = None
        self._pipes = self._loop.call_later(_PIPES_SECONDS, self._watch_end)

    async def output(self) -> Output:
        """The answer, once the process has ended."""
        await self._over.wait()
        if self._size > self._max_output:
            raise TooLarge(
                f"tmux's answer is larger than {self._max_output} bytes. Ask for fewer lines or one target.",
                limit=self._max_output,
            )
        stdout, stderr = (b"".join(self._answer[fd]) for fd in (self._out, self._err))
        return Output(self._process.returncode, stdout, stderr.decode("utf-8", "replace"))

    async def end(self) -> None:
        """Kill the process if it is still there, reap it, and close everything; never interrupted."""
        self._pipes.cancel()
        if self._process.returncode is None:
            self._process.kill()
            with anyio.move_on_after(1, shield=True):
                while self._process.poll() is None:
                    await anyio.sleep(0.001)
        for fd in tuple(self._open):
            self._unwatch(fd)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _watch(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._open.add(fd)
        self._loop.add_reader(fd, self._drain, fd)

    def _unwatch(self, fd: int) -> None:
        self._open.discard(fd)
        self._loop.remove_reader(fd)

    def _drain(self, fd: int) -> bool:
        """Take what the pipe holds; whether there may be more at once."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._unwatch(fd)
            if not self._open:
                self._watch_end()
            return False
        if self._begun is not None:
            self._begun()
            self._begun = None
        self._answer[fd].append(data)
        self._size += len(data)
        if self._size > self._max_output:
            self._over.set()
            return False
        return True

    def _watch_end(self) -> None:
        """Notice the end of the process, whoever still holds its pipes."""
        if self._process.poll() is not None:
            self._ended()
        elif self._pidfd is None:
            self._pidfd = _pidfd(self._process.pid)
            if self._pidfd is None:
                self._loop.call_later(0.001, self._watch_end)
            else:
                self._loop.add_reader(self._pidfd, self._watch_end)

    def _ended(self) -> None:
        """Take the rest of the answer: what the process wrote is in the pipes by now."""
        for fd in tuple(self._open):
            while self._drain(fd):
                pass
        self._over.set()


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return os.pidfd_open(pid)
    return None
