"""Call every tool once, and keep what it answered as the examples of the documentation.

``python -m scripts.examples`` records docs/tools/examples.json; with ``--check`` the exit status is 1 when a
tool answers in another shape than the one that is recorded: other fields, or other types. Values differ
from run to run, so they are not compared.

The calls are one story on a tmux server of its own, in a home directory of its own. What names this
machine is replaced: its host, its temporary directory, its user.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from tmuxmcp.manifest import TOOLSETS

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "tools" / "examples.json"
SHOWN_OF_TOKENS = 12
"""Characters of a cursor or run handle that are kept: the rest is noise to a reader."""

_FILES = {
    ".bash_profile": "PS1='$ '\n",
    "shop/app.py": "print('shop')\n",
    "shop/notes.txt": "open the shop\n",
    "shop/serve": (
        "echo 'Loading 12 routes'\nsleep 0.3\necho 'Listening on port 8000'\n"
        "sleep 0.7\necho 'GET / 200'\necho 'GET /cart 200'\nexec sleep 600\n"
    ),
}


class Caller(Protocol):
    """What calls a tool of a server: a client."""

    async def call_tool(self, name: str, arguments: dict[str, Any], /) -> CallToolResult: ...


Connect = Callable[[StdioServerParameters], AbstractAsyncContextManager[Caller]]
"""Starts a server and connects a client to it."""


@asynccontextmanager
async def connected(server: StdioServerParameters, mode: Any = "legacy") -> AsyncIterator[Caller]:
    """The SDK's client; its `mode` says which protocol it speaks."""
    with open(os.devnull, "w") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode) as client:
            yield client


def record(tmux: str = "tmux", connect: Connect = connected) -> dict[str, Any]:
    """Call the tools, and return what is to be kept. Raises `RuntimeError` when one of them fails."""
    with _workplace(tmux) as place:
        story = Story(place, connect)
        anyio.run(story.tell)
    version = subprocess.run([tmux, "-V"], check=True, capture_output=True, text=True).stdout.strip()
    return {"tmux": version, "examples": story.examples}


class Workplace(NamedTuple):
    """A directory with a home in it, and a tmux server of its own."""

    base: Path
    tmux: str

    @property
    def home(self) -> Path:
        return self.base / "home" / "dev"

    @property
    def sockets(self) -> Path:
        return self.base / f"tmux-{os.getuid()}"

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a tmux command."""
        command = [self.tmux, "-N", "-S", str(self.sockets / "tmuxmcp"), *words]
        return subprocess.run(command, capture_output=True, check=False)


@contextmanager
def _workplace(tmux: str) -> Iterator[Workplace]:
    """A new one, whose tmux server is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="tmuxmcp-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        place = Workplace(Path(directory).resolve(), tmux)
        for name, text in _FILES.items():
            path = place.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        try:
            yield place
        finally:
            place.run("kill-server")


class Story:
    """The calls, one after the other."""

    def __init__(self, place: Workplace, connect: Connect) -> None:
        self.examples: dict[str, dict[str, Any]] = {}
        self._place = place
        self._connect = connect

    async def tell(self) -> None:
        """Call every tool. Raises `RuntimeError` when one of them fails."""
        environment = {
            "HOME": str(self._place.home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "SHELL": shutil.which("bash") or "/bin/bash",
            "TMUX_TMPDIR": str(self._place.base),
            "EDITOR": "vim",
        }
        server = StdioServerParameters(
            command=sys.executable,
            args=[
                *("-m", "tmuxmcp", "--toolsets", ",".join(TOOLSETS), "--audit", "off"),
                *("--tmux-bin", self._place.tmux),
            ],
            env=environment,
            cwd=str(self._place.home / "shop"),
        )
        async with self._connect(server) as client:
            self._client = client
            made, window = await self._start()
            await self._look(made, window)
            await self._arrange(made, window)
            await self._drive(made)
            await self._end(made, window)

    async def _call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool; the first call of each is its example."""
        result = await self._do(tool, **arguments)
        example = {"arguments": self._cleaned(arguments), "result": self._cleaned(result)}
        self.examples.setdefault(tool, example)
        return result

    async def _do(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, without keeping it as an example."""
        answer = await self._client.call_tool(tool, arguments)
        if answer.is_error or answer.structured_content is None:
            text = "".join(each.text for each in answer.content if isinstance(each, TextContent))
            raise RuntimeError(f"{tool} {arguments}: {text}")
        result: dict[str, Any] = answer.structured_content
        return result

    def _cleaned(self, value: Any, name: str = "") -> Any:
        """A value without the names of this machine, and with short tokens."""
        if isinstance(value, Mapping):
            return {key: self._cleaned(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._cleaned(item, name) for item in value]
        if not isinstance(value, str):
            return value
        if name in ("cursor", "run"):
            return value[:SHOWN_OF_TOKENS] + "…"
        for found, shown in (
            (str(self._place.sockets), "/tmp/tmux-1000"),
            (str(self._place.base), ""),
            (os.uname().nodename, "devbox"),
        ):
            value = value.replace(found, shown)
        return re.sub(rf"\b{re.escape(getpass.getuser())}\b", "dev", value)

    async def _start(self) -> tuple[dict[str, Any], dict[str, Any]]:
        call = self._call
        made = await call("create_session", name="shop", start_directory="~/shop")
        await call("run_shell_command", pane_id=made["pane_id"], command="ls; test -f README.md")
        window = await call("create_window", session="shop", name="server", start_directory="~/shop")
        pane = window["pane_id"]
        await self._do("wait_for_text", pane_id=pane, cursor=window["cursor"], patterns=["$"])
        typed = await call("send_keys", pane_id=pane, text="sh serve", enter=True)
        waiting = {"patterns": ["Listening on"], "stop": ["Address already in use"]}
        ready = await call("wait_for_text", pane_id=pane, cursor=typed["cursor"], **waiting)
        await self._do("wait_for_text", pane_id=pane, cursor=ready["cursor"], patterns=["/cart"])
        await call("capture_since", pane_id=pane, cursor=ready["cursor"])
        return made, window

    async def _look(self, made: Mapping[str, Any], window: Mapping[str, Any]) -> None:
        call, session, pane = self._call, made["session_id"], made["pane_id"]
        await call("capture_pane", pane_id=window["pane_id"])
        await call("snapshot_pane", pane_id=window["pane_id"])
        await call("search_panes", pattern="listening", context_lines=1)
        await call("get_server_info")
        await call("list_sessions")
        await call("list_windows", session="shop")
        await call("list_panes", window_id=window["window_id"])
        await call("get_session_info", session="shop")
        await call("get_window_info", window_id=window["window_id"])
        await call("get_pane_info", pane_id=window["pane_id"])
        await call("get_tmux_variables", names=["pane_width", "history_size"], pane_id=pane)
        await call("show_option", name="history-limit", scope="session", session=session)
        await call("show_environment", names=["EDITOR", "LANG"])
        self._place.run("set-hook", "-g", "window-renamed", "display-message renamed")
        await call("show_hooks")
        operations = [
            {"tool": "get_tmux_variables", "arguments": {"names": ["pane_pid"], "pane_id": pane}},
            {"tool": "capture_pane", "arguments": {"pane_id": window["pane_id"], "start_line": 2}},
            {"tool": "get_session_info", "arguments": {"session": "shpo"}},
        ]
        await call("call_read_tools_batch", operations=operations)

    async def _arrange(self, made: Mapping[str, Any], window: Mapping[str, Any]) -> None:
        call, pane, editor = self._call, made["pane_id"], made["window_id"]
        beside = (await call("split_window", pane_id=pane, direction="right", percent=40))["pane_id"]
        await call("find_pane_by_position", window_id=editor, corner="bottom-right")
        await call("rename_window", window_id=editor, new_name="editor")
        await call("set_pane_title", pane_id=beside, title="tests")
        await call("select_pane", pane_id=pane)
        await call("select_window", window_id=window["window_id"])
        await call("select_layout", window_id=editor, layout="even-vertical")
        await call("resize_window", window_id=editor, width=120, height=40)
        await call("resize_pane", pane_id=beside, height=10)
        await call("swap_pane", pane_id=pane, with_pane_id=beside)
        await call("move_window", window_id=window["window_id"], index=7)
        await self._do("run_shell_command", pane_id=pane, command="seq 200", max_lines=1)
        await call("enter_copy_mode", pane_id=pane, scroll_up=20)
        await call("exit_copy_mode", pane_id=pane)
        await call("signal_channel", channel="build-done")
        await call("wait_for_channel", channel="build-done", timeout=5)
        await call("set_mouse_enabled", session="shop", enabled=True)
        await call("set_history_limit", session="shop", lines=100_000)
        await call("rename_session", session="shop", new_name="bookshop")

    async def _drive(self, made: Mapping[str, Any]) -> None:
        call, window = self._call, made["window_id"]
        pane = (await self._do("split_window", pane_id=made["pane_id"], direction="right"))["pane_id"]
        await self._do("run_shell_command", pane_id=pane, command="true")
        operations = [
            {"pane_id": pane, "text": "python3 -q", "enter": True},
            {"pane_id": pane, "text": "6 * 7", "enter": True, "delay_ms": 1000},
            {"pane_id": pane, "keys": ["C-d"]},
        ]
        await call("send_keys_batch", operations=operations)
        await self._do("wait_for_text", pane_id=pane, quiet_for=0.5)
        await call("paste_text", pane_id=pane, text="echo one\necho two\n")
        await call("set_synchronize_panes", window_id=window, enabled=True)
        await self._do("set_synchronize_panes", window_id=window, enabled=False)
        await call("respawn_pane", pane_id=pane, command="top", kill=True)

    async def _end(self, made: Mapping[str, Any], window: Mapping[str, Any]) -> None:
        await self._call("clear_pane_scrollback", pane_id=made["pane_id"])
        await self._call("kill_pane", pane_id=made["pane_id"])
        await self._call("kill_window", window_id=window["window_id"])
        await self._call("kill_session", session="bookshop")


def shape(value: Any) -> Any:
    """What is compared of a value: the fields and the types, of a list the shapes of its items."""
    if isinstance(value, Mapping):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(item), sort_keys=True) for item in value})
    return type(value).__name__


def stored() -> dict[str, Any]:
    """What was recorded."""
    document: dict[str, Any] = json.loads(FILE.read_text())
    return document


def differences(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    """What a new recording shows to be stale in an old one."""
    examples, before = new["examples"], old["examples"]
    for tool in sorted(before.keys() | examples.keys()):
        if shape(before.get(tool)) != shape(examples.get(tool)):
            now, then = (json.dumps(shape(each.get(tool))) for each in (examples, before))
            yield f"{tool} is {now} and was {then}"


def main(arguments: list[str]) -> int:
    new = record()
    if "--check" not in arguments:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n")
        return 0
    stale = list(differences(new, stored()))
    for each in stale:
        print(f"{FILE.relative_to(ROOT)} is out of date: {each}. Run python -m scripts.examples")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
