"""Arguments made from the schemas that a server lists: of the schema, or against it in one place."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmuxmcp import manifest, resources

ROWS = manifest.load(resources.manifest_text())
TYPED = frozenset({"pane-input", "shell-command", "process-argv"})
"""What reaches these is meant to be run or typed, so only what a shell does not run may stand there."""
COMMANDS = (
    "true",
    "false",
    "echo hi",
    "seq 500",
    "printf 'a\\tb\\n\\033[31mred\\033[m'",
    "sleep 0.3",
    "cd /tmp",
)
PROGRAMS = ("cat", "sleep 60", "exec bash", "printf x; exec cat", "true")
WORDS = ("x", "main", "a b", "-t", "-", "--", "", " ", "é漢字🙂", "e\u0301\u200d", "\u202eabc", "x" * 300)
PATTERNS = ("a", "hi", r"\w+", "(", "[", "(?=x)", "a{1000}", "^$", ".*", "(a|b)*c", r"\pL{100}", "$", "#")
KEYS = ("Enter", "C-c", "Up", "F5", "M-x", "Escape", "q", "BSpace", "C-z", "NoSuchKey", ";", "'", '"', "\\")
NAMES = ("pid", "version", "host", "session_name", "pane_title", "pane_current_path", "no_such", "FOO")
OPTIONS = ("mouse", "status-left", "history-limit", "default-command", "@x", "mous", "update-environment[1]")
DIRECTORIES = ("/tmp", "~", "/no/such", "relative", "/etc/passwd", "/", "~nobody-at-all/x")
HOOKS = ("after-new-window", "pane-died", "window-renamed", "no-such-hook")


@dataclass
class Known:
    """What calls have answered, and later ones can name."""

    sessions: list[str] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)
    panes: list[str] = field(default_factory=list)
    cursors: list[tuple[str, str]] = field(default_factory=list)
    """With the pane that each belongs to."""
    runs: list[str] = field(default_factory=list)

    def learn(self, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep the ids and tokens of a call's result."""
        for name, kept in self._by_name():
            value = result.get(name)
            if isinstance(value, str) and value not in kept:
                kept.append(value)
                del kept[:-16]
        if isinstance(cursor := result.get("cursor"), str):
            self.cursors.append((str(result.get("pane_id", arguments.get("pane_id"))), cursor))
            del self.cursors[:-32]

    def forget(self, result: Mapping[str, Any]) -> None:
        """Drop the ids that a result says are gone."""
        for name, kept in self._by_name():
            for value in result.get(f"{name}s", ()):
                if value in kept:
                    kept.remove(value)

    def _by_name(self) -> tuple[tuple[str, list[str]], ...]:
        return (
            ("session_id", self.sessions),
            ("window_id", self.windows),
            ("pane_id", self.panes),
            ("run", self.runs),
        )


class Made(NamedTuple):
    """A call, and whether its arguments are of the tool's schema."""

    tool: str
    arguments: dict[str, Any]
    valid: bool


class Maker:
    """Makes calls of the tools that are listed. `canary` is a file that nothing may ever make."""

    def __init__(self, tools: list[dict[str, Any]], known: Known, choice: random.Random, canary: str) -> None:
        self._schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
        self._known = known
        self._choice = choice
        touch = f"touch {canary}"
        self._formats = (
            f"#({touch})",
            f"x#({touch})",
            f"#{{l:#({touch})}}",
            f"#{{E:#({touch})}}",
            f"#{{?1,#({touch}),}}",
            "#{pane_id}",
            "#[fg=red]",
            "##",
            "%H:%M",
            "#{S:#{W:#{P:x}}}",
        )
        self._tmux = (
            f"; run-shell '{touch}'",
            f"\\; run-shell '{touch}'",
            f"' ; run-shell '{touch}",
            f'" ; run-shell "{touch}',
            f"}} ; run-shell '{touch}' {{",
            f"x\nrun-shell '{touch}'",
            ";",
            "x;",
            "x\\;",
            "=main",
            "main:1.0",
            "{last}",
            "@99",
            "%99",
            "$99",
            "~",
            "!",
            "+1",
        )
        self._shell = (
            f"$({touch})",
            f"`{touch}`",
            f"; {touch}",
            f"'; {touch}; '",
            f'"; {touch}; "',
            f"| {touch}",
            f"x\n{touch}\n",
            f"$'{touch}'",
        )
        self._control = ("\x1b]0;t\x07", "\x1b[2J", "\r", "\t", "a\nb", "\x7f", "\x00", "\ud800", "\x9b5n")

    def call(self) -> Made:
        """Make one call, of any tool; one in five is against its schema."""
        tool = self._choice.choice(sorted(self._schemas))
        if tool.startswith("kill_") and len(self._known.panes) < 6:
            tool = "create_session"
        if tool in ("create_session", "create_window", "split_window") and len(self._known.panes) > 14:
            tool = "kill_session"
        schema = self._schemas[tool]
        arguments = self._object(tool, schema, "")
        if self._choice.random() < 0.2:
            places = list(_places(arguments, schema))
            if places and self._break(self._choice.choice(places)):
                return Made(tool, arguments, valid=False)
        return Made(tool, arguments, valid=True)

    def _object(self, tool: str, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        required = schema.get("required", ())
        made = {}
        for name, inner in schema.get("properties", {}).items():
            if name in required or self._choice.random() < 0.4:
                made[name] = self._value(tool, inner, f"{path}.{name}".removeprefix("."))
        # A token is good for one pane only.
        fitting = [token for pane, token in self._known.cursors if pane == made.get("pane_id")]
        if "cursor" in made and fitting:
            made["cursor"] = self._choice.choice(fitting)
        if tool == "call_read_tools_batch" and path == "operations":
            inner = self._schemas.get(made["tool"])
            made["arguments"] = self._object(made["tool"], inner, "") if inner else {}
        return made

    def _value(self, tool: str, schema: Mapping[str, Any], path: str) -> Any:
        choice = self._choice
        if "enum" in schema:
            return choice.choice(schema["enum"])
        match schema["type"]:
            case "boolean":
                return choice.random() < 0.5
            case "integer":
                low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
                near = choice.randint(max(low, -50), min(high, 120))
                # A screen of 10,000 by 10,000 cells keeps tmux busy for seconds.
                return near if choice.random() < 0.9 or high == 10_000 else choice.choice((low, high))
            case "number":
                return choice.choice((0.01, 0.2, 1, 1.5, schema.get("maximum", 2)))
            case "array":
                most = min(schema.get("maxItems", 4), 4)
                return [
                    self._value(tool, schema["items"], path)
                    for _ in range(choice.randint(schema.get("minItems", 0), most))
                ]
            case "object":
                return self._object(tool, schema, path) if "properties" in schema else {}
        return self._text(tool, schema, path)

    def _text(self, tool: str, schema: Mapping[str, Any], path: str) -> str:
        choice, known, name = self._choice, self._known, path.rpartition(".")[2]
        ids = {"pane_id": known.panes, "with_pane_id": known.panes, "window_id": known.windows}
        if name in ids:
            prefix = "@" if name == "window_id" else "%"
            return choice.choice([*ids[name], *ids[name], f"{prefix}9{choice.randrange(1000)}"])
        likely = {
            "session": known.sessions,
            "cursor": [token for _, token in known.cursors],
            "run": known.runs,
            "patterns": PATTERNS,
            "stop": PATTERNS,
            "pattern": PATTERNS,
            "keys": KEYS,
            "names": NAMES,
            "start_directory": DIRECTORIES,
            "channel": ("c1", "c2"),
            "command": PROGRAMS if tool == "respawn_pane" else COMMANDS,
        }.get(name, OPTIONS if tool == "show_option" else HOOKS if tool == "show_hooks" else WORDS)
        if likely and choice.random() < 0.6:
            text = choice.choice(likely)
        else:
            sources = [WORDS, self._formats, self._tmux, self._control]
            if ROWS[tool].sinks.get(path) not in TYPED:
                sources.append(self._shell)
            text = "".join(choice.choice(choice.choice(sources)) for _ in range(choice.choice((1, 1, 2))))
        if name == "keys" or "pattern" in schema:
            text = text if _fits(text, schema) else choice.choice(likely or ("x",))
        return text[: schema.get("maxLength", len(text))] or "x" * schema.get("minLength", 0)

    def _break(self, place: Place) -> bool:
        """Make a place wrong; False where anything goes."""
        choice, (holder, key, schema, required) = self._choice, place
        wrong: list[Any] = [None, {"x": 1}, [[]], "x\ny" if schema["type"] != "string" else 7]
        if schema["type"] in ("integer", "number"):
            wrong += ["7", True]
            wrong += [schema["minimum"] - 1] if "minimum" in schema else []
            wrong += [schema["maximum"] + 1] if "maximum" in schema else []
            wrong += [schema["exclusiveMinimum"]] if "exclusiveMinimum" in schema else []
        if "enum" in schema:
            wrong.append("none of these")
        if "pattern" in schema:
            wrong += ["", "x y", "%", "@x", "%1\n"]
        if "maxLength" in schema:
            wrong.append("x" * (schema["maxLength"] + 1))
        if "maxItems" in schema:
            wrong.append([holder[key][0] if holder.get(key) else "x"] * (schema["maxItems"] + 1))
        if schema.get("minItems"):
            wrong.append([])
        way = choice.random()
        if way < 0.2 and required:
            del holder[key]
        elif way < 0.3:
            holder[choice.choice(("x", "#(touch y)", "pane", "", "-t"))] = holder.pop(key)
        elif schema["type"] == "object" and "properties" not in schema:
            return False
        else:
            holder[key] = choice.choice([each for each in wrong if _is_wrong(each, schema)])
        return True


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    return schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 32) and "pattern" not in schema


def _is_wrong(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value, one of those that `Maker._break` has, is against the schema."""
    if isinstance(value, str) and re.search(schema.get("pattern", "(?!)"), value):
        return value.endswith("\n")  # before which `$` matches in Python
    return not (
        (schema["type"] == "object" and isinstance(value, dict) and "properties" not in schema)
        or (schema["type"] == "array" and value == [] and not schema.get("minItems"))
    )


class Place(NamedTuple):
    """A place in arguments: what holds it, its key there, its schema, and whether it is required."""

    holder: dict[str, Any]
    key: str
    schema: Mapping[str, Any]
    required: bool


def _places(value: Any, schema: Mapping[str, Any]) -> Iterator[Place]:
    """Every place in arguments."""
    if schema["type"] == "object" and "properties" in schema:
        for name, inner in schema["properties"].items():
            if name in value:
                yield Place(value, name, inner, name in schema.get("required", ()))
                yield from _places(value[name], inner)
    elif schema["type"] == "array":
        for item in value:
            yield from _places(item, schema["items"])
