"""The manifest: what every tool is and may do, one row a tool, read from ``tools.toml``.

The vocabularies are those of the capability model. Its three public properties (reach, effect and
output classes) are independent of each other and of the MCP hints: nothing here is a rank. A row
that contradicts itself is refused when it is loaded, so every claim derived from a row is one that
the rules below allow.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from tmuxmcp.errors import StartupError

FILE = "tools.toml"

Toolset = Literal["inspect", "manage", "execute", "teardown"]
Effect = Literal["observe", "change", "delete"]
Reach = Literal["none", "configured-process", "pane-input", "pane-command", "host-command"]
Output = Literal["tmux-metadata", "terminal-content", "process-environment", "configured-command"]
Sink = Literal[
    "none",
    "tmux-lookup",
    "tmux-state-value",
    "pane-input",
    "shell-command",
    "process-argv",
    "regex",
    "tmux-format",
]
Opener = Literal[
    "inspect-metadata",
    "inspect-pane-output",
    "inspect-environment",
    "inspect-configuration",
    "manage",
    "configured-process",
    "pane-input",
    "pane-command",
    "teardown",
]
Server = Literal["terminal", "relay"]

TOOLSETS: tuple[Toolset, ...] = get_args(Toolset)
OUTPUTS: tuple[Output, ...] = get_args(Output)
_VOCABULARIES = {
    "toolset": Toolset,
    "effect": Effect,
    "reach": Reach,
    "output": Output,
    "sinks": Sink,
    "opener": Opener,
    "server": Server,
}


class Hints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The four MCP annotations. All explicit, because the protocol's defaults are claims as well."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


CONSERVATIVE = Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
"""What is said of a whole call without evidence about it."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One tool. ``tools.toml`` says what each column means."""

    name: str
    title: str
    toolset: Toolset
    effect: tuple[Effect, ...]
    reach: Reach
    output: tuple[Output, ...]
    hints: Hints
    opener: Opener
    notice: str = ""
    may_expose_secrets: bool
    may_return_untrusted_content: bool
    may_trigger_configured_hooks: bool
    amplifies_future_input: bool = False
    self_bounded: bool
    default_enabled: bool
    nested: tuple[str, ...] = ()
    evidence: str = ""
    sinks: Mapping[str, Sink]
    server: Server = "terminal"


Manifest: TypeAlias = Mapping[str, Row]
"""Rows by name, in the order of the file."""

OPENERS: Mapping[Opener, str] = MappingProxyType(
    {
        "inspect-metadata": "Inspect tmux metadata; accepts no client-supplied executable input.",
        "inspect-pane-output": "Read pane output; accepts no client-supplied executable input. "
        "Returned content may be sensitive or untrusted.",
        "inspect-environment": "Read the tmux environment; accepts no client-supplied executable input. "
        "Returned values may contain secrets.",
        "inspect-configuration": "Read configured tmux commands; accepts no client-supplied executable "
        "input. Returned values may contain executable configuration.",
        "manage": "Change tmux state; no client-supplied executable input.",
        "configured-process": "Start a pane's configured process; accepts no command payload.",
        "pane-input": "Send input to a pane's program; a shell that receives it runs it with your user's "
        "permissions.",
        "pane-command": "Run a shell command in a pane with your user's permissions.",
        "teardown": "Delete tmux state; accepts no command payload.",
    }
)
_SECRETS_SAID: frozenset[Opener] = frozenset({"inspect-pane-output", "inspect-environment"})
_UNTRUSTED_SAID: frozenset[Opener] = frozenset({"inspect-pane-output"})

_EFFECTS: Mapping[Toolset, tuple[tuple[Effect, ...], ...]] = {
    "inspect": (("observe",),),
    "manage": (("change",),),
    "execute": (("change",), ("change", "delete")),
    "teardown": (("delete",),),
}
_EXECUTABLE: Mapping[Reach, frozenset[Sink]] = {
    "none": frozenset(),
    "configured-process": frozenset(),
    "pane-input": frozenset({"pane-input"}),
    "pane-command": frozenset({"shell-command", "process-argv"}),
    "host-command": frozenset(),
}
# A format is executable too: tmux runs the `#(...)` in it on the host, so no reach allows that sink.
_EXECUTABLE_SINKS: frozenset[Sink] = frozenset({"pane-input", "shell-command", "process-argv", "tmux-format"})
_INSPECT_SINKS: frozenset[Sink] = frozenset({"none", "tmux-lookup", "regex"})

_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
_PARAMETER = re.compile(r"(?!socket)[a-z][a-z0-9_]*(\.(?!socket)[a-z][a-z0-9_]*)?")
_EVIDENCE = re.compile(r"tests/\w+\.py::test_\w+")


def load(text: str) -> Manifest:
    """The rows of a ``tools.toml``. Raises `StartupError` that names the row and the column at fault."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StartupError(f"{FILE}: not valid TOML: {error}") from error
    tables = document.pop("tool", None)
    if document or not isinstance(tables, list):
        raise StartupError(f"{FILE}: holds [[tool]] rows and nothing else")
    rows: dict[str, Row] = {}
    for number, table in enumerate(tables, 1):
        row = _row(table, number)
        if row.name in rows:
            raise _fault(row.name, "name", "stands twice")
        rows[row.name] = row
    for row in rows.values():
        _check(row.name, _rules(row))
        for name in row.nested:
            if name not in rows:
                raise _fault(row.name, "nested", f"{name} is not a tool")
            _check(row.name, _nesting_rules(row, rows[name]))
    return MappingProxyType(rows)


def opener(row: Row) -> str:
    """What every description of the tool begins with: its opener, what results can carry, its notice."""
    secrets = row.may_expose_secrets and row.opener not in _SECRETS_SAID
    untrusted = row.may_return_untrusted_content and row.opener not in _UNTRUSTED_SAID
    sentences = [OPENERS[row.opener]]
    if secrets and untrusted:
        sentences.append("Returned content may be sensitive or untrusted.")
    elif secrets:
        sentences.append("Returned values may contain secrets.")
    elif untrusted:
        sentences.append("Returned content may be untrusted.")
    if row.notice:
        sentences.append(row.notice)
    return " ".join(sentences)


def description(row: Row, docstring: str) -> str:
    """The tool's whole description: its opener, then the first paragraph of its function's docstring."""
    guidance = inspect.cleandoc(docstring).partition("\n\n")[0]
    return " ".join([opener(row), *guidance.split()])


def _fault(name: str, column: str, problem: str) -> StartupError:
    return StartupError(": ".join(part for part in (FILE, name, column, problem) if part))


def _row(table: Any, number: int) -> Row:
    name = table.get("name") if isinstance(table, dict) else None
    try:
        return msgspec.convert(table, Row)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        named = re.search(r"field `(\w+)`", problem)
        column = ".".join(filter(None, [path.rstrip("`"), named and named[1]]))
        vocabulary = _VOCABULARIES.get(column.partition("[")[0])
        if vocabulary and "enum" in problem:
            problem += f", must be one of {', '.join(get_args(vocabulary))}"
        raise _fault(name if isinstance(name, str) else f"row {number}", column, problem) from error


Rule: TypeAlias = tuple[str, bool, str]
"""A column, whether the row keeps the rule, and what the column must be."""


def _check(name: str, rules: Iterator[Rule]) -> None:
    for column, kept, requirement in rules:
        if not kept:
            raise _fault(name, column, f"must be {requirement}")


def _rules(row: Row) -> Iterator[Rule]:
    hints, sinks = row.hints, set(row.sinks.values())
    is_inspect = row.toolset == "inspect"
    additive = is_inspect or row.reach == "configured-process"

    yield "name", bool(_NAME.fullmatch(row.name)), "a lower-case identifier of at most 48 characters"
    yield "title", row.title == row.title.strip() != "", "a text without blanks around it"

    yield "reach", row.reach != "host-command", "anything else: no tool runs a client's command on the host"
    drives = row.reach != "none" or row.amplifies_future_input
    yield "toolset", (row.toolset == "execute") == drives, "execute where pane programs are started or driven"
    effects = _EFFECTS[row.toolset]
    yield "effect", row.effect in effects, " or ".join(map("+".join, effects)) + f" in {row.toolset}"
    ordered = tuple(output for output in OUTPUTS if output in row.output)
    yield "output", row.output == ordered != (), f"some of {', '.join(OUTPUTS)}, in this order"

    named = all(map(_PARAMETER.fullmatch, row.sinks))
    yield "sinks", named, "keyed by parameters, of which none selects a socket"
    executable, allowed = sinks & _EXECUTABLE_SINKS, _EXECUTABLE[row.reach]
    exact = executable <= allowed and bool(executable) == bool(allowed)
    yield "sinks", exact, (" or ".join(sorted(allowed)) or "not executable") + f" with reach {row.reach}"
    yield "sinks", not is_inspect or sinks <= _INSPECT_SINKS, "none, tmux-lookup or regex in inspect"

    yield "hints.read_only", hints.read_only == is_inspect, "true in inspect and nowhere else"
    yield "hints.destructive", hints.destructive != additive, "false in inspect and for creation, else true"
    repeatable = is_inspect or (row.reach == "none" and row.toolset != "teardown")
    yield "hints.idempotent", repeatable or not hints.idempotent, "false with this toolset and reach"
    yield "hints.idempotent", hints.idempotent or not is_inspect, "true in inspect"
    open_world = row.toolset == "execute" or "terminal-content" in row.output
    yield "hints.open_world", hints.open_world == open_world, "true in execute and for terminal content only"
    tested = bool(_EVIDENCE.fullmatch(row.evidence)) if additive else not row.evidence
    yield "evidence", tested, "tests/FILE.py::test_NAME where hints.destructive is false, else absent"

    carries = any(output != "tmux-metadata" for output in row.output)
    flagged = "true where output is more than tmux-metadata"
    yield "may_expose_secrets", row.may_expose_secrets or not carries, flagged
    yield "may_return_untrusted_content", row.may_return_untrusted_content or not carries, flagged
    key = _opener_key(row)
    yield "opener", row.opener == key, f"{key} with this toolset, reach and output"
    widens = row.amplifies_future_input or bool(row.nested)
    yield "notice", bool(row.notice) or not widens, "given where a call has more authority than its own"
    yield "nested", is_inspect or len(row.nested) <= 1, "at most one tool: only reads are aggregated"


def _nesting_rules(row: Row, inner: Row) -> Iterator[Rule]:
    what = f"without {inner.name}"
    yield "nested", not inner.nested, f"{what}, which is an aggregate"
    yield "nested", not inner.self_bounded, f"{what}, which waits"
    kept = inner.toolset == row.toolset and inner.reach == row.reach and set(inner.effect) <= set(row.effect)
    yield "nested", kept, f"{what}, which has other authority"


def _opener_key(row: Row) -> Opener:
    if row.reach == "configured-process" or row.reach == "pane-input" or row.reach == "pane-command":
        return row.reach
    if row.toolset == "teardown":
        return "teardown"
    if row.toolset != "inspect":
        return "manage"
    if "process-environment" in row.output:
        return "inspect-environment"
    if "terminal-content" in row.output:
        return "inspect-pane-output"
    return "inspect-configuration" if "configured-command" in row.output else "inspect-metadata"
