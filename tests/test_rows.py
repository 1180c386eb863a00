"""Rows of sessions, windows and panes: exact, whatever the names and titles hold."""

from __future__ import annotations

import os
import re

import msgspec
import pytest

from tests.bench import Bench
from tmuxmcp.errors import NotFound
from tmuxmcp.terminal import rows
from tmuxmcp.tmux.command import command
from tmuxmcp.tmux.fake import FakeRunner
from tmuxmcp.tmux.fake import rows as answered

HOSTILE = "a|b<c> #{pane_id} ; \"q\" 'x' é😀 %H $1"


async def test_a_row_leaves_out_what_is_false_or_empty(bench: Bench) -> None:
    row: dict[str, object] = {}
    while (
        row.get("command") != "cat" or "path" not in row
    ):  # which tmux cannot tell while it is being started
        row = msgspec.to_builtins(await rows.pane_row(bench.client, "%0"))
    assert row == {
        "pane_id": "%0",
        "index": 0,
        "window_id": "@0",
        "session_id": "$0",
        "session": "a",
        "active": True,
        "width": 80,
        "height": 24,
        "left": 0,
        "top": 0,
        "title": row["title"],
        "command": "cat",
        "path": os.getcwd(),
        "pid": row["pid"],
        "tty": row["tty"],
    }
    row = msgspec.to_builtins(await rows.window_row(bench.client, "@0"))
    assert set(row) == {
        *("window_id", "index", "name", "session_id", "session", "panes", "active", "width", "height"),
        *("layout", "active_pane_id"),
    }
    session = await rows.session_row(bench.client, "$0")
    assert set(msgspec.to_builtins(session)) == {"session_id", "name", "windows", "created", "active_pane_id"}
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", session.created)


async def test_titles_and_names_are_told_as_they_are(bench: Bench) -> None:
    bench.tmux("select-pane", "-t", "%0", "-T", HOSTILE.replace("#", "##"))
    assert (await rows.pane_row(bench.client, "%0")).title == HOSTILE


async def test_a_program_s_own_title_is_told_as_it_is(bench: Bench) -> None:
    bench.tmux("respawn-pane", "-k", "-t", "%0", r"printf '\033]2;one\ttwo | <>\033\\'; exec cat")
    await bench.until(lambda: "one" in bench.tmux("display-message", "-p", "-t", "%0", "#{pane_title}"))
    expected = bench.tmux("display-message", "-p", "-t", "%0", "#{pane_title}").removesuffix("\n")
    assert (await rows.pane_row(bench.client, "%0")).title == expected


@pytest.mark.parametrize("ask", [rows.session_row, rows.window_row, rows.pane_row])
async def test_what_does_not_exist_is_not_found(bench: Bench, ask: object) -> None:
    assert callable(ask)
    id = {rows.session_row: "$9", rows.window_row: "@9", rows.pane_row: "%9"}[ask]
    with pytest.raises(NotFound):
        await ask(bench.client, id)


async def test_a_row_is_asked_for_in_the_invocation_that_acts(bench: Bench) -> None:
    question = rows.ask(rows.WINDOW, "@0")
    printed = await bench.client.call(command("rename-window", "-t", "@0", "--", "new"), question.command)
    assert question.answer(printed).name == "new"


async def test_what_has_gone_by_then_is_not_found(bench: Bench) -> None:
    bench.tmux("new-session", "-d", "-s", "b", "exec cat")
    question = rows.ask(rows.PANE, "%1")
    printed = await bench.client.call(command("kill-pane", "-t", "%1"), question.command)
    with pytest.raises(NotFound, match="%1 any more"):
        question.answer(printed)


async def test_dead_and_moded_and_zoomed_and_synchronised(bench: Bench) -> None:
    bench.tmux("split-window", "-d", "-t", "%0", "exec cat")
    bench.tmux(
        "set-option", "-w", "-t", "@0", "synchronize-panes", "on", ";", "resize-pane", "-Z", "-t", "%0"
    )
    window = await rows.window_row(bench.client, "@0")
    assert window.zoomed
    assert window.synchronized
    assert window.panes == 2
    bench.tmux("copy-mode", "-t", "%0")
    assert (await rows.pane_row(bench.client, "%0")).in_mode
    bench.tmux("set-option", "-p", "-t", "%1", "remain-on-exit", "on")
    bench.tmux("respawn-pane", "-k", "-t", "%1", "exit 3")
    await bench.until(lambda: bench.tmux("display-message", "-p", "-t", "%1", "#{pane_dead}") == "1\n")
    pane = await rows.pane_row(bench.client, "%1")
    assert pane.dead
    assert pane.dead_status in (3, msgspec.UNSET), "tmux 3.3a can lose the status of a pane that it keeps"


async def test_the_pane_of_this_process_is_told_apart(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tmux("split-window", "-d", "-t", "%0", "exec cat")
    pid = bench.tmux("display-message", "-p", "#{pid}").strip()
    monkeypatch.setenv("TMUX", f"{bench.path},{pid},0")
    monkeypatch.setenv("TMUX_PANE", "%1")
    assert not (await rows.pane_row(bench.client, "%0")).is_caller
    assert (await rows.pane_row(bench.client, "%1")).is_caller
    monkeypatch.setenv("TMUX", f"{bench.path},1{pid},0")
    assert not (await rows.pane_row(bench.client, "%1")).is_caller


async def test_a_dead_pane_of_tmux_3_8_has_no_pid() -> None:
    answer = dict.fromkeys(rows.PANE.template.fields, "") | {
        "session_id": "$0",
        "pane_id": "%1",
        "index": "0",
        "width": "80",
        "height": "24",
        "left": "0",
        "top": "0",
        "dead": "1",
    }
    bench = Bench.faked(FakeRunner(answered(rows.PANE.template, answer)))
    row = msgspec.to_builtins(await rows.row(bench.client, rows.PANE, "%1"))
    assert row["dead"]
    assert "pid" not in row
