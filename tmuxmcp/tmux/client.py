"""The one way to talk to the tmux server of the pinned socket."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple

import anyio

from tmuxmcp.errors import NoServer, NotFound, ServerGone, TmuxUnusable, ToolError
from tmuxmcp.tmux import errors
from tmuxmcp.tmux.command import Command, argv
from tmuxmcp.tmux.records import Template, new_nonce
from tmuxmcp.tmux.runner import Output, Runner
from tmuxmcp.tmux.socket import Socket, prepare, start_lock

TIMEOUT: Final = 5.0
"""Seconds that an ordinary tmux process may take."""

MAX_OUTPUT: Final = 32_000_000
"""Bytes that one tmux process may answer."""

MINIMAL_CONFIG: Final = Path(__file__).with_name("minimal.conf")
"""What a server that we start reads, unless the settings say otherwise."""

Provenance = Literal["minimal", "user", "custom", "unknown"]
"""Which configuration a server is known to have been started with."""

_LOCK_SECONDS: Final = 15.0
_RETRY_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
_ENDING_SECONDS: Final = (0.02, 0.1, 0.4, 1.0)


class Version(NamedTuple):
    """A tmux version, ordered: ``Version(3, 2, "a") < Version(3, 3) < Version(3, 3, "a")``."""

    major: int
    minor: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read ``3.3a`` or ``tmux 3.5``; None if it is neither. ``next-3.8`` lies between 3.7 and 3.8."""
        match = re.fullmatch(r"(?:tmux )?(next-)?(\d+)\.(\d+)([a-z]?)(?:-rc\d*)?", text.strip())
        if match is None:
            return None
        unreleased, major, minor, suffix = match.groups()
        return cls(int(major), int(minor) - 1, "~") if unreleased else cls(int(major), int(minor), suffix)


MIN_VERSION: Final = Version(3, 2, "a")


class Server(NamedTuple):
    """Which tmux server it is: no two on one socket path share both the process id and the start."""

    pid: int
    start_time: int
    """Seconds since 1970."""


class Started(NamedTuple):
    """What `Client.start` did: the new session's row, its server, and whether it started that server."""

    row: dict[str, str]
    server: Server
    server_started: bool


_VERSION: Final = Template(version="#{version}")
_SERVER: Final = Template(server_pid="#{pid}", server_start="#{start_time}", server_marker="#{@tmuxmcp}")


class Client:
    """Runs tmux commands on the pinned socket and raises typed errors for tmux's refusals.

    `config` is what a server that we start reads: ``minimal``, ``user`` (whatever tmux itself looks
    for; always so on an inherited socket) or an absolute path. `own` is the server that this
    process started last, if it started one.
    """

    def __init__(self, runner: Runner, socket: Socket, binary: str, config: str = "minimal") -> None:
        self.runner = runner
        self.socket = socket
        self.binary = binary
        self.config = "user" if socket.form == "inherit" else config
        self.own: Server | None = None
        self._own_provenance: Provenance = "unknown"
        self._program: Version | None = None
        self._version: Version | None = None

    async def call(
        self,
        *commands: Command,
        stdin: bytes = b"",
        cwd: str | None = None,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
        begun: Callable[[], object] | None = None,
    ) -> str:
        """Run `commands` in one tmux process that never starts a server, and return what they printed.

        `begun` is called when they first print. Raises what `tmuxmcp.tmux.errors.translate` makes of a
        refusal, and what `Runner.run` raises.
        When no server runs and the first command is ``has-session``, that is `NotFound` of its target.
        """
        output = await self._run(("-N",), commands, stdin, cwd, timeout, max_output, begun)
        error = errors.translate(output, self.socket.path)
        if error is None:
            return output.stdout.decode("utf-8", "replace")
        if isinstance(error, NoServer | ServerGone):
            self._version = None
        if isinstance(error, NoServer) and commands[0].name == "has-session":
            raise NotFound(f"There is no such target. {error.message}", **error.details)
        if isinstance(error, ServerGone) and await self._hangs_up():
            raise TmuxUnusable(
                f"The tmux server on {self.socket.path} lives, but does not talk to {self.binary}: they are "
                "of different versions. End that server, or set TMUXMCP_TMUX_BIN to a tmux of its version.",
                socket=self.socket.path,
            )
        raise error

    async def _hangs_up(self) -> bool:
        """Whether the server lives and hangs up on us: up to 3.5a a client takes that of one from 3.6 on
        for the server's end. One that is ending hangs up as well, but not for long.
        """
        for delay in _ENDING_SECONDS:
            if not isinstance(await self._ask_version(), ServerGone):
                return False
            await anyio.sleep(delay)
        return isinstance(await self._ask_version(), ServerGone)

    async def try_call(
        self,
        *commands: Command,
        stdin: bytes = b"",
        cwd: str | None = None,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
    ) -> Output:
        """Like `call`, but a refusal of tmux is returned as it is."""
        return await self._run(("-N",), commands, stdin, cwd, timeout, max_output)

    async def rows(
        self, *before: Command, listing: Command, template: Template, timeout: float = TIMEOUT
    ) -> list[dict[str, str]]:
        """What `listing` (see `Template.ask`) says for `template`, in one process after `before`."""
        nonce = new_nonce()
        said = await self.call(*before, template.ask(listing, nonce), timeout=timeout)
        return template.parse(said, nonce)

    async def version(self) -> Version:
        """The version that decides which flags are known: the running server's, else the program's.

        The two differ after an upgrade, until the server ends; it is the server that parses commands.
        Asked once for each server. Raises `TmuxUnusable`.
        """
        if self._version is None:
            answer = await self._ask_version()
            self._version = answer if isinstance(answer, Version) else None
        return self._version or await self._program_version()

    async def server(self) -> Server:
        """Which server runs on the socket. Raises `NoServer`."""
        return _server((await self.rows(listing=Command("display-message"), template=_SERVER))[0])

    def provenance(self, server: Server) -> Provenance:
        """The configuration that `server` was started with: only known when this process started it."""
        return self._own_provenance if server == self.own else "unknown"

    async def start(
        self, new_session: Command, *after: Command, template: Template, cwd: str | None = None
    ) -> Started:
        """Create a session, in a server that is started by the same invocation when there is none.

        Starting is serialised by `start_lock`, and repeated while the previous server is just exiting.
        """
        try:
            return await self._create(False, new_session, after, template, cwd)
        except (NoServer, ServerGone):
            pass
        prepare(self.socket)
        async with start_lock(self.socket, _LOCK_SECONDS):
            for delay in _RETRY_SECONDS:
                # Another process may have started one before it gave the lock to us.
                for starting in (False, True):
                    try:
                        return await self._create(starting, new_session, after, template, cwd)
                    except (NoServer, ServerGone):
                        pass
                await anyio.sleep(delay)
        raise TmuxUnusable(
            f"No tmux server can be started on {self.socket.path}, and none answers there. When a server of "
            "another tmux version runs there, end it or set TMUXMCP_TMUX_BIN to a tmux of its version; when "
            "its default-shell or default-command cannot run, repair that.",
            socket=self.socket.path,
        )

    async def _create(
        self,
        starting: bool,
        new_session: Command,
        after: tuple[Command, ...],
        template: Template,
        cwd: str | None,
    ) -> Started:
        whole = Template(**{**template.fields, **_SERVER.fields})
        nonce = new_nonce()
        commands = (whole.ask(new_session, nonce), *after)
        flags = self._start_flags() if starting else ("-N",)
        output = await self._run(flags, commands, b"", cwd, TIMEOUT, MAX_OUTPUT)
        if error := errors.translate(output, self.socket.path):
            raise error
        row = whole.parse_one(output.stdout.decode("utf-8", "replace"), nonce)
        server = _server(row)
        if starting:
            self.own, self._version = server, None
            self._own_provenance = self._proven(row["server_marker"])
        return Started({name: row[name] for name in template.fields}, server, starting)

    def _start_flags(self) -> tuple[str, ...]:
        if self.config == "user":
            return ()
        return ("-f", str(MINIMAL_CONFIG) if self.config == "minimal" else self.config)

    def _proven(self, marker: str) -> Provenance:
        """What a start with `config` proves; tmux drops a file with an unknown command without a word."""
        if self.config == "minimal":
            return "minimal" if marker == "minimal" else "unknown"
        return "user" if self.config == "user" else "custom"

    async def _ask_version(self) -> Version | ToolError | None:
        nonce = new_nonce()
        output = await self.try_call(_VERSION.ask(Command("display-message"), nonce))
        if error := errors.translate(output, self.socket.path):
            return error
        return Version.parse(_VERSION.parse_one(output.stdout.decode("utf-8", "replace"), nonce)["version"])

    async def _program_version(self) -> Version:
        """The version of the tmux program, asked once; it has to be new enough."""
        if self._program is not None:
            return self._program
        answer = await self.runner.run([self.binary, "-V"], timeout=TIMEOUT, max_output=MAX_OUTPUT)
        said = answer.stdout.decode("utf-8", "replace").strip()[:80]
        found = Version.parse(said)
        if found is None or found < MIN_VERSION:
            raise TmuxUnusable(
                f"{self.binary} is {said or 'not a tmux'}, and tmuxmcp needs tmux {MIN_VERSION} or newer. "
                "Install one, or set TMUXMCP_TMUX_BIN to its path.",
                program=self.binary,
                version=said,
            )
        self._program = found
        return found

    async def _run(
        self,
        flags: tuple[str, ...],
        commands: tuple[Command, ...],
        stdin: bytes,
        cwd: str | None,
        timeout: float,
        max_output: int,
        begun: Callable[[], object] | None = None,
    ) -> Output:
        await self._program_version()
        return await self.runner.run(
            [self.binary, "-u", *flags, "-S", self.socket.path, *argv(commands)],
            stdin=stdin,
            cwd=cwd,
            timeout=timeout,
            max_output=max_output,
            begun=begun,
        )


def _server(row: dict[str, str]) -> Server:
    return Server(int(row["server_pid"]), int(row["server_start"]))


def find_binary(name: str) -> str:
    """The absolute path of the tmux program, whatever PATH a child has; `name` itself if there is none."""
    return shutil.which(name) or name
