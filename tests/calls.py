"""Tools called as the server calls them, without a client: from JSON arguments to a JSON result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tmuxmcp import manifest, resources, surface
from tmuxmcp.arguments import Parameters
from tmuxmcp.settings import Settings
from tmuxmcp.startup import Found
from tmuxmcp.terminal.panes import Terminal
from tmuxmcp.tmux.ambient import Ambient
from tmuxmcp.tools import Call, registry

MANIFEST = manifest.load(resources.manifest_text())
FOUND = Found(server_state="absent", ambient=Ambient("quiet", server_exists=False))


class Tools:
    """Calls tools by name: ``await tools("send_keys", pane_id="%0", enter=True)``.

    `touched` holds the ids that the last call resolved, as the audit record gets them.
    """

    def __init__(self, terminal: Terminal, settings: Settings | None = None) -> None:
        self.terminal = terminal
        self.settings = settings or Settings(toolsets=manifest.TOOLSETS)
        self.touched: list[str] = []
        self._surface = surface.resolve(MANIFEST, self.settings, server_state="absent", ambient="quiet")

    async def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        self.touched = []
        return await self._perform(tool, arguments, self.terminal.clock.now())

    async def _perform(self, name: str, arguments: Mapping[str, Any], arrived: float) -> dict[str, Any]:
        tool = self._surface.tools[name]
        function = registry({name: MANIFEST[name]})[name]

        async def found() -> Found:
            return FOUND

        async def progress(progress: float, total: float | None = None, message: str | None = None) -> None:
            pass

        async def nested(index: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
            assert name in tool.row.nested
            return await self._perform(name, arguments, arrived)

        call = Call(
            terminal=self.terminal,
            settings=self.settings,
            found=found,
            tool=tool,
            arrived=arrived,
            progress=progress,
            nested=nested,
            touched=self.touched,
        )
        choices = {"operations.tool": tool.row.nested} if "operations.tool" in tool.row.sinks else {}
        decoded = Parameters(function.arguments, choices).decode(dict(arguments))
        result: dict[str, Any] = msgspec.to_builtins(await function.function(call, decoded))
        return result
