"""Run the whole corpus of shell commands through the server, as a client would, and compare each result.

For every shell one line with the number of commands that were exact; before it each one that was wrong, with
how it differs from what the same shell does outside of tmux. The exit status is 1 when any was wrong.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

from tests.conftest import SHELLS, TMUX
from tests.corpus import generate
from tests.reference import Reference, Result, Terminal
from tests.render import keeps_tabs
from tests.trial import trial
from tmuxmcp import limits

# The history-limit of the packaged configuration is 50,000 lines; tmux drops a tenth of it at once.
KEPT_LINES = 44_000


class Server:
    """A pane of a server that was started for one shell; see `tests.trial.Subject`."""

    def __init__(self, client: Client, terminal: Terminal) -> None:
        self._client = client
        self._terminal = terminal
        self._pane_id = ""

    async def renew(self) -> None:
        made = await self._call(
            "create_session",
            start_directory=str(self._terminal.directory),
            width=self._terminal.width,
            height=self._terminal.height,
        )
        self._pane_id = made["pane_id"]

    async def run(self, command: str, timeout: float) -> Result:
        try:
            told = await self._call(
                "run_shell_command",
                pane_id=self._pane_id,
                command=command,
                timeout=timeout,
                max_lines=limits.CAPTURE_LINES_MAX,
                max_bytes=limits.CONTENT_BYTES_MAX,
            )
        except Refused as error:
            return Result(f"refused: {error}", None, "")
        return Result(told["outcome"], told.get("exit_status"), told["output"], told["truncated"])

    async def _call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            raise Refused(" ".join(part.text for part in result.content if isinstance(part, TextContent)))
        content: dict[str, Any] = result.structured_content
        return content


class Refused(Exception):
    """A tool answered with an error."""


@asynccontextmanager
async def serving(shell: str, size: tuple[int, int]) -> AsyncIterator[tuple[Server, Reference]]:
    """A server on a private socket whose panes run `shell` in an empty home."""
    # Not where TMPDIR says: a socket path holds 103 bytes.
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp") as temporary:
        root = Path(temporary).resolve()
        version = subprocess.run([TMUX, "-V"], check=True, capture_output=True, text=True).stdout
        terminal = Terminal.prepare(shell, root, *size, tabs=keeps_tabs(version))
        socket = root / "s"
        # The pane's programs get what the server is started with.
        environment = {
            **terminal.environment,
            "TMUXMCP_SOCKET": f"path:{socket}",
            "TMUXMCP_TOOLSETS": "execute",
            "TMUXMCP_AUDIT": "off",
            "TMUXMCP_TMUX_BIN": TMUX,
        }
        program = StdioServerParameters(command=sys.executable, args=["-m", "tmuxmcp"], env=environment)
        with (root / "stderr").open("w") as log:
            async with Client(stdio_client(program, errlog=log), mode="legacy") as client:
                server = Server(client, terminal)
                try:
                    await server.renew()
                    yield server, Reference(terminal)
                finally:
                    subprocess.run(
                        [TMUX, "-N", "-S", socket, "kill-server"], check=False, stderr=subprocess.DEVNULL
                    )


async def run(shell: str, path: str, options: argparse.Namespace) -> bool:
    """Run one shell's cases; say whether all were exact."""
    width, height = options.size
    cases = generate(shell, seed=options.seed, width=width, height=height)
    if options.only:
        cases = [case for case in cases if case.name.startswith(tuple(options.only))]
    wrong = 0
    began = time.monotonic()
    async with serving(path, options.size) as (server, reference):
        async for verdict in trial(server, cases, reference, kept_lines=KEPT_LINES):
            if verdict.wrong is not None:
                wrong += 1
                print(
                    f"{shell} {verdict.case.name} {verdict.case.command[:300]!r}\n{verdict.wrong}\n",
                    flush=True,
                )
    seconds = time.monotonic() - began
    print(
        f"{shell}: {len(cases)} commands, {len(cases) - wrong} exact, {wrong} wrong ({seconds:.0f} s)",
        flush=True,
    )
    return wrong == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shells", nargs="*", metavar="SHELL", help=f"default: {' '.join(SHELLS)}")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other random commands")
    parser.add_argument(
        "--size", type=_size, default=(80, 24), metavar="WxH", help="of the pane, default 80x24"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="cases whose name starts so, as in sizes/2"
    )
    options = parser.parse_args()
    exact = True
    for shell in options.shells or SHELLS:
        path = shutil.which(shell)
        if path is None:
            print(f"{shell}: not installed")
            exact = False
            continue
        exact &= anyio.run(run, shell, path, options)
    return 0 if exact else 1


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


if __name__ == "__main__":
    sys.exit(main())
