"""Connect real clients to the server, each on a tmux server of its own, and print a table of what they met.

* the SDK: all tools in both eras, and releases that spoke the older protocol versions
* the inspector: its strict list, all tools and the resource in both eras
* agent programs: their configuration commands, and a run in which a scripted model on the loopback has them
  call tools. None needs an account.

``make test-clients`` runs them all; ``make test-clients ARGS="sdk inspector"`` those that are named. A client
that cannot be had here is skipped with a line that says why. The exit status is 1 when one that ran failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult

from scripts import app_server, examples, scripted_model, toolchain
from scripts.agents import AGENTS, Agent
from scripts.scripted_model import Step
from scripts.toolchain import Unavailable
from tests.conftest import TMUX
from tests.session import Place, place
from tmuxmcp import manifest, resources

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SDKS = (
    ("2024-11-05", "mcp==1.0.0"),
    ("2025-03-26", "mcp==1.9.4", "pydantic==2.11.10"),
    ("2025-06-18", "mcp==1.22.0"),
    ("2025-11-25", "mcp==1.30.0"),
)
"""Each protocol version of the handshake, and an SDK whose newest it was."""

SERVER = [sys.executable, "-m", "tmuxmcp"]
TOOLS = len(manifest.load(resources.manifest_text()))
RESOURCE = "tmux://capabilities"
SDK_CLIENT = str(Path(__file__).with_name("sdk_client.py"))

Json = dict[str, Any]


class Check(NamedTuple):
    """Something that a client does. The function returns what it met, or raises."""

    client: str
    what: str
    perform: Callable[[], str]


def expect(met: object, wanted: object, what: str) -> None:
    if met != wanted:
        raise AssertionError(f"{what}: {met!r} instead of {wanted!r}")


def sdk() -> Iterator[Check]:
    """The SDK's own client, now and then."""
    client = f"mcp {metadata.version('mcp')}"
    for mode in ("legacy", "auto"):
        connect = partial(examples.connected, mode=mode)
        yield Check(client, f"mode {mode!r}: all tools", partial(_all_tools, connect))
    for protocol, *requirements in SDKS:
        yield Check(
            requirements[0].replace("==", " "), f"protocol {protocol}", partial(_sdk, protocol, requirements)
        )


def _all_tools(connect: examples.Connect) -> str:
    called = examples.record(TMUX, connect)["examples"]
    expect(len(called), TOOLS, "tools called")
    return f"{len(called)} tools called"


def _sdk(protocol: str, requirements: Sequence[str]) -> str:
    python = toolchain.sdk(*requirements)
    with place() as made:
        variables = [f"{name}={value}" for name, value in made.environment().items()]
        argv = [str(python), SDK_CLIENT, "env", "-i", *variables, *SERVER]
        done = toolchain.run(argv, cwd=made.work)
    if done.status != 0:
        raise AssertionError(done.last)
    wanted = {
        "protocol": protocol,
        "server": "tmuxmcp",
        "tools": TOOLS,
        "resources": [RESOURCE],
        "output": "42",
        "exit_status": 1,
        "refusal": [True, "not_found"],
        "ended": True,
    }
    expect(json.loads(done.output), wanted, "what the client met")
    return f"{TOOLS} tools listed, 4 calls"


class Inspector:
    """The inspector's command line. Every call is a new process, which starts a server of its own."""

    def __init__(self, era: str, server: StdioServerParameters) -> None:
        node = toolchain.node()
        self._program = toolchain.package(INSPECTOR, node) / ".bin" / "mcp-inspector"
        variables = server.env or {}
        self._server = server
        self._environment = {**variables, "PATH": f"{node}:{variables['PATH']}"}
        options = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        self._options = ["--cli", "-q", "--format", "json", "--protocol-era", era, *options]

    def ask(self, method: str, *options: str) -> Json:
        """The result of a request."""
        server = [self._server.command, *self._server.args]
        argv = [str(self._program), *self._options, *server, "--method", method, *options]
        where = Path(self._server.cwd) if self._server.cwd else None
        done = toolchain.run(argv, env=self._environment, cwd=where)
        if done.status != 0:
            raise RuntimeError(f"{method} {' '.join(options)}: status {done.status}: {done.last}")
        result: Json = json.loads(done.output)["result"]
        return result

    async def call_tool(self, name: str, arguments: Json, /) -> CallToolResult:
        options = ("--tool-name", name, "--tool-args-json", json.dumps(arguments))
        return CallToolResult.model_validate(self.ask("tools/call", *options))


def inspector() -> Iterator[Check]:
    """The official inspector."""
    client = INSPECTOR.rpartition("/")[2].replace("@", " ")
    for era in ("legacy", "modern"):
        yield Check(client, f"{era}: strict list, resources", partial(_inspected, era))
        yield Check(client, f"{era}: all tools", partial(_all_tools, partial(_inspecting, era)))


def _inspected(era: str) -> str:
    with place() as made:
        command, *arguments = SERVER
        server = StdioServerParameters(
            command=command, args=arguments, env=made.environment(), cwd=str(made.work)
        )
        inspector = Inspector(era, server)
        expect(len(inspector.ask("tools/list", "--strict")["tools"]), TOOLS, "tools listed")
        listed = inspector.ask("resources/list")["resources"]
        expect([resource["uri"] for resource in listed], [RESOURCE], "resources")
        (content,) = inspector.ask("resources/read", "--uri", RESOURCE)["contents"]
        expect(json.loads(content["text"])["tool_count"], TOOLS, "the resource's count of tools")
    return f"{TOOLS} tools listed, no complaint"


@asynccontextmanager
async def _inspecting(era: str, server: StdioServerParameters) -> AsyncIterator[Inspector]:
    yield Inspector(era, server)


def agents() -> Iterator[Check]:
    """Agent programs."""
    for agent in AGENTS:
        client = f"{agent.name} {agent.package.rpartition('@')[2]}"
        yield Check(client, "add and list", partial(_at_home, agent, _configured))
        if agent.run:
            yield Check(client, "a run that calls tools", partial(_at_home, agent, _driven))
        if agent.program == "codex":
            yield Check(client, "its app server calls tools", partial(_at_home, agent, _app_server))


class Home(NamedTuple):
    """An agent program in a home directory of its own, with our server in its configuration."""

    agent: Agent
    program: str
    place: Place
    environment: dict[str, str]

    def run(self, *arguments: str, **environment: str) -> toolchain.Done:
        """Run the program. Raises when it fails."""
        argv = [self.program, *arguments]
        done = toolchain.run(argv, env=self.environment | environment, cwd=self.place.work)
        if done.status != 0:
            raise AssertionError(f"{self.agent.program} {arguments[0]}: status {done.status}: {done.last}")
        return done


def _at_home(agent: Agent, perform: Callable[[Home], str]) -> str:
    node = toolchain.node()
    program = toolchain.package(agent.package, node) / ".bin" / agent.program
    with place() as made:
        everything = made.environment()
        ours = {name: value for name, value in everything.items() if name.startswith("TMUXMCP_")}
        environment = {name: value for name, value in everything.items() if name not in ours}
        environment |= {"PATH": f"{node}:{everything['PATH']}", "TERM": "dumb", "NO_COLOR": "1", "CI": "1"}
        home = Home(agent, str(program), made, environment | agent.quiet)
        if agent.settings_file:
            file = made.home / agent.settings_file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(agent.settings))
        home.run(*agent.adding(ours, SERVER))
        return perform(home)


def _configured(home: Home) -> str:
    listed = home.run(*home.agent.listing)
    shown = (listed.output + listed.errors).strip()
    if "tmux" not in shown or home.agent.connected not in shown:
        raise AssertionError(f"it lists {shown!r}")
    return "connected" if home.agent.connected else "configured: this command does not connect"


def _answer(result: str) -> Json:
    """What a tool said, in whatever the agent puts around it."""
    answer: Json
    answer, _ = json.JSONDecoder().raw_decode(result, result.index("{"))
    return answer


_SCRIPT = (
    Step("create_session", lambda results: {"name": "agent"}),
    Step(
        "run_shell_command",
        lambda results: {"pane_id": _answer(results[0])["pane_id"], "command": "echo $((6 * 7)); false"},
    ),
    Step("kill_session", lambda results: {"session": "agent"}),
)


def _driven(home: Home) -> str:
    with scripted_model.serving(_SCRIPT) as model:
        home.run(*home.agent.run, **home.agent.model(model.address))
    expect(model.problems, [], "problems")
    expect(len([name for name in model.tools if "tmux" in name]), TOOLS, "tools offered to the model")
    expect(len(model.results), len(_SCRIPT), "results given to the model")
    ran = _answer(model.results[1])
    expect((ran["output"], ran["exit_status"]), ("42", 1), "what the command printed")
    return f"{TOOLS} tools offered, {len(_SCRIPT)} called"


def _app_server(home: Home) -> str:
    with app_server.session(home.program, home.environment, home.place.work) as codex:
        # A call waits for the server to be ready; the list of tools does not.
        made = codex.call("tmux", "create_session", {"name": "agent"})
        expect(len(codex.tools("tmux")), TOOLS, "tools")
        command = {"pane_id": made["pane_id"], "command": "echo $((6 * 7)); false"}
        ran = codex.call("tmux", "run_shell_command", command)
        expect((ran["output"], ran["exit_status"]), ("42", 1), "what the command printed")
        expect(codex.read("tmux", RESOURCE)["tool_count"], TOOLS, "the resource's count of tools")
        codex.call("tmux", "kill_session", {"session": "agent"})
    return f"{TOOLS} tools listed, 3 called, the resource read"


PARTS = {"sdk": sdk, "inspector": inspector, "agents": agents}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--only", metavar="NAME", default="", help="clients whose name contains this")
    options = parser.parse_args()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    print("| client | what | result | time |\n| --- | --- | --- | --- |", flush=True)
    for part in options.parts or PARTS:
        for check in PARTS[part]():
            if options.only.lower() not in check.client.lower():
                continue
            begun = time.monotonic()
            try:
                outcome, told = "passed", check.perform()
            except Unavailable as reason:
                outcome, told = "skipped", f"skipped: {reason}"
            except Exception as error:  # noqa: BLE001  (whatever a client does is a line of the table)
                outcome, told = "failed", f"failed: {type(error).__name__}: {error}"
            counts[outcome] += 1
            seconds = time.monotonic() - begun
            print(f"| {check.client} | {check.what} | {told} | {seconds:.0f} s |", flush=True)
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
