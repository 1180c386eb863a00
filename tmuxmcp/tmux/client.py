"""The one way to talk to the tmux server of the pinned socket."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

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
"""Bytes that one tmux process may answer: a full history of 1,000,000 short lines, or 5,000 long ones."""

START_TIMEOUT: Final = 15.0
MINIMAL_CONFIG: Final = Path(__file__).with_name("minimal.conf")
MARKER: Final = "minimal"

_IDENTITY: Final = {"server_pid": "#{pid}", "server_start": "#{start_time}", "server_marker": "#{@tmuxmcp}"}
_RETRY_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.4)


class Version(NamedTuple):
    """A tmux version, ordered: ``Version(3, 2, "a") < Version(3, 3) < Version(3, 3, "a")``."""

    major: int
    minor: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.suffix}"

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Read ``3.3a``, ``tmux 3.5`` or ``next-3.8``, which lies between 3.7 and 3.8; None if it is neither."""
        match = re.fullmatch(r"(?:tmux )?(next-)?(\d+)\.(\d+)([a-z]?)(?:-rc\d*)?", text.strip())
        if match is None:
            return None
        unreleased, major, minor, suffix = match.groups()
        if unreleased:
            return cls(int(major), int(minor) - 1, "~")
        return cls(int(major), int(minor), suffix)


MIN_VERSION: Final = Version(3, 2, "a")


class Server(NamedTuple):
    """Which tmux server it is: two servers on one socket path differ in at least one of these."""

    pid: int
    start_time: int


class Started(NamedTuple):
    """What `Client.start` did: the new session's row, and the server that holds it."""

    row: dict[str, str]
    server: Server
    started: bool
    """This call started the server."""
    minimal: bool
    """It started it, and the marker of the minimal configuration was read back."""


class Client:
    """Runs tmux commands on the pinned socket and raises typed errors for its refusals.

    `config` is what a server that we start reads: ``minimal``, ``user`` (tmux's own search) or a path.
    `own` is the server that this process started last, if any.
    """

    def __init__(self, runner: Runner, socket: Socket, binary: str = "tmux", config: str = "minimal") -> None:
        self.runner = runner
        self.socket = socket
        self.binary = binary
        self.config = config
        self.own: Server | None = None
        self._version: Version | None = None

    async def version(self) -> Version:
        """The version of the tmux program; asked once. Raises `TmuxUnusable` below 3.2a."""
        if self._version is None:
            answer = await self.runner.run([self.binary, "-V"], timeout=TIMEOUT, max_output=4096)
            said = answer.stdout.decode("utf-8", "replace").strip()
            found = Version.parse(said)
            if found is None or found < MIN_VERSION:
                raise TmuxUnusable(
                    f"{self.binary} is {said[:80] or 'not tmux'}; tmuxmcp needs tmux {MIN_VERSION} or newer. Install "
                    "one, or set TMUXMCP_TMUX_BIN to its path.",
                    program=self.binary,
                    version=said[:80],
                )
            self._version = found
        return self._version

    async def call(
        self,
        *commands: Command,
        stdin: bytes = b"",
        cwd: str | None = None,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
    ) -> str:
        """Run `commands` in one tmux process that never starts a server; what they printed.

        Raises what `tmuxmcp.tmux.errors.translate` makes of a refusal. When no server runs and the
        first command is ``has-session``, the named target does not exist: `NotFound`.
        """
        output = await self.try_call(*commands, stdin=stdin, cwd=cwd, timeout=timeout, max_output=max_output)
        error = errors.translate(output, self.socket.path)
        if isinstance(error, NoServer) and commands[0].name == "has-session":
            raise NotFound(f"{error.message} So the target does not exist.", **error.details)
        if error is not None:
            raise error
        return output.stdout.decode("utf-8", "replace")

    async def try_call(
        self,
        *commands: Command,
        stdin: bytes = b"",
        cwd: str | None = None,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
    ) -> Output:
        """Like `call`, but a refusal of tmux comes back as it is."""
        return await self._run(("-N",), commands, stdin, cwd, timeout, max_output)

    async def rows(
        self, *before: Command, listing: Command, template: Template, timeout: float = TIMEOUT
    ) -> list[dict[str, str]]:
        """The rows that `listing` (list-*, display-message, new-*) gives for `template`, after `before`."""
        nonce = new_nonce()
        return template.parse(await self.call(*before, template.ask(listing, nonce), timeout=timeout), nonce)

    async def server(self) -> Server:
        """Which server runs on the socket. Raises `NoServer`."""
        ask = Template(**_IDENTITY)
        nonce = new_nonce()
        row = ask.parse(await self.call(ask.ask(Command("display-message"), nonce)), nonce)[0]
        return _server(row)

    async def start(
        self,
        new_session: Command,
        *after: Command,
        template: Template,
        cwd: str | None = None,
        timeout: float = START_TIMEOUT,
    ) -> Started:
        """Create a session; start the server in the same invocation when there is none.

        The start is serialised by `start_lock`, and repeated while the previous server is just exiting.
        """
        with anyio.fail_after(timeout):
            try:
                return await self._create(False, new_session, after, template, cwd, timeout)
            except (NoServer, ServerGone):
                pass
            prepare(self.socket)
            async with start_lock(self.socket, timeout):
                failure: ToolError | None = None
                for delay in _RETRY_SECONDS:
                    for starting in (False, True):
                        try:
                            return await self._create(starting, new_session, after, template, cwd, timeout)
                        except (NoServer, ServerGone) as error:
                            failure = error
                    await anyio.sleep(delay)
        raise TmuxUnusable(
            f"A tmux server on {self.socket.path} cannot be started or reached: {failure}. When one of another version "
            "runs there, end it or set TMUXMCP_TMUX_BIN to a tmux of its version.",
            socket=self.socket.path,
        )

    async def _create(
        self,
        starting: bool,
        new_session: Command,
        after: tuple[Command, ...],
        template: Template,
        cwd: str | None,
        timeout: float,
    ) -> Started:
        whole = Template(**template.fields, **_IDENTITY)
        nonce = new_nonce()
        commands = (whole.ask(new_session, nonce), *after)
        flags = self._config_flags() if starting else ("-N",)
        output = await self._run(flags, commands, b"", cwd, timeout, MAX_OUTPUT)
        if (error := errors.translate(output, self.socket.path)) is not None:
            raise error
        row = whole.parse(output.stdout.decode("utf-8", "replace"), nonce)[0]
        server = _server(row)
        minimal = starting and self.config == "minimal" and row["server_marker"] == MARKER
        if starting:
            self.own = server
        return Started({name: row[name] for name in template.fields}, server, starting, minimal)

    def _config_flags(self) -> tuple[str, ...]:
        if self.config == "user" or self.socket.form == "inherit":
            return ()
        return ("-f", str(MINIMAL_CONFIG) if self.config == "minimal" else self.config)

    async def _run(
        self,
        flags: tuple[str, ...],
        commands: tuple[Command, ...],
        stdin: bytes,
        cwd: str | None,
        timeout: float,
        max_output: int,
    ) -> Output:
        await self.version()
        return await self.runner.run(
            [self.binary, "-u", *flags, "-S", self.socket.path, *argv(commands)],
            stdin=stdin,
            cwd=cwd,
            timeout=timeout,
            max_output=max_output,
        )


def _server(row: Mapping[str, str]) -> Server:
    return Server(int(row["server_pid"]), int(row["server_start"]))


def find_binary(name: str, environ: Mapping[str, str]) -> str:
    """The absolute path of the tmux program, so that the child's PATH does not matter; `name` if there is none."""
    return shutil.which(name, path=environ.get("PATH")) or name
