"""Agent programs of the npm registry: how each takes our server into its configuration, and how it is run.

None logs in. Where a program talks to a model it gets a scripted one on the loopback, and what it would send
home or fetch on its own is switched off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Environment = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent program. Its arguments are what follows its name on a command line."""

    name: str
    program: str
    package: str
    add: tuple[str, ...]
    """The arguments that add a server; VARIABLES and COMMAND stand for those of ours."""
    variable: str
    """The option before each variable."""
    listing: tuple[str, ...] = ("mcp", "list")
    connected: str = ""
    """What the listing shows of a server that it has connected to; empty when it does not connect."""
    run: tuple[str, ...] = ()
    """The arguments that start it with a prompt; empty when it cannot be given a model like ours."""
    model: Callable[[str], Environment] = field(default=lambda address: {})
    """The variables that make it talk to a model at an address."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What its configuration file needs for this besides the server."""
    settings_file: str = ""
    quiet: Environment = field(default_factory=dict)
    """The variables that keep it from the network, and from asking questions."""

    def adding(self, variables: Mapping[str, str], command: list[str]) -> list[str]:
        """The arguments that add a server with these variables and this command."""
        options = [word for name, value in variables.items() for word in (self.variable, f"{name}={value}")]
        words: list[str] = []
        for word in self.add:
            words += {"VARIABLES": options, "COMMAND": command}.get(word, [word])
        return words


def _anthropic(address: str) -> Environment:
    # Else Claude Code tells the model only the names of the tools, and gives their schemas when it asks.
    return {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "none", "ENABLE_TOOL_SEARCH": "false"}


def _gemini(address: str) -> Environment:
    return {"GOOGLE_GEMINI_BASE_URL": address, "GEMINI_API_KEY": "none"}


def _openai(address: str) -> Environment:
    return {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"}


def _opencode(address: str) -> Environment:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {"scripted": {}},
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"scripted": provider}})}


def _copilot(address: str) -> Environment:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "scripted",
    }


AGENTS = (
    Agent(
        name="Claude Code",
        program="claude",
        package="@anthropic-ai/claude-code@2.1.332",
        add=("mcp", "add", "tmux", "VARIABLES", "--", "COMMAND"),
        variable="--env",
        connected="Connected",
        run=("-p", "go", "--allowedTools", "mcp__tmux"),
        model=_anthropic,
        quiet={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # With a prompt on the command line it does not wait for servers otherwise.
            "MCP_CONNECTION_NONBLOCKING": "false",
        },
    ),
    Agent(
        name="Codex",
        program="codex",
        package="@openai/codex@0.171.0",
        add=("mcp", "add", "tmux", "VARIABLES", "--", "COMMAND"),
        variable="--env",
    ),
    Agent(
        name="Gemini CLI",
        program="gemini",
        package="@google/gemini-cli@0.61.0",
        add=("mcp", "add", "-s", "user", "tmux", "VARIABLES", "COMMAND"),
        variable="-e",
        connected="Connected",
        run=("-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"),
        model=_gemini,
        settings={
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
        },
        settings_file=".gemini/settings.json",
        # In a folder that is not trusted it starts no server.
        quiet={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    Agent(
        name="Qwen Code",
        program="qwen",
        package="@qwen-code/qwen-code@0.24.4",
        add=("mcp", "add", "tmux", "VARIABLES", "COMMAND"),
        variable="-e",
        connected="Connected",
        run=("-p", "go", "--auth-type", "openai", "-m", "scripted", "--approval-mode", "yolo"),
        model=_openai,
        # The first is as with Claude Code.
        settings={
            "tools": {"toolSearch": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
        },
        settings_file=".qwen/settings.json",
        # With a prompt on the command line it does not wait for servers otherwise.
        quiet={"QWEN_CODE_LEGACY_MCP_BLOCKING": "1"},
    ),
    Agent(
        name="opencode",
        program="opencode",
        package="opencode-ai@1.18.33",
        add=("mcp", "add", "tmux", "VARIABLES", "--", "COMMAND"),
        variable="--env",
        connected="connected",
        run=("run", "-m", "scripted/scripted", "go"),
        model=_opencode,
        quiet={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    Agent(
        name="Copilot CLI",
        program="copilot",
        package="@github/copilot@1.0.102",
        add=("mcp", "add", "tmux", "VARIABLES", "--", "COMMAND"),
        variable="--env",
        run=("-p", "go", "--allow-all-tools"),
        model=_copilot,
        quiet={"COPILOT_OFFLINE": "true"},
    ),
)
