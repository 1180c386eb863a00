"""What a client is offered: the real tools, listed and called as the server does it, without a transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from itertools import chain, combinations
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from mcp.types import CallToolRequestParams, PaginatedRequestParams

from tests.inventory import ALL, BY_TOOLSET
from tmuxmcp import disclosure, manifest, resources, server, surface
from tmuxmcp.audit import Audit, AuditedRunner
from tmuxmcp.frames import compact
from tmuxmcp.manifest import Manifest
from tmuxmcp.server import Service
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.surface import ServerState
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux import socket
from tmuxmcp.tmux.ambient import Ambient
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.runner import Output, Runner
from tmuxmcp.tools import Function, registry

TOOLSETS = tuple(BY_TOOLSET)
COMBINATIONS = list(chain.from_iterable(combinations(TOOLSETS, size) for size in range(5)))
"""All sixteen."""
EVERYTHING = Settings(toolsets=TOOLSETS)
NO_SERVER = Output(1, b"", "no server running on /s\n")

some_tools = st.lists(st.sampled_from(ALL), unique=True, max_size=8).map(tuple)
settings = st.builds(
    Settings,
    toolsets=st.none() | st.sampled_from(COMBINATIONS).flatmap(st.permutations).map(tuple),
    tools=some_tools,
    exclude_tools=some_tools,
)
"""Any selection of tools."""
server_states = st.sampled_from(("absent", "existing"))


@cache
def rows() -> Manifest:
    """The manifest. Not read before a test asks: it may be one that the loader refuses."""
    return manifest.load(resources.manifest_text())


@cache
def functions() -> Mapping[str, Function]:
    return registry(rows())


class Offer:
    """One configuration of the server, resolved as at startup."""

    def __init__(
        self,
        chosen: Settings = EVERYTHING,
        *,
        server_state: ServerState = "absent",
        ambient: surface.Ambient = "quiet",
        runner: Runner | None = None,
        audit: str = "off",
        replaced: Mapping[str, Function] | None = None,
    ) -> None:
        self.found = Found(server_state=server_state, ambient=Ambient(ambient, server_state == "existing"))
        self.settings = chosen
        self.socket = socket.resolve(str(chosen.socket), {})
        self.surface = surface.resolve(rows(), chosen, server_state=server_state, ambient=ambient)
        asked = AuditedRunner(runner or FakeRunner(default=NO_SERVER))
        self.terminal = Terminal(Client(asked, self.socket, "tmux"))
        self._tools = server.Tools(
            Service(
                terminal=self.terminal,
                settings=chosen,
                functions={**functions(), **(replaced or {})},
                audit=Audit(audit),
                instructions="",
                surface=self.surface,
                advertised=self._advertised,
                found=self._found,
                capabilities=self._capabilities,
            )
        )

    async def _advertised(self) -> surface.Surface:
        return self.surface

    async def _found(self) -> Found:
        return self.found

    async def _capabilities(self) -> Mapping[str, Any]:
        return self.capabilities()

    async def reply(self) -> dict[str, Any]:
        """The answer to tools/list."""
        return await self._tools.list(_CONTEXT, PaginatedRequestParams())

    async def tools(self) -> list[dict[str, Any]]:
        """The tools of tools/list."""
        listed: list[dict[str, Any]] = (await self.reply())["tools"]
        return listed

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to tools/call. Raises `MCPError` for what is not offered."""
        params = CallToolRequestParams(name=name, arguments=None if arguments is None else dict(arguments))
        return await self._tools.call(_CONTEXT, params)

    def record(self) -> dict[str, Any]:
        return disclosure.record(self.settings, self.socket, self.surface, self.found)

    def capabilities(self) -> dict[str, Any]:
        return disclosure.capabilities(self.record(), self.surface, None)


_CONTEXT: Any = SimpleNamespace(session=SimpleNamespace(client_params=None), request_id=1)


def said(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was answered: its result, or ``{code, message, details}``."""
    (content,) = answer["content"]
    found: dict[str, Any] = json.loads(content["text"])
    return found


def size(value: object) -> int:
    """Bytes of a value as the server writes it."""
    return len(compact(value).encode())
