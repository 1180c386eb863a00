"""Targets, names and ids: what went wrong between agents and terminals, case by case, through a client."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.session import Session, own_session, said, until
from tmuxmcp import manifest, resources

ROWS = manifest.load(resources.manifest_text())


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[Session]:
    async with own_session() as session:
        yield session


MISSING = {"pane_id": ["%999"], "window_id": ["@999"], "session": ["$999", "no-such"]}
"""Targets that do not exist, for each parameter that names one."""

OTHERWISE: dict[str, dict[str, Any]] = {
    "find_pane_by_position": {"corner": "top-left"},
    "get_tmux_variables": {"names": ["pane_id", "session_name"]},
    "search_panes": {"pattern": "x"},
    "rename_session": {"new_name": "n"},
    "rename_window": {"new_name": "n"},
    "select_layout": {"layout": "tiled"},
    "resize_window": {"width": 80},
    "resize_pane": {"width": 80},
    "move_window": {"window_id": "@0", "index": 9},
    "swap_pane": {"with_pane_id": "%0"},
    "set_pane_title": {"title": "t"},
    "set_mouse_enabled": {"enabled": False},
    "set_history_limit": {"lines": 1000},
    "run_shell_command": {"command": "true"},
    "send_keys": {"text": "x"},
    "paste_text": {"text": "x"},
    "set_synchronize_panes": {"enabled": True},
}
"""What else a tool has to be given."""


def otherwise(tool: str, parameter: str) -> dict[str, Any]:
    if tool == "show_option":
        return {"name": "@x", "scope": parameter.removesuffix("_id")}
    return OTHERWISE.get(tool, {})


@pytest.mark.parametrize("tool", [name for name, row in ROWS.items() if MISSING.keys() & row.sinks.keys()])
async def test_c60_c109_a_missing_target(session: Session, tool: str) -> None:
    """No tool takes another target for one that is missing: an error says what is, and how to find others."""
    for parameter in MISSING.keys() & ROWS[tool].sinks.keys():
        for missing in MISSING[parameter]:
            refusal = await session.refusal(tool, **(otherwise(tool, parameter) | {parameter: missing}))
            assert refusal["code"] == "not_found", refusal
            assert missing in refusal["message"]
            assert re.search(r"\b[Ll]ist", refusal["message"]), refusal


async def test_c60_c109_a_missing_target_in_a_batch(session: Session) -> None:
    """An operation of a batch fails as the tool does, and says so in its place."""
    read = {"tool": "capture_pane", "arguments": {"pane_id": "%999"}}
    batch = await session.call("call_read_tools_batch", operations=[read])
    assert batch["results"][0]["error"]["code"] == "not_found"
    batch = await session.call("send_keys_batch", operations=[{"pane_id": "%999", "text": "x"}])
    assert batch["results"][0]["error"]["code"] == "not_found"
    assert batch["stopped_at"] == 0


@pytest.mark.parametrize(
    "pane_id", ["", "%", "0", "%0 ", "%0.1", ":.0", "first", "=first:", "{last}", "%-1", "%0;"]
)
async def test_c60_what_is_no_id(session: Session, pane_id: str) -> None:
    """What tmux would look up in ways of its own is no id."""
    for tool in ("capture_pane", "send_keys", "kill_pane"):
        refusal = await session.refusal(tool, pane_id=pane_id, **OTHERWISE.get(tool, {}))
        assert refusal["code"] == "invalid_argument"
        assert "pane_id" in refusal["message"]


@pytest.mark.parametrize(
    "name", ["build", "b", "build-e2", "build*", "*", "build-e2?", "[b]uild-e2e", "BUILD-E2E"]
)
async def test_c61_a_name_is_exact(session: Session, name: str) -> None:
    """A part of a name, or a pattern, finds nothing."""
    sessions = [row["name"] for row in (await session.call("list_sessions"))["sessions"]]
    if "build-e2e" not in sessions:
        await session.call("create_session", name="build-e2e")
    for tool in ("get_session_info", "kill_session", "rename_session", "create_window", "list_windows"):
        arguments = {"new_name": "x"} if tool == "rename_session" else {}
        assert (await session.refusal(tool, session=name, **arguments))["code"] == "not_found"
    assert (await session.call("get_session_info", session="build-e2e"))["name"] == "build-e2e"


async def test_c62_dots_and_colons(session: Session) -> None:
    """tmux would change these characters in a name, so such a name is refused; a neighbour is never hit."""
    for name in ("app_3.1.9", "a:b", ".", ":"):
        for tool, arguments in (
            ("create_session", {"name": name}),
            ("rename_session", {"session": "first", "new_name": name}),
        ):
            refusal = await session.refusal(tool, **arguments)
            assert refusal["code"] == "invalid_name"
            assert name[-2:-1] in refusal["message"] or name in refusal["message"]
    session.tmux("new-session", "-d", "-s", "dotted.name")
    rows = {row["name"]: row["session_id"] for row in (await session.call("list_sessions"))["sessions"]}
    (real,) = [name for name in rows if name.startswith("dotted")]
    assert (await session.call("get_session_info", session=rows[real]))["name"] == real
    assert (await session.call("kill_session", session=rows[real]))["session_ids"] == [rows[real]]


@pytest.mark.parametrize("character", ["\a", "\x1b]0;x\a", "\n", "\t", "\x7f", "\x80", "\u2028", "\0"])
async def test_c64_control_characters_in_names(session: Session, character: str) -> None:
    """A name holds no control character, wherever it is set."""
    first = await session.call("get_session_info", session="first")
    window = (await session.call("list_windows", session="first"))["windows"][0]["window_id"]
    for tool, arguments in (
        ("create_session", {"name": f"a{character}"}),
        ("create_session", {"window_name": character}),
        ("create_window", {"session": "first", "name": f"{character}b"}),
        ("rename_session", {"session": "first", "new_name": character}),
        ("rename_window", {"window_id": window, "new_name": f"a{character}b"}),
        ("set_pane_title", {"pane_id": first["active_pane_id"], "title": character}),
    ):
        refusal = await session.refusal(tool, **arguments)
        assert refusal["code"] in {"invalid_name", "invalid_argument"}
        assert character not in refusal["message"]
    assert (await session.call("get_session_info", session="first")) == first


async def test_c65_formats_run_nothing(session: Session) -> None:
    """What tmux would run as a command, or expand, is a literal text everywhere, or refused."""
    work = session.place.work
    touch = f"#(touch {work}/hit)"
    created = await session.call("create_session", name="target")
    pane, window = created["pane_id"], created["window_id"]
    for text in (touch, "#{pid}", "#S"):
        for tool, arguments in (
            ("create_session", {"name": text}),
            ("create_session", {"window_name": text}),
            ("create_window", {"session": "target", "name": text}),
            ("rename_session", {"session": "target", "new_name": text}),
            ("rename_window", {"window_id": window, "new_name": text}),
            ("set_pane_title", {"pane_id": pane, "title": text}),
            ("select_layout", {"window_id": window, "layout": text}),
            ("create_session", {"start_directory": text}),
            ("get_session_info", {"session": text}),
            ("get_tmux_variables", {"names": [text], "pane_id": pane}),
            ("show_option", {"name": text, "scope": "session"}),
        ):
            await session.refusal(tool, **arguments)
        assert (await session.call("search_panes", pattern=text))["matches"] == []
        assert (await session.call("show_environment", names=[text]))["missing"] == [text]
        assert (await session.call("wait_for_channel", channel=text, timeout=0.01))["outcome"] == "timeout"
    directory = work / "#(touch hit)"
    directory.mkdir()
    for tool, arguments in (
        ("create_session", {}),
        ("create_window", {"session": "target"}),
        ("split_window", {"pane_id": pane}),
        ("respawn_pane", {"pane_id": pane, "kill": True}),
    ):
        made = await session.call(tool, start_directory=str(directory), **arguments)
        ran = await session.run(made["pane_id"], "pwd")
        assert said(ran) == ("completed", 0, str(directory))

    def control() -> bool:
        """Let tmux run a format's command, which it gives up when its client is gone too soon."""
        session.tmux("display-message", "-p", f"#(touch {work}/control)")
        return (work / "control").exists()

    await until(control)
    assert not list(session.place.directory.rglob("hit"))


async def test_c69_a_pane_that_was_killed(session: Session) -> None:
    """A pane that is gone is an error, not an empty screen."""
    pane = await session.pane()
    assert (await session.call("kill_pane", pane_id=pane))["pane_ids"] == [pane]
    for tool in (
        "capture_pane",
        "capture_since",
        "snapshot_pane",
        "get_pane_info",
        "send_keys",
        "wait_for_text",
    ):
        refusal = await session.refusal(tool, pane_id=pane, **OTHERWISE.get(tool, {}))
        assert refusal["code"] == "not_found"
        assert pane in refusal["message"]


async def test_c71_no_locale_at_all() -> None:
    """Started with next to no environment, everything reads the same."""
    async with own_session(LC_ALL=None, SHELL=None) as session:
        created = await session.call("create_session", name="日本", window_name="fenêtre 窓")
        pane = created["pane_id"]
        assert (await session.call("set_pane_title", pane_id=pane, title="título 標題"))[
            "title"
        ] == "título 標題"
        (row,) = (await session.call("list_panes", session="日本"))["panes"]
        assert (row["session"], row["title"]) == ("日本", "título 標題")
        (window,) = (await session.call("list_windows", session="日本"))["windows"]
        assert window["name"] == "fenêtre 窓"
        assert said(await session.run(pane, "printf '日本-%s' 語")) == ("completed", 0, "日本-語")
        (match,) = (await session.call("search_panes", pattern="日本-語"))["matches"]
        assert match["text"] == "日本-語"


async def test_c72_rows_are_what_tmux_says(session: Session) -> None:
    """However the fields are separated, every one has its own value, in every version of tmux."""
    created = await session.call("create_session", name="a|b,c d", window_name="x037;_'\"")
    pane = created["pane_id"]
    title = "one | two , three ; {x} \" ' = é"
    await session.call("set_pane_title", pane_id=pane, title=title)
    (row,) = (await session.call("list_panes", window_id=created["window_id"]))["panes"]
    asked = {
        "pane_id": "pane_id",
        "window_id": "window_id",
        "session_id": "session_id",
        "session": "session_name",
        "title": "pane_title",
        "path": "pane_current_path",
        "tty": "pane_tty",
        "pid": "pane_pid",
        "width": "pane_width",
        "index": "pane_index",
    }
    for field, variable in asked.items():
        value = session.tmux("display-message", "-p", "-t", pane, f"#{{{variable}}}").removesuffix("\n")
        assert str(row[field]) == value, field
    assert (row["title"], row["session"]) == (title, "a|b,c d")
