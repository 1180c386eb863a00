"""A client on any release of the MCP SDK: `make test-clients` runs it with one for each protocol version.

It talks to the server that its arguments name, and prints what it met as one JSON object. What it imports
is in every release since 1.0. Results are read as they were on the wire: attributes have other names in 2.x.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(*argv: str) -> None:
    server = StdioServerParameters(command=argv[0], args=list(argv[1:]))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        opened = wire(await session.initialize())
        tools = wire(await session.list_tools())["tools"]
        resources = wire(await session.list_resources())["resources"]
        made = answer(wire(await session.call_tool("create_session", {"name": "sdk"})))
        command_line = {"pane_id": made["pane_id"], "command": "echo $((6 * 7)); false"}
        run = answer(wire(await session.call_tool("run_shell_command", command_line)))
        refused = wire(await session.call_tool("capture_pane", {"pane_id": "%999999"}))
        ended = answer(wire(await session.call_tool("kill_session", {"session": "sdk"})))
    met = {
        "protocol": opened["protocolVersion"],
        "server": opened["serverInfo"]["name"],
        "tools": len(tools),
        "resources": [resource["uri"] for resource in resources],
        "output": run["output"],
        "exit_status": run["exit_status"],
        "refusal": [refused["isError"], answer(refused)["code"]],
        "ended": ended["session_ids"] == [made["session_id"]],
    }
    print(json.dumps(met))


def wire(result: Any) -> dict[str, Any]:
    """A result as it was on the wire."""
    document: dict[str, Any] = result.model_dump(by_alias=True, mode="json")
    return document


def answer(result: dict[str, Any]) -> dict[str, Any]:
    """What a tool said in the text of its result: clients of the first versions know nothing else."""
    document: dict[str, Any] = json.loads(result["content"][0]["text"])
    return document


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
