"""A tour: a real MCP client starts the server over stdio and works in a real terminal.

    make demo            everything in a few seconds, on a tmux server of its own
    make demo PAUSE=5    the same with 5 seconds between the steps, so that you can attach and watch
    make demo KEEP=1     leaves the session open at the end

Exits with 1 when a step does not come out as expected, and ends the tmux server that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent, TextResourceContents

TMUX = os.environ.get("TMUXMCP_TMUX_BIN", "tmux")
TOOLSETS = "inspect,manage,execute,teardown"
SHOWN_LINES = 8

FILES = {
    "Makefile": """\
        book.txt: one.txt two.txt
        \tcat one.txt two.txt > book.txt
        \tgrep -c . book.txt
        """,
    "one.txt": """\
        It was a dark and stormy night;
        the rain fell in torrents
        """,
    "serve.sh": """\
        echo starting
        sleep 0.8
        echo listening on port 8080
        for n in 1 2 3 4 5; do sleep 0.2; echo served request $n; done
        echo stopped
        """,
    "pager.py": """\
        import curses, sys
        def page(screen):
            lines, top, key = open(sys.argv[1]).read().splitlines(), 0, ""
            while key != "q":
                height = screen.getmaxyx()[0] - 1
                top = {"G": len(lines) - height, "j": top + 1}.get(key, top)
                screen.erase()
                for row, line in enumerate(lines[top : top + height]):
                    screen.addstr(row, 0, line)
                screen.addstr(height, 0, ":")
                key = screen.getkey()
        curses.wrapper(page)
        """,
    "numbers.txt": "".join(f"line {number}\n" for number in range(1, 501)),
}


class Unexpected(Exception):
    """A step did not come out as it has to."""


def expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise Unexpected(f"{what} should be {expected!r}, but it is {found!r}")


class Demo:
    """The client's side of the tour. Each step is a method; its docstring is what is shown."""

    def __init__(self, client: Client, directory: Path, *, keep: bool, slow: bool) -> None:
        self._client = client
        self._directory = directory
        self._keep = keep
        self._slow = slow
        self._session = ""
        self._pane = ""
        self._cursor = ""

    @property
    def steps(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self.read_capabilities,
            self.open_a_session,
            self.build,
            self.mend_the_build,
            self.stay_in_one_shell,
            self.wait_for_a_server,
            self.follow_its_output,
            self.drive_a_full_screen_program,
            self.come_back_to_a_long_command,
            self.close_the_session,
        )

    async def read_capabilities(self) -> None:
        """Ask what is offered"""
        show("read tmux://capabilities")
        (content,) = (await self._client.read_resource("tmux://capabilities")).contents
        if not isinstance(content, TextResourceContents):
            raise Unexpected("the capabilities are not text")
        said = json.loads(content.text)
        if not said["tmux_usable"]:
            raise Unexpected(" ".join(said["warnings"]))
        tell(
            f"tmuxmcp {said['version']} on tmux {said['tmux_version']}: {said['tool_count']} tools in the "
            f"toolsets {', '.join(said['toolsets'])}."
        )
        expect("the state of the tmux server", said["server_state"], "absent")

    async def open_a_session(self) -> None:
        """Create a session, which starts the tmux server"""
        made = await self._call("create_session", name="demo", width=100, height=30)
        self._session, self._pane = made["session_id"], made["pane_id"]
        tell("A person can watch from another terminal, and type there too:")
        print(f"\n        {made['attach_command']}")
        if not self._slow:
            tell("This demo ends in seconds. To have time to attach: make demo PAUSE=5, or make demo KEEP=1.")
        expect("the directory", made["path"], str(self._directory))

    async def build(self) -> None:
        """Run a build, and get its exact output and exit status"""
        ran = await self._run("make")
        expect("the exit status", ran["exit_status"], 2)
        if "two.txt" not in ran["output"]:
            raise Unexpected(f"make should miss two.txt, but it said {ran['output']!r}")

    async def mend_the_build(self) -> None:
        """Write the file that is missing, and build again"""
        ran = await self._run("cat > two.txt <<'END'\nexcept at occasional intervals,\nwhen it didn't.\nEND")
        expect("the output", (ran["exit_status"], ran["output"]), (0, ""))
        ran = await self._run("make  # the same command again")
        output = "cat one.txt two.txt > book.txt\ngrep -c . book.txt\n4"
        expect("the output", (ran["exit_status"], ran["output"]), (0, output))

    async def stay_in_one_shell(self) -> None:
        """Keep the directory and the environment from one command to the next"""
        await self._run("mkdir -p src && cd src && export TARGET=release")
        ran = await self._run('echo "$TARGET in $(basename "$PWD")"; cd ..')
        expect("the output", (ran["exit_status"], ran["output"]), (0, "release in src"))

    async def wait_for_a_server(self) -> None:
        """Start something long, and wait until it says that it is ready"""
        sent = await self._call("send_keys", pane_id=self._pane, text="sh serve.sh", enter=True)
        waited = await self._call(
            "wait_for_text",
            pane_id=self._pane,
            cursor=sent["cursor"],
            patterns=["listening on"],
            stop=["error"],
        )
        expect("the outcome", waited["outcome"], "matched")
        expect("the line", waited["matched_lines"], ["listening on port 8080"])
        tell(f"Ready after {waited['elapsed_seconds']:.1f} s.")
        self._cursor = waited["cursor"]

    async def follow_its_output(self) -> None:
        """Follow what it prints: each line once, none is lost"""
        lines: list[str] = []
        while "stopped" not in lines:
            await self._call("wait_for_text", pane_id=self._pane, cursor=self._cursor, quiet=True)
            since = await self._call("capture_since", pane_id=self._pane, cursor=self._cursor, quiet=True)
            self._cursor = since["cursor"]
            lines += since["content"].splitlines()
        show("wait_for_text(cursor=...), capture_since(cursor=...), again and again")
        output(lines)
        expect("the output", lines, [*(f"served request {n}" for n in range(1, 6)), "stopped"])

    async def drive_a_full_screen_program(self) -> None:
        """Drive a full-screen program with keys, and look at its screen"""
        sent = await self._call("send_keys", pane_id=self._pane, text=f"{pager()} numbers.txt", enter=True)
        waited = await self._call(
            "wait_for_text", pane_id=self._pane, cursor=sent["cursor"], patterns=["line 10"]
        )
        expect("the screen", waited["alternate_screen"], True)
        sent = await self._call("send_keys", pane_id=self._pane, text="G")
        await self._call("wait_for_text", pane_id=self._pane, cursor=sent["cursor"], patterns=["line 500"])
        snapshot = await self._call("snapshot_pane", pane_id=self._pane)
        rows = snapshot["content"].splitlines()
        output(["...", *rows[-4:]])
        expect("the row above the last", rows[-2], "line 500")
        await self._call("send_keys", pane_id=self._pane, text="q")

    async def come_back_to_a_long_command(self) -> None:
        """Let a command go on after its call has ended, and get its exit status later"""
        ran = await self._run("sleep 2; echo finished; (exit 7)", timeout=0.5)
        expect("the outcome", (ran["outcome"], ran["still_running"]), ("timed_out", True))
        waited = await self._call("wait_for_text", pane_id=self._pane, run=ran["run"])
        expect("the outcome", (waited["outcome"], waited["exit_status"]), ("run_completed", 7))
        tell("It has ended with exit status 7.")
        since = await self._call("capture_since", pane_id=self._pane, cursor=ran["cursor"])
        output(since["content"].splitlines()[:1])
        expect("the output", since["content"].splitlines()[:1], ["finished"])

    async def close_the_session(self) -> None:
        """Kill the session; the tmux server goes with its last one"""
        if self._keep:
            tell("Not this time: the session stays, as you asked.")
            return
        gone = await self._call("kill_session", session=self._session)
        expect("the tmux server's end", gone["server_exited"], True)
        listed = await self._call("list_sessions")
        expect("the sessions", listed["sessions"], [])
        tell("No session is left, and no tmux server.")

    async def _run(self, command: str, **arguments: Any) -> dict[str, Any]:
        ran = await self._call("run_shell_command", pane_id=self._pane, command=command, **arguments)
        output(ran["output"].splitlines())
        status = f", exit status {ran['exit_status']}" if "exit_status" in ran else ""
        tell(f"{ran['outcome']}{status}, {ran['elapsed_seconds']:.2f} s")
        return ran

    async def _call(self, tool: str, *, quiet: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to succeed, and show the call unless `quiet`."""
        if not quiet:
            show(f"{tool}({', '.join(f'{name}={_short(name, value)}' for name, value in arguments.items())})")
        answer = await self._client.call_tool(tool, arguments)
        if answer.is_error:
            said = [block.text for block in answer.content if isinstance(block, TextContent)]
            raise Unexpected(f"{tool} answered: {' '.join(said)}")
        result: dict[str, Any] = answer.structured_content
        return result


def show(call: str) -> None:
    print(f"    > {call}", flush=True)


def output(lines: Sequence[str]) -> None:
    for line in lines[:SHOWN_LINES]:
        print(f"      | {line}", flush=True)


def tell(text: str) -> None:
    print(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "), flush=True)


def _short(name: str, value: object) -> str:
    """A value as it is shown; cursors and handles mean nothing to people."""
    return "..." if name in {"cursor", "run"} else json.dumps(value)


def pager() -> str:
    """A full-screen program: less, or the pager of our own for systems that have none or a very plain one."""
    if less := shutil.which("less"):
        told = subprocess.run([less, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if told.stdout.startswith(b"less "):
            return "less"
    return shlex.join([sys.executable, "pager.py"])


@contextmanager
def workplace(keep: bool) -> Iterator[Path]:
    """A directory for the files, the socket and a home without anybody's settings. What is in it is ended."""
    directory = Path(tempfile.mkdtemp(prefix="tmuxmcp-demo-", dir="/tmp")).resolve()
    end = [TMUX, "-N", "-S", str(directory / "socket"), "kill-server"]
    try:
        for name, text in FILES.items():
            (directory / name).write_text(textwrap.dedent(text))
        yield directory
    except BaseException:
        keep = False
        raise
    finally:
        if keep:
            print(f"\nThe session is still open. End it with:\n\n    {shlex.join(end)}; rm -r {directory}\n")
        else:
            if (directory / "socket").exists():  # also when its server has ended
                subprocess.run(end, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(directory, ignore_errors=True)


async def tour(directory: Path, pause: float, keep: bool) -> None:
    """Start the server, and take every step."""
    env = {
        "HOME": str(directory),
        "SHELL": shutil.which("bash") or "/bin/sh",
        "TMUXMCP_SOCKET": f"path:{directory}/socket",
        "TMUXMCP_TOOLSETS": TOOLSETS,
        "TMUXMCP_TMUX_BIN": TMUX,
        "TMUXMCP_AUDIT": f"path:{directory}/audit.jsonl",
    }
    parameters = StdioServerParameters(command=sys.executable, args=["-m", "tmuxmcp"], env=env, cwd=directory)
    begun = time.monotonic()
    with open(directory / "stderr", "w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            demo = Demo(client, directory, keep=keep, slow=keep or pause > 0)
            for number, step in enumerate(demo.steps, 1):
                if number > 2:
                    await anyio.sleep(pause)
                print(f"\n{number:>2}. {step.__doc__}\n", flush=True)
                await step()
    print(f"\nAll {len(demo.steps)} steps came out as expected, in {time.monotonic() - begun:.1f} seconds.")


def main() -> int:
    parser = argparse.ArgumentParser(description="Show the server at work on a tmux server of its own.")
    parser.add_argument(
        "--pause",
        type=float,
        default=float(os.environ.get("PAUSE") or 0),
        help="seconds between the steps, for a person who wants to attach (environment: PAUSE)",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        default=os.environ.get("KEEP", "") not in {"", "0"},
        help="leave the session open at the end (environment: KEEP=1)",
    )
    given = parser.parse_args()
    print("tmuxmcp at work: an MCP client, a server over stdio, and a real tmux on a socket of its own.")
    try:
        with workplace(given.keep) as directory:
            anyio.run(tour, directory, given.pause, given.keep)
    except Exception as error:
        unexpected = _first(error)
        if unexpected is None:
            raise
        print(f"\nNot as expected: {unexpected}", file=sys.stderr)
        return 1
    return 0


def _first(error: BaseException) -> Unexpected | None:
    """The `Unexpected` that task groups have wrapped, if there is one."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_first, error.exceptions)), None)
    return error if isinstance(error, Unexpected) else None


if __name__ == "__main__":
    sys.exit(main())
