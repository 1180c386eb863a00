"""The audit record: what it says, what it never shows, and that it cannot fail a call."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp import manifest, resources, stderr
from tmuxmcp.audit import LINE_BYTES, Audit, AuditedRunner, Entry
from tmuxmcp.errors import InvalidArgument, PaneBusy
from tmuxmcp.manifest import Row
from tmuxmcp.tmux.fake import FakeRunner

SECRET = "hunter2 --token s3cr3t"
CLIENT = {"name": "a client", "version": "1"}
ROWS = manifest.load(resources.manifest_text())
RUN, KEYS, PASTE, RESPAWN = (
    ROWS[name] for name in ("run_shell_command", "send_keys", "paste_text", "respawn_pane")
)
BATCH, READS, VARIABLES = (
    ROWS[name] for name in ("send_keys_batch", "call_read_tools_batch", "get_tmux_variables")
)


class Record:
    """An audit that writes to a file, and its events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.audit = Audit(str(path))

    @contextmanager
    def entry(self, row: Row, arguments: object) -> Iterator[Entry]:
        with self.audit.call(
            row.name, arguments, row=row, grounds="default", client=CLIENT, request_id=7
        ) as entry:
            yield entry

    def call(self, row: Row, arguments: object, error: BaseException | None = None) -> dict[str, Any]:
        try:
            with self.entry(row, arguments):
                if error is not None:
                    raise error
        except BaseException as raised:
            if raised is not error:
                raise
        return self.events()[-1]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "audit.jsonl")


@pytest.fixture
def standard_error(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The reading end of a pipe that stands in for standard error."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    monkeypatch.setattr(stderr, "FD", writing)
    monkeypatch.setattr(stderr, "_torn", False)
    yield reading
    os.close(reading)
    os.close(writing)


def test_an_event_names_the_tool_its_claims_the_caller_and_the_grounds(record: Record) -> None:
    event = record.call(RUN, {"pane_id": "%1", "command": "ls", "timeout": 2.5})
    assert event["event"] == "call"
    assert event["time"].endswith("+00:00")
    assert [event[key] for key in ("tool", "toolset", "tmux_effect", "process_reach")] == [
        "run_shell_command",
        "execute",
        ["change"],
        "pane-command",
    ]
    assert [event[key] for key in ("grounds", "client", "request_id", "outcome")] == [
        "default",
        CLIENT,
        7,
        "ok",
    ]
    assert 0 <= event["duration_ms"] < 60_000
    assert event["arguments"]["pane_id"] == "%1"
    assert event["arguments"]["timeout"] == 2.5
    assert event["arguments"]["command"].keys() == {"length", "digest"}
    assert event["arguments"]["command"]["length"] == 2


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PaneBusy("busy"), "pane_busy"),
        (InvalidArgument("no"), "invalid_argument"),
        (RuntimeError("boom"), "internal_error"),
        (KeyboardInterrupt(), "cancelled"),
    ],
)
def test_an_exception_gives_its_outcome(record: Record, error: BaseException, outcome: str) -> None:
    assert record.call(RUN, {}, error)["outcome"] == outcome


async def test_a_cancelled_call_is_recorded(record: Record) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        with record.entry(RUN, {}):
            await anyio.sleep_forever()
    assert record.events()[0]["outcome"] == "cancelled"


def test_the_server_sets_an_outcome_and_targets(record: Record) -> None:
    with record.entry(RUN, {}) as entry:
        entry.outcome = "timed_out"
        entry.targets += ["%1", "@2", "%1"]
    (event,) = record.events()
    assert (event["outcome"], event["targets"]) == ("timed_out", ["%1", "@2"])


@pytest.mark.parametrize("error", [None, InvalidArgument("no"), RuntimeError("boom")], ids=repr)
@pytest.mark.parametrize(
    ("row", "arguments"),
    [
        (RUN, {"command": SECRET}),
        (RUN, {"command": [SECRET, SECRET]}),
        (RUN, {"command": {"run": SECRET}}),
        (RUN, {"command": {SECRET: 1}}),
        (RUN, {"comand": SECRET}),
        (RUN, {SECRET: 1}),
        (RUN, SECRET),
        (RUN, [SECRET]),
        (RUN, {"pane_id": {SECRET: SECRET}}),
        (RESPAWN, {"command": SECRET}),
        (KEYS, {"text": SECRET}),
        (KEYS, {"keys": [*SECRET]}),
        (KEYS, {"keys": SECRET}),
        (KEYS, {"enter": SECRET}),
        (PASTE, {"text": SECRET}),
        (BATCH, {"operations": [{"pane_id": "%1", "text": SECRET}]}),
        (BATCH, {"operations": [{"pane_id": "%1", "keys": [SECRET]}]}),
        (BATCH, {"operations": [[SECRET], SECRET]}),
        (BATCH, {"operations": SECRET}),
        (BATCH, {"operations": {"text": SECRET}}),
        (BATCH, {"operations": [{SECRET: SECRET}]}),
        (READS, {"operations": [{"tool": "list_panes", "arguments": {"command": SECRET}}]}),
    ],
    ids=repr,
)
def test_a_payload_is_never_shown(
    record: Record, row: Row, arguments: object, error: BaseException | None
) -> None:
    record.call(row, arguments, error)
    written = record.path.read_text()
    assert "hunter2" not in written
    assert '"h","u","n"' not in written


@pytest.mark.parametrize(
    ("row", "arguments"),
    [(RUN, {"pane_id": SECRET}), (RUN, {"timeout": SECRET}), (VARIABLES, {"names": [SECRET]})],
    ids=repr,
)
def test_text_in_the_wrong_field_of_a_refused_call_is_not_shown(
    record: Record, row: Row, arguments: object
) -> None:
    record.call(row, arguments, InvalidArgument("no"))
    assert "hunter2" not in record.path.read_text()


@pytest.mark.parametrize(
    ("row", "arguments"),
    [
        pytest.param(RUN, {"timeout": 10**5000}, id="large number"),
        pytest.param(RUN, {"command": 10**5000}, id="large number for a command"),
        pytest.param(RUN, {"timeout": float("nan")}, id="nan"),
        pytest.param(RUN, {"timeout": float("-inf")}, id="infinity"),
        pytest.param(RUN, {"pane_id": "\ud800", "command": "\udfff"}, id="lone surrogates"),
        pytest.param(VARIABLES, {"names": ["x" * 100_000] * 1000}, id="long"),
        pytest.param(
            BATCH, {"operations": [{"pane_id": "%1", "text": "x" * 10_000}] * 1000}, id="long batch"
        ),
        pytest.param(RUN, None, id="none"),
    ],
)
def test_any_value_gives_one_bounded_line_of_strict_json(record: Record, row: Row, arguments: object) -> None:
    record.call(row, arguments)
    (line,) = record.path.read_bytes().splitlines()
    assert len(line) < LINE_BYTES

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(line, parse_constant=refuse)


def test_a_value_nested_deeper_than_the_stack_is_written_as_its_type(record: Record) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert record.call(RUN, {"command": deep})["arguments"]["command"] == {"type": "list"}
    assert record.call(VARIABLES, {"names": deep}, InvalidArgument("no"))["outcome"] == "invalid_argument"


@given(st.text(), st.text())
def test_digests_tell_equal_values_only_within_one_process(a: str, b: str) -> None:
    one, other = Audit("off"), Audit("off")
    assert (one._digest(a) == one._digest(b)) == (a == b)
    assert one._digest(a) != other._digest(a)


def test_a_batch_gives_an_event_for_itself_and_for_each_operation(record: Record) -> None:
    with record.entry(READS, {}) as batch:
        with batch.child(0, "list_panes", {"session": "$1"}, ROWS["list_panes"]) as child:
            child.targets.append("%5")
        with pytest.raises(PaneBusy), batch.child(1, "capture_pane", {}, ROWS["capture_pane"]):
            raise PaneBusy("busy")
    first, second, last = record.events()
    assert [first[key] for key in ("tool", "batch", "operation", "targets")] == [
        "list_panes",
        "call_read_tools_batch",
        0,
        ["%5"],
    ]
    assert [second[key] for key in ("tool", "operation", "outcome")] == ["capture_pane", 1, "pane_busy"]
    assert "batch" not in last
    assert {event["request_id"] for event in (first, second, last)} == {7}
    assert {event["grounds"] for event in (first, second, last)} == {"default"}


def test_a_name_outside_the_manifest_is_not_shown(record: Record) -> None:
    with record.audit.call(
        SECRET, {"x": SECRET}, row=None, grounds=None, client=CLIENT, request_id="a"
    ) as entry:
        entry.outcome = "unknown_tool"
    (event,) = record.events()
    assert event["tool"].keys() == {"length", "digest"}
    assert (event["outcome"], event["request_id"]) == ("unknown_tool", "a")
    assert "hunter2" not in record.path.read_text()


def test_the_largest_event_is_cut_and_says_so(record: Record) -> None:
    client = {"name": "\u1234" * 1000, "version": "\u1234" * 1000}
    with record.audit.call(
        "list_panes",
        {},
        row=ROWS["list_panes"],
        grounds="TOOLSETS",
        client=client,
        request_id="\u1234" * 1000,
    ) as entry:
        entry.targets = [f"%{10**19 + number}" for number in range(100)]
        entry.ran = {("list-panes", id, id): 10**9 for id in entry.targets}
    (line,) = record.path.read_bytes().splitlines()
    assert len(line) < LINE_BYTES
    event = json.loads(line)
    assert event["targets"][-1] == "and 68 more"
    assert event["tmux"] == event["arguments"] == "omitted: too long"


async def test_tmux_commands_are_noted_by_name_and_id_only(record: Record) -> None:
    runner = AuditedRunner(FakeRunner(default=""))

    async def tmux(*words: str) -> None:
        await runner.run(["tmux", "-u", "-N", "-S", "/s", *words], timeout=1, max_output=1)

    await tmux("list-sessions")  # outside any call
    with record.entry(RUN, {}):
        await tmux("has-session", "-t", "%1", ";", "send-keys", "-l", "-t", "%1", "--", SECRET)
        async with anyio.create_task_group() as group:
            group.start_soon(tmux, "capture-pane", "-p", "-t", "=%1:")
            group.start_soon(tmux, "capture-pane", "-p", "-t", "=%1:")
        await tmux(
            "swap-pane", "-s", "%1", "-t", "%2", ";", "rename-session", "-t", f"={SECRET}:", "--", "-t", "%9"
        )
        await tmux(
            "if-shell", "-F", "-t", "%1", "#{pane_dead}", "", f"kill-pane -t %1 ; kill-session {SECRET}"
        )
        await runner.run(["tmux", "-V"], timeout=1, max_output=1)
    (event,) = record.events()
    assert event["tmux"] == [
        {"command": "has-session", "targets": ["%1"]},
        {"command": "send-keys", "targets": ["%1"]},
        {"command": "capture-pane", "targets": ["%1"], "count": 2},
        {"command": "swap-pane", "targets": ["%1", "%2"]},
        {"command": "rename-session"},
        {"command": "if-shell kill-pane", "targets": ["%1"]},
    ]
    assert "hunter2" not in record.path.read_text()


def test_a_file_is_created_for_its_owner_only_appended_to_and_may_be_moved_away(record: Record) -> None:
    umask = os.umask(0)
    try:
        record.call(RUN, {})
    finally:
        os.umask(umask)
    assert stat.S_IMODE(record.path.stat().st_mode) == 0o600
    record.call(RUN, {})
    assert len(record.events()) == 2
    record.path.rename(record.path.with_suffix(".1"))
    record.call(RUN, {})
    assert len(record.events()) == 1


@pytest.mark.parametrize("kind", ["directory", "link", "fifo", "missing"])
def test_a_file_that_cannot_be_written_costs_one_line_and_no_call(
    tmp_path: Path, standard_error: int, kind: str
) -> None:
    path = tmp_path / "audit"
    if kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path = tmp_path / "nowhere" / "audit"
    record = Record(path)
    for _ in range(3):
        with record.entry(RUN, {"command": SECRET}):
            pass
    said = os.read(standard_error, 65536).decode()
    assert said.count("\n") == 1
    assert str(path) in said
    assert "hunter2" not in said
    assert not (tmp_path / "elsewhere").exists()


def test_the_next_event_counts_what_was_lost(tmp_path: Path, standard_error: int) -> None:
    record = Record(tmp_path / "later" / "audit")
    for _ in range(3):
        with record.entry(RUN, {}):
            pass
    record.path.parent.mkdir()
    assert record.call(RUN, {})["lost"] == 3
    assert "lost" not in record.call(RUN, {})


def test_a_standard_error_that_nobody_reads_does_not_hold_a_call(standard_error: int) -> None:
    record = Record(Path("stderr"))
    for _ in range(1000):
        with record.entry(RUN, {"command": "x" * 1000}):
            pass
    lines = os.read(standard_error, 1 << 20).splitlines()
    assert len(lines) < 1000
    assert all(json.loads(line)["event"] == "call" for line in lines)
    with record.entry(RUN, {}):
        pass
    assert json.loads(os.read(standard_error, 65536))["lost"] == 1000 - len(lines)


def test_off_writes_nothing(standard_error: int) -> None:
    with Record(Path("off")).entry(RUN, {}):
        pass
    with pytest.raises(BlockingIOError):
        os.read(standard_error, 1)


def test_a_line_that_was_cut_does_not_spoil_the_next(standard_error: int) -> None:
    assert not stderr.write_line("x" * 1_000_000)
    cut = os.read(standard_error, 1 << 20)
    assert stderr.write_line("whole")
    assert not cut.endswith(b"\n")
    assert os.read(standard_error, 1 << 20) == b"\nwhole\n"
    assert stderr.write_line("again")
    assert os.read(standard_error, 1 << 20) == b"again\n"


def test_a_closed_standard_error_is_only_a_lost_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(stderr, "FD", writing)
    assert not stderr.write_line("nobody reads this")
    os.close(writing)
    assert not stderr.write_line("nor this")
