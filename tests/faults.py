"""Deliberate faults in the program, each with the tests that have to catch it. `tests.mutants` makes them.

The manifest's own check is switched off where it would refuse a row by itself, so that each invariant is
known to be tested and not only loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

INVARIANTS = "tests/invariants"
SINKS = "tests/test_sinks_traced.py"


class Edit(NamedTuple):
    """Replaces `old` by `new` in a file: the first one after `after`."""

    file: str
    old: str
    new: str
    after: str = ""

    def apply(self, root: Path) -> None:
        path = root / self.file
        path.write_text(self.applied(path.read_text()))

    def applied(self, text: str) -> str:
        start = text.index(self.after) if self.after else 0
        at = text.index(self.old, start)
        return text[:at] + self.new + text[at + len(self.old) :]


class Fault(NamedTuple):
    """A fault, and the tests that have to catch it: a file or directory and what their names hold."""

    what: str
    where: str
    tests: str
    edits: tuple[Edit, ...]


UNCHECKED = Edit("tmuxmcp/manifest.py", "if not kept:", "if not kept and name is None:")


def row(tool: str, old: str, new: str) -> Edit:
    return Edit("tools.toml", old, new, f'name = "{tool}"\n')


def claims(number: int, what: str, *edits: Edit) -> Fault:
    """A row that the manifest's check would refuse."""
    return Fault(what, INVARIANTS, f"invariant_{number}_", (UNCHECKED, *edits))


def breaks(number: int, what: str, file: str, old: str, new: str, *more: Edit, after: str = "") -> Fault:
    """A function that does something else than it should."""
    return Fault(what, INVARIANTS, f"invariant_{number}_", (Edit(file, old, new, after), *more))


def lands(what: str, tool: str, *edits: Edit) -> Fault:
    """A value that ends where its row does not say."""
    return Fault(what, SINKS, tool, edits)


SURFACE, SERVER, DISCLOSURE = "tmuxmcp/surface.py", "tmuxmcp/server.py", "tmuxmcp/disclosure.py"
MANIFEST, AUDIT, ARGUMENTS = "tmuxmcp/manifest.py", "tmuxmcp/audit.py", "tmuxmcp/arguments.py"
INSPECT, LIMITS = "tmuxmcp/tools/inspect.py", "tmuxmcp/limits.py"
MATCHING, KEYBOARD = "tmuxmcp/terminal/matching.py", "tmuxmcp/terminal/keyboard.py"

FAULTS: Sequence[Fault] = (
    breaks(
        1,
        "a tool's function without a row",
        INSPECT,
        "async def get_window_info(",
        'async def get_window(call: Call, args: OfWindow) -> Window:\n    """W."""\n    raise NotFound("")\n'
        "\n\nasync def get_window_info(",
    ),
    breaks(1, "a hint is left to its default", SERVER, '"openWorldHint": hints.open_world,', ""),
    breaks(1, "a tool without a title", SERVER, '"title": row.title,', '"title": "",'),
    claims(
        2,
        "an inspect tool has a tmux-format sink",
        row("show_option", 'sinks.name = "none"', 'sinks.name = "tmux-format"'),
    ),
    claims(
        2,
        "an inspect tool keeps a value in tmux",
        row("list_windows", '"tmux-lookup"', '"tmux-state-value"'),
    ),
    claims(2, "an inspect tool has reach", row("capture_pane", 'reach = "none"', 'reach = "pane-input"')),
    claims(2, "a manage tool is read-only", row("select_pane", "read_only = false", "read_only = true")),
    claims(
        3,
        "a tool runs host commands",
        row("run_shell_command", 'reach = "pane-command"', 'reach = "host-command"'),
    ),
    breaks(
        3,
        "the record does not count host-command tools",
        DISCLOSURE,
        'sum(tool.row.reach == "host-command" for tool in surface.tools.values())',
        "0",
    ),
    claims(
        3,
        "a tool takes a socket",
        row("list_windows", "sinks.limit", 'sinks.socket_name = "none"\nsinks.limit'),
        Edit(
            INSPECT,
            "    limit: Limit",
            "    socket_name: str | UnsetType = UNSET\n    limit: Limit",
            "class ListWindows",
        ),
    ),
    claims(
        4,
        "typing is called not destructive",
        row("send_keys", "destructive = true", "destructive = false"),
        row("send_keys", "sinks.", 'evidence = "tests/test_evidence.py::test_split_window_adds"\nsinks.'),
    ),
    claims(
        4,
        "a shell command is called idempotent",
        row("run_shell_command", "idempotent = false", "idempotent = true"),
    ),
    claims(
        4, "a rename is called additive", row("rename_window", "destructive = true", "destructive = false")
    ),
    claims(4, "deletion is called open-world", row("kill_pane", "open_world = false", "open_world = true")),
    claims(
        4, "terminal content is called closed", row("capture_pane", "open_world = true", "open_world = false")
    ),
    claims(
        4,
        "a creation has a format sink",
        row("create_window", 'start_directory = "tmux-state-value"', 'start_directory = "tmux-format"'),
    ),
    claims(
        4,
        "a creation takes a command",
        row("split_window", 'sinks.select = "none"', 'sinks.select = "shell-command"'),
    ),
    claims(
        4,
        "the evidence of a claim does not exist",
        row("capture_pane", "test_capture_pane_observes", "test_capture_pane_looks"),
    ),
    claims(
        4,
        "the evidence of a claim is about another tool",
        row("capture_pane", "test_capture_pane_observes", "test_capture_since_observes"),
    ),
    breaks(
        4,
        "direct hints are advertised in spite of hooks",
        SURFACE,
        'row.hints if ambient == "quiet" else CONSERVATIVE',
        "row.hints",
    ),
    breaks(
        5,
        "guidance comes before the opener",
        MANIFEST,
        "[opener(row), *guidance.split()]",
        "[*guidance.split(), opener(row)]",
    ),
    breaks(5, "a mandatory line is dropped", MANIFEST, "if row.notice:", "if row.notice and row.nested:"),
    breaks(5, "an opener is reworded", MANIFEST, "Delete tmux state; accepts", "Remove tmux state; accepts"),
    breaks(5, "the history limit is not bounded", LIMITS, "(100, 1_000_000)", "(1, 1_000_000_000)"),
    breaks(
        6, "exclusions are ignored", SURFACE, "if row.name in settings.exclude_tools:", "if not row.name:"
    ),
    breaks(
        6,
        "an inclusion wins over an exclusion",
        SURFACE,
        "if row.name in settings.exclude_tools:",
        "if row.name in settings.exclude_tools and row.name not in settings.tools:",
    ),
    breaks(
        6,
        "a tool that is off can be called",
        SERVER,
        "tool = surface.tools.get(params.name)",
        "row = surface.manifest[params.name]\n        tool = Tool(row=row, hints=row.hints, grounds='TOOLS')",
    ),
    breaks(
        6,
        "tools are sorted by name",
        SURFACE,
        "for name, row in manifest.items():\n        choice",
        "for name, row in sorted(manifest.items()):\n        choice",
    ),
    breaks(
        6,
        "deletion is on by default beside another's server",
        SURFACE,
        'elif server_state != "absent":',
        'elif server_state == "started":',
    ),
    breaks(
        6,
        "an exclusion does not reach into aggregates",
        SURFACE,
        "[tool for tool in selected if _can_call(row, tool, settings)]",
        "[tool for tool in manifest.values() if _can_call(row, tool, settings)]",
    ),
    claims(
        7,
        "the batch nests a wait",
        row("call_read_tools_batch", '    "get_tmux_variables",', '"wait_for_text",'),
    ),
    claims(7, "a wait is not marked", row("wait_for_channel", "self_bounded = true", "self_bounded = false")),
    breaks(
        7,
        "the batch carries more than it claims",
        SURFACE,
        "set(tool.output) <= set(aggregate.output)",
        "bool(tool.output)",
    ),
    breaks(
        7,
        "the batch claims more than it carries",
        SURFACE,
        "if any(output in tool.output for tool in inner)",
        "if inner",
    ),
    breaks(7, "the batch takes more operations", LIMITS, "READ_OPERATIONS = 16", "READ_OPERATIONS = 17"),
    breaks(
        7,
        "results of a batch are not bounded",
        "tmuxmcp/tools/batch.py",
        "fit(outcomes, limits.CONTENT_BYTES)",
        "fit(outcomes, 100 * limits.CONTENT_BYTES)",
    ),
    breaks(7, "operations are recorded as one", SERVER, "entry.child(index, name", "entry.child(0, name"),
    breaks(
        8,
        "a variable's name is not checked",
        INSPECT,
        "[A-Za-z][A-Za-z0-9_]*$",
        "",
        Edit("tmuxmcp/terminal/variables.py", "    if not wrong:", "    if wrong or not wrong:"),
        Edit("tmuxmcp/tmux/sinks.py", "{_variable_name(value)}", "{value}"),
    ),
    breaks(
        8, "patterns may be of any size", LIMITS, "PATTERN_CHARACTERS = 1000", "PATTERN_CHARACTERS = 100_000"
    ),
    breaks(
        8,
        "matching has no time bound",
        MATCHING,
        "anyio.move_on_after(budget)",
        "anyio.move_on_after(1e9)",
        Edit(MATCHING, "time.monotonic() >= deadline", "time.monotonic() < 0"),
    ),
    breaks(
        8,
        "buffers are not namespaced",
        "tmuxmcp/terminal/buffers.py",
        'f"tmuxmcp-{_PID}-',
        'f"buffer-{_PID}-',
    ),
    breaks(8, "a refused paste leaves its buffer", KEYBOARD, '[f"delete-buffer -b {buffer}"]', "[]"),
    breaks(
        8,
        "a failed paste leaves its buffer",
        "tmuxmcp/terminal/buffers.py",
        "await self._delete(name)\n            raise",
        "raise",
    ),
    breaks(
        9,
        "typed text is recorded",
        AUDIT,
        '{"pane-input", "shell-command", "process-argv"}',
        '{"shell-command", "process-argv"}',
    ),
    breaks(
        9,
        "arguments that were refused are recorded",
        AUDIT,
        "isinstance(value, str) and (decoded or ID.fullmatch(value))",
        "isinstance(value, str)",
    ),
    breaks(
        9,
        "a refusal quotes the value",
        ARGUMENTS,
        'f" It is {received}."',
        'f" It is {value}."',
    ),
    breaks(
        9,
        "a refusal quotes a key",
        "tmuxmcp/tmux/names.py",
        'f"The key cannot be sent',
        'f"The key {value} cannot be sent',
    ),
    breaks(10, "the README lists another reach", "README.md", "pane-command | change", "none | change"),
    breaks(10, "a tool page is old", "docs/tools/kill_pane.md", "Delete tmux state", "Change tmux state"),
    breaks(
        10,
        "the capabilities leave a tool out",
        DISCLOSURE,
        "[_tool(tool) for tool in surface.tools.values()]",
        "[_tool(tool) for tool in surface.tools.values()][1:]",
    ),
    breaks(
        10,
        "the capabilities tell direct hints as advertised",
        DISCLOSURE,
        '"advertised": _annotations(tool.hints)',
        '"advertised": _annotations(row.hints)',
    ),
    breaks(11, "the lint misses a promise", "scripts/claims.py", 'r"no[- ]shell",', ""),
    breaks(11, "the lint takes anything as a denial", "scripts/claims.py", "bool(negations) and", "True or"),
    breaks(11, "the lint refuses denials", "scripts/claims.py", "bool(negations) and", "False and"),
    breaks(
        11,
        "a page is exempt",
        "scripts/claims.py",
        '{"CHANGELOG.md", "docs/migration.md"}',
        '{"CHANGELOG.md", "docs/migration.md", "README.md"}',
    ),
    breaks(
        11,
        "a description promises",
        INSPECT,
        '"""List all sessions;',
        '"""A safe' + " call. List all sessions;",
    ),
    lands(
        "a row declares less than a value reaches",
        "rename_window",
        row("rename_window", 'new_name = "tmux-state-value"', 'new_name = "tmux-lookup"'),
    ),
    lands(
        "a row declares more than a value reaches",
        "search_panes",
        row("search_panes", 'offset = "none"', 'offset = "tmux-lookup"'),
    ),
    lands(
        "a directory is an argument that tmux expands",
        "create_window",
        Edit(
            "tmuxmcp/terminal/spawn.py",
            '"-t", place, *titled)',
            '"-t", place, "-c", path, *titled)',
        ),
    ),
    lands(
        "a path is not escaped",
        "respawn_pane",
        Edit("tmuxmcp/tmux/sinks.py", "return escape_format(value)", "return value", "def _absolute"),
    ),
    lands(
        "a name is checked but not escaped",
        "set_pane_title",
        Edit(
            "tmuxmcp/tmux/sinks.py", "return escape_format(_printable(value))", "return value", "def _title"
        ),
        Edit("tmuxmcp/tmux/names.py", 'if "#" in value:', "if not value:"),
    ),
    lands(
        "tmux filters by the caller's text",
        "list_panes",
        Edit(
            "tmuxmcp/tools/listing.py",
            'return command(name, *(["-s"] if whole_session else []),',
            'return command(name, *(["-s"] if whole_session else []), "-f", f"#{{m:{place.id},x}}",',
        ),
    ),
    lands(
        "a command goes through a host shell",
        "run_shell_command",
        Edit(
            "tmuxmcp/terminal/run.py",
            "        with anyio.move_on_after(deadline",
            "        from tmuxmcp.tmux.command import Command\n\n"
            '        await self._terminal.client.try_call(Command("run-shell", (command,)))\n'
            "        with anyio.move_on_after(deadline",
        ),
    ),
)
