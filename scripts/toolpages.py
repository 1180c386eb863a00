"""The pages of the tools below docs/tools/: one for each tool, and the matrix of all of them.

They are made of the manifest, of the functions with their argument and result structs, and of the recorded
examples. `scripts.generate` writes them.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from tmuxmcp import manifest
from tmuxmcp.arguments import Parameters
from tmuxmcp.manifest import CONSERVATIVE, TOOLSETS, Hints, Manifest, Row, Toolset
from tmuxmcp.tools import Function

MEANING: Mapping[Toolset, str] = {
    "inspect": "Read tmux state and terminal output. Results can hold secrets and text that others wrote.",
    "manage": "Change tmux structure or presentation; no client-supplied executable input.",
    "execute": "Start or drive pane processes, with your user's authority.",
    "teardown": "Delete tmux objects or retained scrollback. tmux cannot bring them back.",
}
"""What each toolset is, in one line."""

# What the schemas leave out, since every client is sent them: fields that mean the same wherever they stand.
_COMMON = {
    "pane_id": "a pane's id, `%N`",
    "window_id": "a window's id, `@N`",
    "session_id": "a session's id, `$N`",
    "session": "the session's name",
    "name": "its name",
    "new_name": "what it is called then",
    "index": "its place: of a pane in its window, of a window in its session",
    "pane_ids": "ids of panes",
    "window_ids": "ids of windows",
    "session_ids": "ids of sessions",
    "active_pane_id": "the pane that has the focus",
    "with_pane_id": "the other pane",
    "panes": "the panes, or how many there are",
    "windows": "the windows, or how many there are",
    "sessions": "the sessions, or how many there are",
    "attached": "how many clients show it",
    "group": "the group of sessions that share windows",
    "zoomed": "whether one pane fills the window, with the others hidden",
    "synchronized": "whether input to one pane reaches them all",
    "width": "columns",
    "height": "rows",
    "left": "first column, from 0",
    "top": "first row, from 0",
    "cursor_x": "the cursor's column, from 0",
    "cursor_y": "the cursor's row, from 0",
    "history_size": "rows of history",
    "scroll_position": "lines that the view is scrolled up",
    "title": "what the pane's program, or somebody, has set",
    "path": "the working directory",
    "tty": "the terminal's device",
    "pid": "the process id",
    "dead": "whether its program has ended",
    "dead_status": "the exit status of a program that has ended",
    "in_mode": "whether the pane is in a tmux mode, such as copy mode",
    "mode": "the tmux mode that the pane is in",
    "alternate_screen": "whether a full-screen program has the pane",
    "command": "what the shell runs; in a pane's row, the name of its foreground program",
    "output": "what was printed",
    "timeout": "seconds; what is beyond the ceiling is cut to it, as `effective_timeout` tells",
    "effective_timeout": "seconds that the call was allowed to take",
    "elapsed_seconds": "seconds since the call arrived",
    "max_lines": "lines of content at most",
    "max_bytes": "bytes of content at most",
    "limit": "rows at most",
    "offset": "rows to pass over, as `next_offset` told",
    "next_offset": "there is more: the `offset` to go on with",
    "content": "the text, a line each",
    "lines": "how many lines it has",
    "partial": "the line that is not ended yet",
    "truncated": "whether something was left out to keep to the limits",
    "dropped_lines": "lines that were left out",
    "dropped_bytes": "bytes that were left out",
    "missed": "0 when no line is missing before these",
    "missed_at_least": "lines that surely are missing, when it is not certain that none is",
    "rewritten": "lines read before that the program has written over since",
    "bytes": "bytes that were sent",
    "cursor": "a place in the pane's output, for wait_for_text and capture_since",
    "run": "the running command's handle, for wait_for_text",
    "exit_status": "the command's exit status",
    "still_running": "whether the command goes on",
    "note": "what else there is to know",
    "matches": "the lines that match",
    "matched_lines": "the lines that matched",
    "panes_searched": "how many panes were looked at",
    "before": "lines above it",
    "after": "lines below it",
    "cut": "whether only a part of a very long line is shown",
    "escapes": "keep colours and attributes, as escape sequences",
    "join_wrapped": "a wrapped line counts as one",
    "regex": "patterns are RE2 expressions, not literal text",
    "match_case": "upper and lower case differ",
    "enter": "press Enter at the end",
    "select": "make it the current one",
    "zoom": "fill the window with it, or no longer",
    "enabled": "on or off",
    "window_name": "the name of its first window",
    "operations": "the calls, in order",
    "tool": "a tool's name",
    "arguments": "its arguments",
    "on_error": "what to do after an error",
    "results": "what became of each, in order",
    "result": "what the tool answered",
    "error": "its error: `code`, `message` and `details`",
    "stopped_at": "the operation, from 0, that ended the batch",
    "variables": "the variables",
    "value": "its value",
    "removed": "whether it is taken out of new panes' environment",
    "hooks": "the hooks that are set",
    "exempt_sessions": "sessions with a value of their own, which the call left alone",
    "unchanged_panes": "panes that keep the limit they had",
    "size_pinned": "whether attached clients no longer change the size",
    "running": "whether there is a tmux server",
    "started": "when it was started, in UTC",
    "socket": "the pinned socket, as configured",
    "resolved_socket_path": "its path",
    "attach_command": "what a person types to watch",
    "server_exited": "whether the tmux server has ended with it",
}

_HINTS = ("read-only", "destructive", "idempotent", "open world")
_WIDTH = 84


def pages(rows: Manifest, functions: Mapping[str, Function], examples: Mapping[str, Any]) -> dict[str, str]:
    """The text of each page by its name in docs/tools/."""
    found = {"index.md": "".join(_index(rows))}
    for name, row in rows.items():
        found[f"{name}.md"] = "".join(_page(row, functions[name], rows, examples[name]))
    return found


# The matrix


def _index(rows: Manifest) -> Iterator[str]:
    yield "---\nhide-toc: true\n---\n\n"
    yield f"# Tools\n\n{len(rows)} tools in four toolsets. The toolsets are inventory, not ranks and not "
    yield "permissions; the [trust model](../trust-model.md) says what the words mean.\n\n"
    yield "## At a glance\n\nTools that can do the same stand in one row.\n\n"
    yield f"| toolset | reach | effect | {' | '.join(_HINTS)} | tools |\n"
    yield f"| --- | --- | --- | {' | '.join([':-:'] * len(_HINTS))} | --- |\n"
    for row, names in _alike(rows.values()):
        links = ", ".join(f"[{name}]({name}.md)" for name in names)
        yield f"| {row.toolset} | {row.reach} | {' + '.join(row.effect)} | {_marks(row.hints)} | {links} |\n"
    yield "\n● yes, ○ no. These are the hints of the operation itself. Where hooks or command aliases of the "
    yield "tmux server may add to it, every tool advertises the cautious four: "
    yield f"{_said(CONSERVATIVE)}.\n"
    for toolset in TOOLSETS:
        yield from _inventory(toolset, [row for row in rows.values() if row.toolset == toolset])
    yield "\n`S` may expose secrets. `U` may return text that others wrote. `T` waits, and ends at its own "
    yield "timeout. `N` calls other tools. `A` widens what later input reaches.\n"
    yield "\n```{toctree}\n:hidden:\n\n"
    yield from (f"{name}\n" for name in rows)
    yield "```\n"


def _alike(rows: Iterable[Row]) -> Iterator[tuple[Row, list[str]]]:
    """Tools with the same public claims, in manifest order."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.toolset, row.reach, row.effect, row.hints].append(row)
    return ((group[0], [row.name for row in group]) for group in groups.values())


def _inventory(toolset: Toolset, rows: list[Row]) -> Iterator[str]:
    yield f"\n## {toolset} ({len(rows)})\n\n{MEANING[toolset]}\n\n"
    yield f"| tool | what it does | output | {' | '.join(_HINTS)} | notes |\n"
    yield f"| --- | --- | --- | {' | '.join([':-:'] * len(_HINTS))} | --- |\n"
    for row in rows:
        notes = " ".join(letter for letter, _, holds in _flags(row) if holds)
        output = ", ".join(row.output)
        yield f"| [{row.name}]({row.name}.md) | {row.title} | {output} | {_marks(row.hints)} | {notes} |\n"


def _flags(row: Row) -> Iterator[tuple[str, str, bool]]:
    yield "S", "may expose secrets", row.may_expose_secrets
    yield "U", "may return untrusted content", row.may_return_untrusted_content
    yield "T", "ends at its own timeout", row.self_bounded
    yield "N", "calls other tools", bool(row.nested)
    yield "A", "widens what later input reaches", row.amplifies_future_input


def _values(hints: Hints) -> tuple[bool, ...]:
    return hints.read_only, hints.destructive, hints.idempotent, hints.open_world


def _marks(hints: Hints) -> str:
    return " | ".join("●" if value else "○" for value in _values(hints))


def _said(hints: Hints) -> str:
    named = zip(_HINTS, _values(hints), strict=True)
    return ", ".join(name if value else f"not {name}" for name, value in named)


# One tool


def _page(row: Row, function: Function, rows: Manifest, example: Mapping[str, Any]) -> Iterator[str]:
    description = manifest.description(row, function.doc)
    yield f"# {row.name}\n\n{row.title}. What clients are told:\n\n> {description}\n"
    if more := inspect.cleandoc(function.doc).partition("\n\n")[2]:
        yield f"\n{_linked(more, row, rows)}\n"
    if row.nested:
        yield f"\nIt can call what is enabled of: {', '.join(_nested(row, rows))}.\n"
    yield from _properties(row)
    yield "\n## Arguments\n\n"
    arguments = list(_arguments(Parameters(function.arguments).schema, ""))
    if arguments:
        yield "| name | type | meaning |\n| --- | --- | --- |\n"
        yield from arguments
    else:
        yield "None.\n"
    if any("`? |" in each for each in arguments):
        yield "\nA `?` marks what may be left out.\n"
    yield "\n## Result\n\n"
    if about := _about(function.result):
        yield f"{about}\n\n"
    yield "| field | type | meaning |\n| --- | --- | --- |\n"
    fields = list(_fields(function.result, ""))
    yield from fields
    if any("`? |" in each for each in fields):
        yield "\nA field with a `?` is left out when it is false, empty or unknown.\n"
    yield "\n## Example\n\nFrom a recorded run, with cursors shortened and this machine's names "
    yield "replaced.\n\n"
    yield f"```json\n{_json({'name': row.name, 'arguments': example['arguments']})}\n```\n\n"
    yield f"```json\n{_json(example['result'])}\n```\n"


def _linked(text: str, row: Row, rows: Manifest) -> str:
    """The text with the names of other tools as links to their pages."""
    others = "|".join(name for name in rows if name != row.name)
    return re.sub(rf"(?<![`\w])({others})(?![`\w])", r"[\1](\1.md)", text)


def _nested(row: Row, rows: Manifest) -> Iterator[str]:
    for name in row.nested:
        beyond = not set(rows[name].output) <= set(row.output)
        yield f"[{name}]({name}.md)" + " (only where `TMUXMCP_TOOLS` names it)" * beyond


def _properties(row: Row) -> Iterator[str]:
    yield "\n## What it can do\n\n| toolset | process reach | tmux effect | output |\n"
    yield "| --- | --- | --- | --- |\n"
    yield f"| {row.toolset} | {row.reach} | {' + '.join(row.effect)} | {', '.join(row.output)} |\n\n"
    yield f"| hints | {' | '.join(_HINTS)} |\n| --- | {' | '.join([':-:'] * len(_HINTS))} |\n"
    yield f"| of the operation itself | {_marks(row.hints)} |\n"
    yield f"| advertised where hooks or aliases may add to it | {_marks(CONSERVATIVE)} |\n"
    if flags := [said for _, said, holds in _flags(row) if holds]:
        yield f"\nIt {' and '.join(filter(None, [', '.join(flags[:-1]), flags[-1]]))}.\n"


def _arguments(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        optional = "" if name in schema.get("required", ()) else "?"
        yield f"| `{prefix}{name}`{optional} | {_type(field)} | {_limits(name, field)} |\n"
        yield from _arguments(field.get("items", field), f"{prefix}{name}.")


def _fields(struct: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    schema = Parameters(struct).schema
    meanings = _meanings(struct)
    for field in msgspec.structs.fields(struct):
        said = schema["properties"][field.encode_name]
        values = said.get("enum") or said.get("items", {}).get("enum") or ()
        meaning = meanings.get(field.name, "" if values else _COMMON.get(field.name, ""))
        meaning = _sentence([meaning, ", ".join(f"`{value}`" for value in values)])
        optional = "" if field.required else "?"
        yield f"| `{prefix}{field.encode_name}`{optional} | {_type(said)} | {meaning} |\n"
        if inner := _inner(field.type):
            yield from _fields(inner, f"{prefix}{field.encode_name}[].")


def _inner(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of a list's items."""
    match msgspec.inspect.type_info(kind):
        case msgspec.inspect.ListType(item_type=msgspec.inspect.StructType(cls=cls)):
            return cls
    return None


def _meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """What the source says below each field."""
    found: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct:
            body = _class(each).body
            for field, after in pairwise(body):
                match field, after:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        found[name] = " ".join(text.split())
    return found


def _class(struct: type) -> ast.ClassDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    assert isinstance(node, ast.ClassDef)
    return node


def _about(struct: type[msgspec.Struct]) -> str:
    """What the struct's own docstring says; not one that it inherits, or that msgspec made."""
    return inspect.cleandoc(ast.get_docstring(_class(struct)) or "").replace("``", "`")


def _type(field: Mapping[str, Any]) -> str:
    if field["type"] == "array":
        return f"list of {_type(field['items'])}" if "items" in field else "list"
    return str(field["type"])


def _limits(name: str, field: Mapping[str, Any]) -> str:
    inner = field.get("items", {})
    said = [field.get("description") or inner.get("description") or _COMMON.get(name, "")]
    if values := field.get("enum", inner.get("enum")):
        said.append("one of " + ", ".join(f"`{value}`" for value in values))
    if "exclusiveMinimum" in field:
        said.append(f"above {field['exclusiveMinimum']:g}, up to {field['maximum']:,g}")
    for least, most, what in (
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " items"),
        ("minLength", "maxLength", " characters"),
    ):
        if least in field and most in field:
            said.append(f"{field[least]:,} to {field[most]:,}{what}")
        elif field.get(least):
            said.append(f"at least {field[least]:,}{what}")
        elif most in field and "exclusiveMinimum" not in field:
            said.append(f"at most {field[most]:,}{what}")
    if "default" in field:
        said.append(f"default `{json.dumps(field['default'])}`")
    return _sentence(said)


def _sentence(parts: Iterable[str]) -> str:
    """The parts that say something as one cell of a table."""
    text = "; ".join(filter(None, (part.removesuffix(".") for part in parts)))
    return (text if text.startswith("tmux") else text[:1].upper() + text[1:]).replace("|", "\\|")


def _json(value: Any, indent: str = "", used: int = 0) -> str:
    """JSON that keeps on one line what fits there."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + used + len(line) <= _WIDTH or not isinstance(value, Mapping | list) or not value:
        return line
    deeper = f"{indent}  "
    if isinstance(value, list):
        items = [f"{deeper}{_json(item, deeper)}" for item in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    items = [f'{deeper}"{key}": {_json(item, deeper, len(key) + 5)}' for key, item in value.items()]
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"
