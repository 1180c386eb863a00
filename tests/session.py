"""The whole program as people use it: the SDK's client over stdio, on a tmux server of the test's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

from tests.conftest import TMUX

PATIENCE = 20.0
"""Seconds until a wait for something that must happen is a failure."""

ALL = "inspect,manage,execute,teardown"

Result = dict[str, Any]
T = TypeVar("T")


class Place:
    """A directory of a test's own: a socket path, a home directory, and a directory to work in."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "s"
        self.home = directory / "home"
        self.work = directory / "work"
        self.audit = directory / "audit"
        self.errors = directory / "stderr"
        (self.home / ".config/fish").mkdir(parents=True)
        self.work.mkdir()
        # Without these, zsh asks questions, and fish greets and makes ten thousand completion files.
        (self.home / ".zshrc").touch()
        (self.home / ".local/share/fish/generated_completions").mkdir(parents=True)
        (self.home / ".config/fish/config.fish").write_text("set fish_greeting\n")

    def environment(self, **more: str | None) -> dict[str, str]:
        """The environment of a server here, whole; None takes a variable out."""
        own: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "SHELL": shutil.which("bash") or "/bin/sh",
            "LC_ALL": "C.UTF-8",
            "TMUXMCP_SOCKET": f"path:{self.socket}",
            "TMUXMCP_TOOLSETS": ALL,
            "TMUXMCP_AUDIT": f"path:{self.audit}",
        }
        if TMUX != "tmux":
            own["TMUXMCP_TMUX_BIN"] = TMUX
        return {name: value for name, value in (own | more).items() if value is not None}

    def tmux(self, *arguments: str, check: bool = True, start: bool = False) -> str:
        """Run a tmux command past the server. Only with `start` may it start a tmux server."""
        argv = [TMUX, "-u", *([] if start else ["-N"]), "-S", str(self.socket), *arguments]
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            argv,
            env=env,
            cwd=self.work,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{arguments}: {done.stderr}"
        return done.stdout

    def clients(self) -> list[str]:
        """The tmux clients on the socket that run now."""
        server = self.tmux("display-message", "-p", "#{pid}", check=False).strip()
        # Else COLUMNS, where it is set, cuts the lines.
        argv = ["ps", "-A", "-ww", "-o", "pid=,args="]
        listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
        return [line for line in listed if f"-S {self.socket} " in line and line.split()[0] != server]


@contextmanager
def place() -> Iterator[Place]:
    """A place; the tmux server that is on its socket afterwards is ended."""
    # Not below pytest's own temporary directory: a socket path holds 103 bytes.
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        made = Place(Path(directory).resolve())
        try:
            yield made
        finally:
            made.tmux("kill-server", check=False)


class Session:
    """A client that talks to ``python -m tmuxmcp``."""

    def __init__(self, client: Client, place: Place) -> None:
        self.client = client
        self.place = place

    async def call(self, tool: str, /, **arguments: Any) -> Result:
        """Call a tool that has to succeed. The result is also what the text says."""
        result = await self.client.call_tool(tool, arguments)
        answer = _text(result.content)
        assert not result.is_error, f"{tool}: {answer}"
        assert result.structured_content == answer
        return answer

    async def refusal(self, tool: str, /, **arguments: Any) -> Result:
        """Call a tool that has to refuse: what it says, as ``{code, message, details}``."""
        result = await self.client.call_tool(tool, arguments)
        answer = _text(result.content)
        assert result.is_error, f"{tool} did not refuse: {answer}"
        assert result.structured_content is None
        assert answer.keys() == {"code", "message", "details"}
        return answer

    async def description(self, tool: str) -> str:
        """What a tool's description says, on one line."""
        (found,) = [each for each in (await self.client.list_tools()).tools if each.name == tool]
        return " ".join((found.description or "").split())

    async def pane(self, shell: str = "bash", **arguments: Any) -> str:
        """The pane of a new session in which this shell runs."""
        if shell != "bash":
            self.tmux("set-option", "-g", "default-shell", shutil.which(shell) or shell)
        created = await self.call("create_session", **arguments)
        if shell != "bash":
            self.tmux("set-option", "-g", "default-shell", shutil.which("bash") or "/bin/sh")
        return str(created["pane_id"])

    async def run(self, pane: str, command: str, **arguments: Any) -> Result:
        """Run a command in a pane."""
        return await self.call("run_shell_command", pane_id=pane, command=command, **arguments)

    async def prompt(self, pane: str) -> None:
        """Wait until the pane's shell has run something, and so is at its prompt."""
        assert (await self.run(pane, "true"))["exit_status"] == 0

    def tmux(self, *arguments: str) -> str:
        return self.place.tmux(*arguments)

    def screen(self, pane: str) -> str:
        """What a pane shows, wrapped lines joined."""
        return self.tmux("capture-pane", "-p", "-J", "-t", pane)

    async def shows(self, pane: str, text: str) -> str:
        """The screen, once this text is on it."""
        return await until(lambda: screen if text in (screen := self.screen(pane)) else "")

    def program(self, pane: str) -> str:
        """The name of the program in a pane's foreground."""
        return self.tmux("display-message", "-p", "-t", pane, "#{pane_current_command}").strip()

    async def runs(self, pane: str, program: str) -> None:
        """Wait until this program is in the pane's foreground."""
        await until(lambda: self.program(pane) == program)


PROGRAM = (sys.executable, "-m", "tmuxmcp")


def server(place: Place, *program: str, **environ: str | None) -> list[str]:
    """The argv of a server at this place, which gets nothing else of our environment."""
    variables = [f"{name}={value}" for name, value in place.environment(**environ).items()]
    return ["env", "-i", *variables, *(program or PROGRAM)]


@asynccontextmanager
async def connected(place: Place, *program: str, **environ: str | None) -> AsyncIterator[Session]:
    """A client of a server at this place, with more variables for the server's environment."""
    command, *arguments = server(place, *program, **environ)
    parameters = StdioServerParameters(command=command, args=arguments, cwd=place.work)
    try:
        with place.errors.open("a") as errors:
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                yield Session(client, place)
    except Exception as error:
        error.add_note(f"The server's standard error ends with:\n{place.errors.read_text()[-2000:]}")
        raise


@asynccontextmanager
async def own_session(**environ: str | None) -> AsyncIterator[Session]:
    """A client, a server and a place, and a first session that keeps the tmux server alive."""
    with place() as made:
        async with connected(made, **environ) as session:
            await session.call("create_session", name="first")
            yield session


async def together(*calls: Awaitable[T]) -> list[T]:
    """Await all of these at once, and return their results in order."""
    results: dict[int, T] = {}

    async def one(index: int, call: Awaitable[T]) -> None:
        results[index] = await call

    async with anyio.create_task_group() as tasks:
        for index, call in enumerate(calls):
            tasks.start_soon(one, index, call)
    return [results[index] for index in range(len(calls))]


async def meanwhile(call: Awaitable[T], *others: Awaitable[object]) -> T:
    """The result of a call during which others are made."""
    results: list[T] = []

    async def first() -> None:
        results.append(await call)

    await together(first(), *others)
    return results[0]


async def until(condition: Callable[[], T]) -> T:
    """Look until the condition's value is true, and return that."""
    value = condition()
    try:
        with anyio.fail_after(PATIENCE):
            while not value:
                await anyio.sleep(0.01)
                value = condition()
    except TimeoutError:
        raise AssertionError(f"it did not come to this within {PATIENCE} s") from None
    return value


def said(answer: Result) -> tuple[str, int | None, str]:
    """The essence of a run: how it ended, its exit status and its output."""
    return answer["outcome"], answer.get("exit_status"), answer["output"]


def _text(content: Any) -> Result:
    (block,) = content
    assert isinstance(block, TextContent)
    answer: Result = json.loads(block.text)
    return answer
