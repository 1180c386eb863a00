"""What is measured: tmuxmcp and other tmux servers, and what each is asked for the same work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scripts.bench_scene import SESSION, Scene
from tests.peer import Peer

PATIENCE = 60.0
"""Seconds for one answer; what takes longer is no answer."""

Request = tuple[str, dict[str, Any]]
Follow = Callable[["Server", str], Iterator[tuple[str, str]]]
"""Reads a pane from place to place: what a model gets of each read, and what of it the pane printed."""


class Wrong(Exception):
    """A product cannot do a piece of work, or does it wrong. The message fits into a table."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """A server and how it is asked. A key of `asks` that is missing is something it has no tool for."""

    name: str
    requirement: str = ""
    """What pip installs. Empty: this checkout."""
    command: tuple[str, ...]
    """The program, in the environment's directory of programs, and its arguments."""
    environ: Callable[[Scene], Mapping[str, str]] = lambda scene: {}
    asks: Mapping[str, Callable[..., Request]]
    follow: Follow | None = None
    follow_environ: Mapping[str, str] = field(default_factory=dict)
    """What it has to be started with to follow, where its usual tools cannot."""
    programs: Path = field(default=Path(sys.executable).parent)

    @property
    def python(self) -> str:
        return str(self.programs / "python")

    def start(self, scene: Scene, **environ: str) -> Server:
        """Start it and open the connection."""
        server = Server(self, scene, environ)
        server.open()
        return server


class Answer(NamedTuple):
    seconds: float
    text: str


class Server(Peer):
    """A running product."""

    def __init__(self, product: Product, scene: Scene, environ: Mapping[str, str]) -> None:
        self.product = product
        self.name = product.name
        program, *arguments = product.command
        super().__init__(
            [str(product.programs / program), *arguments],
            env={**scene.environ, **product.environ(scene), **environ},
            stderr=os.open(scene.directory / f"{product.name}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        )

    def ask(self, what: str, *values: Any) -> Answer:
        """Ask for a piece of work. Raises `Wrong` when the product refuses, or does not answer in time."""
        return self.do(self.product.asks[what](*values))

    def do(self, request: Request) -> Answer:
        began = time.perf_counter()
        return Answer(self.collect([self.call(*request)])[0][0] - began, self.texts[0])

    def collect(self, ids: list[int | str]) -> list[tuple[float, str]]:
        """The answers to these requests, in their order: when each came, and its text."""
        came: dict[int | str, tuple[float, str]] = {}
        while len(came) < len(ids):
            try:
                frame = self.receive(PATIENCE)
            except (TimeoutError, EOFError):
                raise Wrong("no answer") from None
            if frame.get("id") in ids:
                came[frame["id"]] = (time.perf_counter(), _text(frame))
        self.texts = [came[id][1] for id in ids]
        return [came[id] for id in ids]


def _text(frame: Any) -> str:
    if "error" in frame:
        raise Wrong(f"error {frame['error'].get('code')}")
    result = frame["result"]
    text = "\n".join(item.get("text", "") for item in result["content"])
    if result.get("isError"):
        raise Wrong("error: " + " ".join(text.split())[:60])
    return text


def _by_cursor(**limits: Any) -> Follow:
    def follow(server: Server, pane: str) -> Iterator[tuple[str, str]]:
        arguments = {"pane_id": pane, **limits}
        while True:
            text = server.do(("capture_since", arguments)).text
            read = json.loads(text)
            yield text, (read["content"] if "content" in read else "\n".join(read["lines"])) + "\n"
            arguments["cursor"] = read["cursor"]

    return follow


def _by_stream(server: Server, pane: str) -> Iterator[tuple[str, str]]:
    stream = json.loads(server.do(("tmux_stream_start", {"session": SESSION})).text)["stream_id"]
    arguments = {"stream_id": stream, "pane": pane, "kinds": ["output"], "timeout": 0.1, "max_events": 5000}
    while True:
        text = server.do(("tmux_stream_read", arguments)).text
        yield text, "".join(event["data"] for event in json.loads(text)["events"])


ALIKE: Mapping[str, Callable[..., Request]] = {
    "list sessions": lambda: ("list_sessions", {}),
    "list windows": lambda: ("list_windows", {}),
    "list panes": lambda: ("list_panes", {}),
    "one pane's row": lambda pane: ("get_pane_info", {"pane_id": pane}),
    "capture": lambda pane: ("capture_pane", {"pane_id": pane}),
    "snapshot": lambda pane: ("snapshot_pane", {"pane_id": pane}),
    "read on from a cursor": lambda pane, cursor: ("capture_since", {"pane_id": pane, **cursor}),
    "wait": lambda pane, text, seconds: (
        "wait_for_text",
        {"pane_id": pane, "patterns": [text], "timeout": seconds},
    ),
}
"""What libtmux-mcp and tmuxmcp are asked for in the same words."""

OURS = Product(
    name="tmuxmcp",
    command=("python", "-m", "tmuxmcp"),
    environ=lambda scene: {
        "TMUXMCP_SOCKET": f"path:{scene.socket}",
        "TMUXMCP_TOOLSETS": "inspect,manage,execute,teardown",
    },
    asks={
        **ALIKE,
        "type": lambda pane, text: ("send_keys", {"pane_id": pane, "text": text}),
        "run": lambda pane, command: (
            "run_shell_command",
            {"pane_id": pane, "command": command, "max_lines": 10_000, "timeout": 5},
        ),
    },
    follow=_by_cursor(max_lines=10_000),
)

NOOP = Product(
    name="the SDK alone",
    command=("python", "-m", "scripts.bench_noop"),
    asks={"noop": lambda: ("noop", {})},
)

PEERS = (
    Product(
        name="libtmux-mcp",
        requirement="libtmux-mcp==0.1.0a22",
        command=("libtmux-mcp",),
        environ=lambda scene: {"LIBTMUX_SOCKET": "default"},
        asks={
            **ALIKE,
            "type": lambda pane, text: (
                "send_keys",
                {"pane_id": pane, "keys": text, "literal": True, "enter": False},
            ),
            "run": lambda pane, command: (
                "run_command",
                {"pane_id": pane, "command": command, "max_lines": 10_000, "timeout": 5},
            ),
        },
        follow=_by_cursor(max_lines=10_000),
    ),
    Product(
        name="tmux-mcp-server",
        requirement="tmux-mcp-server==1.0.0",
        command=("tmux-mcp-server",),
        asks={
            "list sessions": lambda: ("list_sessions", {}),
            "list windows": lambda: ("list_windows", {"all_sessions": True}),
            "list panes": lambda: ("list_panes", {"all_panes": True}),
            "one pane's row": lambda pane: ("get_pane_info", {"target": pane}),
            "capture": lambda pane: ("read_pane", {"target": pane, "lines": 40}),
            "type": lambda pane, text: ("send_keys", {"target": pane, "keys": text}),
            "run": lambda pane, command: (
                "run_command",
                {"target": pane, "command": command, "timeout": 5},
            ),
        },
    ),
    Product(
        name="mcp-tmux",
        requirement="mcp-tmux==0.3.1",
        command=("mcp-tmux",),
        asks={
            "list sessions": lambda: ("tmux_list", {"kind": "session"}),
            "list windows": lambda: ("tmux_list", {"kind": "window"}),
            "list panes": lambda: ("tmux_list_panes", {"session": SESSION}),
            "capture": lambda pane: ("tmux_capture_pane", {"target_pane": pane}),
            "type": lambda pane, text: ("tmux_send_keys", {"target_pane": pane, "text": text}),
            "run": lambda pane, command: (
                "tmux_run",
                {"target_pane": pane, "command": command, "history": 10_000, "timeout": 5},
            ),
            "wait": lambda pane, text, seconds: (
                "tmux_wait_for_text",
                {"target_pane": pane, "pattern": text, "timeout": seconds},
            ),
        },
        follow=_by_stream,
        follow_environ={"MCP_TMUX_TOOLSETS": "core,automation,stream"},
    ),
)


def installed(product: Product, directory: Path) -> Product | None:
    """The product in an environment of its own below `directory`; None where it cannot be installed."""
    place = directory / product.requirement
    programs = place / "bin"
    if not (programs / product.command[0]).exists():
        venv.create(place, clear=True, with_pip=True)
        pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        done = subprocess.run([*pip, product.requirement], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            print(f"{product.name} is left out: {reason}", file=sys.stderr)
            return None
    return Product(**{**vars(product), "programs": programs})
