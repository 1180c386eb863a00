"""The tools that type and paste, from arguments to what the program got and the caller was told."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.calls import Tools
from tests.sinks import Server, Sink, until
from tmuxmcp.errors import (
    InvalidArgument,
    NotFound,
    PaneDead,
    PaneInMode,
    PaneInputOff,
    PaneSynchronized,
    TooLarge,
    ToolError,
)
from tmuxmcp.settings import Settings
from tmuxmcp.terminal.cursor import Cursor
from tmuxmcp.terminal.keyboard import Keyboard, Stroke

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(socket_path: Path) -> Server:
    return Server(socket_path)


@pytest.fixture
def tools(server: Server) -> Tools:
    return Tools(server.terminal)


async def test_text_then_keys_then_enter(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    sent = await tools(
        "send_keys", pane_id=sink.pane_id, text="Enter;", keys=["Up", "C-c", "^D", "x"], enter=True
    )
    assert await sink.take(13) == b"Enter;\x1b[A\x03\x04x\r"
    assert sent["pane_ids"] == [sink.pane_id]
    assert tools.touched == [sink.pane_id]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidArgument),
        ({"text": "", "keys": [], "enter": False}, InvalidArgument),
        ({"keys": ["echo hi"]}, InvalidArgument),
        ({"keys": ["C-c", "Ctrl-C"]}, InvalidArgument),
        ({"keys": [""]}, InvalidArgument),
        ({"keys": ["x"] * 129}, InvalidArgument),
        ({"text": "a\0b"}, InvalidArgument),
        ({"text": "\ud800"}, InvalidArgument),
        ({"text": "x" * (64 * 1024 + 1)}, TooLarge),
        ({"text": "é" * (32 * 1024 + 1)}, TooLarge),
        ({"text": "x", "literal": True}, InvalidArgument),
    ],
)
async def test_what_cannot_be_sent_is_refused(
    server: Server, tools: Tools, arguments: dict[str, Any], error: type[ToolError]
) -> None:
    sink = await server.sink()
    with pytest.raises(error):
        await tools("send_keys", pane_id=sink.pane_id, **arguments)
    first = {"pane_id": sink.pane_id, "text": "first"}
    with pytest.raises(error):
        await tools("send_keys_batch", operations=[first, {"pane_id": sink.pane_id, **arguments}])
    await tools("send_keys", pane_id=sink.pane_id, text="end")
    assert await sink.take(3) == b"end"


async def test_the_longest_text_and_the_most_keys(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    text = "y" * (64 * 1024)
    await tools("send_keys", pane_id=sink.pane_id, text=text, keys=["C-a"] * 128, enter=True)
    assert await sink.take(len(text) + 129) == text.encode() + b"\x01" * 128 + b"\r"


async def test_ctrl_c_ends_a_program(server: Server, tools: Tools) -> None:
    await server.sink()
    made = await tools("create_session")
    await tools("respawn_pane", pane_id=made["pane_id"], command="echo runs; exec sleep 999", kill=True)
    with anyio.fail_after(20):
        # A key that comes before the program is there is nobody's.
        while "runs" not in await server.tmux("capture-pane", "-p", "-t", made["pane_id"]):
            await anyio.sleep(0.01)
        await tools("send_keys", pane_id=made["pane_id"], keys=["C-c"])
        while made["pane_id"] in await server.tmux("list-panes", "-a", "-F", "#{pane_id}"):
            await anyio.sleep(0.01)


async def test_twenty_callers_are_served_in_order_and_whole(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(send, tools, sink, f"<{number}:{'x' * number * 100}>")
    expected = "".join(f"<{number}:{'x' * number * 100}>\r" for number in range(20))
    assert (await sink.take(len(expected))).decode() == expected


async def send(tools: Tools, sink: Sink, text: str) -> None:
    await tools("send_keys", pane_id=sink.pane_id, text=text, enter=True)


async def test_typing_waits_for_nothing_but_typing(server: Server, tools: Tools) -> None:
    """A command that runs holds its pane's turn to run, not the keyboard."""
    sink = await server.sink()
    async with server.terminal.memory(sink.pane_id).run:
        with anyio.fail_after(10):
            await tools("send_keys", pane_id=sink.pane_id, text="a")
            await tools("paste_text", pane_id=sink.pane_id, text="b")
    assert await sink.take(2) == b"ab"


async def test_every_pane_that_receives_is_named(server: Server, tools: Tools) -> None:
    first = await server.sink()
    second = await server.sink(split=first.pane_id)
    window = await tools("set_synchronize_panes", window_id=first.window_id, enabled=True)
    assert window["synchronized"]
    assert tools.touched == [first.window_id]
    sent = await tools("send_keys", pane_id=second.pane_id, text="echo s", enter=True)
    assert sent["pane_ids"] == tools.touched == [second.pane_id, first.pane_id]
    pasted = await tools("paste_text", pane_id=first.pane_id, text="only", enter=True)
    assert pasted["pane_ids"] == [first.pane_id]
    assert await first.take(12) == b"echo s\ronly\r"
    with pytest.raises(PaneSynchronized):
        await Keyboard(server.terminal).type(first.pane_id, Stroke("x"))
    window = await tools("set_synchronize_panes", window_id=first.window_id, enabled=False)
    assert "synchronized" not in window
    await tools("send_keys", pane_id=second.pane_id, text="end")
    assert await second.take(10) == b"echo s\rend"


async def test_synchronizing_holds_for_every_pane(server: Server, tools: Tools) -> None:
    """Also for panes with a value of their own, which tmux would prefer."""
    first = await server.sink()
    second = await server.sink(split=first.pane_id)
    await server.tmux("set-option", "-p", "-t", second.pane_id, "synchronize-panes", "off")
    await tools("set_synchronize_panes", window_id=first.window_id, enabled=True)
    sent = await tools("send_keys", pane_id=first.pane_id, text="x")
    assert sent["pane_ids"] == [first.pane_id, second.pane_id]
    await server.tmux("set-option", "-p", "-t", second.pane_id, "synchronize-panes", "on")
    window = await tools("set_synchronize_panes", window_id=first.window_id, enabled=False)
    assert "synchronized" not in window
    sent = await tools("send_keys", pane_id=second.pane_id, text="x")
    assert sent["pane_ids"] == [second.pane_id]
    with pytest.raises(NotFound):
        await tools("set_synchronize_panes", window_id="@99", enabled=True)


async def test_input_that_would_be_lost_is_refused(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    pane = sink.pane_id

    async def refused(error: type[ToolError], match: str, pane_id: str = pane) -> None:
        inputs: list[tuple[str, dict[str, Any]]] = [
            ("send_keys", {"text": "LOST", "enter": True}),
            ("send_keys", {"keys": ["Enter"]}),
            ("paste_text", {"text": "LOST"}),
            ("paste_text", {"text": "", "enter": True}),
        ]
        for tool, arguments in inputs:
            with pytest.raises(error, match=match):
                await tools(tool, pane_id=pane_id, **arguments)

    await refused(NotFound, "%99", "%99")
    await server.tmux("copy-mode", "-t", pane)
    await refused(PaneInMode, "exit_copy_mode")
    await server.tmux("copy-mode", "-q", "-t", pane)
    await server.tmux("select-pane", "-d", "-t", pane)
    await refused(PaneInputOff, "select-pane -e")
    await server.tmux("select-pane", "-e", "-t", pane)
    await tools("send_keys", pane_id=pane, text="end")
    assert await sink.take(3) == b"end"
    await server.tmux("set-option", "-w", "-t", pane, "remain-on-exit", "on")
    await tools("respawn_pane", pane_id=pane, command="exit 3", kill=True)
    with anyio.fail_after(20):
        while await server.tmux("display-message", "-p", "-t", pane, "#{pane_dead}") != "1\n":
            await anyio.sleep(0.01)
    await refused(PaneDead, "respawn_pane")
    assert await server.buffers() == []


async def test_a_cursor_is_from_before_the_input(server: Server, tools: Tools) -> None:
    """Pane output that the input caused comes after it; each tool takes it in the same invocation."""
    sink = await server.sink(mode="true", says="one\\ntwo\\n")
    for tool in ("send_keys", "paste_text"):
        before = await row_of_cursor(server, sink)
        sent = await tools(tool, pane_id=sink.pane_id, text="echo\n", enter=True)
        cursor = Cursor.decode(sent["cursor"])
        assert (f"%{cursor.pane}", cursor.row) == (sink.pane_id, before)
        with anyio.fail_after(20):
            while await row_of_cursor(server, sink) != before + 2:
                await anyio.sleep(0.01)


async def row_of_cursor(server: Server, sink: Sink) -> int:
    return int(await server.tmux("display-message", "-p", "-t", sink.pane_id, "#{cursor_y}"))


async def test_a_batch_is_sent_in_order(server: Server, tools: Tools) -> None:
    first = await server.sink()
    second = await server.sink()
    sent = await tools(
        "send_keys_batch",
        operations=[
            {"pane_id": first.pane_id, "text": "a", "enter": True},
            {"pane_id": second.pane_id, "text": "b", "delay_ms": 1},
            {"pane_id": first.pane_id, "keys": ["C-c"]},
        ],
    )
    assert sent["results"] == [{"pane_ids": [each.pane_id]} for each in (first, second, first)]
    assert "stopped_at" not in sent
    assert f"%{Cursor.decode(sent['cursor']).pane}" == first.pane_id
    assert await first.take(3) == b"a\r\x03"
    assert await second.take(1) == b"b"


async def test_a_batch_stops_at_an_error_or_goes_on(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    operations = [{"pane_id": pane, "text": "x"} for pane in (sink.pane_id, "%99", sink.pane_id)]
    sent = await tools("send_keys_batch", operations=operations)
    assert sent["stopped_at"] == 1
    assert [sorted(result) for result in sent["results"]] == [["pane_ids"], ["error"]]
    assert sent["results"][1]["error"]["code"] == "not_found"
    sent = await tools("send_keys_batch", operations=operations, on_error="continue")
    assert "stopped_at" not in sent
    assert [sorted(result) for result in sent["results"]] == [["pane_ids"], ["error"], ["pane_ids"]]
    assert await sink.take(3) == b"xxx"


async def test_a_batch_is_checked_before_it_is_sent(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    good = {"pane_id": sink.pane_id, "text": "lost"}
    with pytest.raises(InvalidArgument, match=r"operations\[1\]") as caught:
        await tools("send_keys_batch", operations=[good, {"pane_id": sink.pane_id, "keys": ["Nope"]}])
    assert caught.value.details["index"] == 1
    for operations in ([], [good] * 33, [{**good, "delay_ms": 5001}], [{**good, "delay_ms": -1}]):
        with pytest.raises(InvalidArgument):
            await tools("send_keys_batch", operations=operations)
    short = Tools(server.terminal, Settings(toolsets=("execute",), wait_max_seconds=2))
    with pytest.raises(InvalidArgument, match="delays together"):
        await short("send_keys_batch", operations=[{**good, "delay_ms": 700}] * 3)
    await tools("send_keys", pane_id=sink.pane_id, text="end")
    assert await sink.take(3) == b"end"


async def test_a_batch_pauses_before_its_operations(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    started = server.terminal.clock.now()
    await tools("send_keys_batch", operations=[{"pane_id": sink.pane_id, "text": "x", "delay_ms": 60}] * 2)
    assert server.terminal.clock.now() - started >= 0.12


async def test_a_paste_says_what_arrived(server: Server, tools: Tools) -> None:
    sink = await server.sink(says="\\033[?2004h")
    pasted = await tools("paste_text", pane_id=sink.pane_id, text="a\tb\x1b[31mred\x07\r\né", enter=True)
    whole = "\x1b[200~a\tb\x1b[31mred\x07\ré\x1b[201~\r".encode()
    assert await sink.take(len(whole)) == whole
    assert pasted["bytes"] == len("a\tb\x1b[31mred\x07\ré".encode())
    assert pasted["pane_ids"] == [sink.pane_id]
    tells = await server.client.version() >= (3, 7)
    assert pasted.get("program_asked") == (True if tells else None)
    pasted = await tools("paste_text", pane_id=sink.pane_id, text="plain", bracketed=False)
    assert await sink.take(5) == b"plain"
    assert pasted.get("program_asked") == (True if tells else None)
    other = await server.sink()
    pasted = await tools("paste_text", pane_id=other.pane_id, text="plain")
    assert pasted.get("program_asked") == (False if tells else None)


async def test_a_paste_has_a_limit(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    with pytest.raises(TooLarge, match="4194304"):
        await tools("paste_text", pane_id=sink.pane_id, text="x" * ((4 << 20) + 1))
    pasted = await tools("paste_text", pane_id=sink.pane_id, text="")
    assert pasted["bytes"] == 0


async def test_a_file_gets_what_was_pasted(server: Server, tools: Tools) -> None:
    """Through a terminal in line mode, where Enter is a line end and C-d the end of the input."""
    sink = await server.sink(mode="stty -echo")
    text = "".join(f"line {number}; \\ 'q' \"d\" $HOME # é 😀\n" for number in range(500))
    await tools("paste_text", pane_id=sink.pane_id, text=text)
    assert (await sink.take(len(text.encode()))).decode() == text


@pytest.mark.parametrize(
    ("shell", "second"),
    [
        ("bash --norc --noprofile", "$((1+1))"),
        ("zsh -f", "$((1+1))"),
        ("fish", "(math 1+1)"),
    ],
)
async def test_a_prompt_keeps_the_lines_of_a_paste(
    server: Server, tools: Tools, shell: str, second: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    there = {"start_directory": str(server.directory)}
    pane = (await tools("create_session", **there))["pane_id"]
    await tools("respawn_pane", pane_id=pane, command=f"HOME=$PWD exec {shell}", kill=True, **there)
    await until_screen(server, pane, lambda screen: screen.rstrip().endswith(("$", "%", "#", ">")))
    await tools("paste_text", pane_id=pane, text=f"echo a >> out\necho b-{second} >> out")
    await until_screen(server, pane, lambda screen: "echo b-" in screen)
    out = server.directory / "out"
    assert not out.exists()
    await tools("send_keys", pane_id=pane, enter=True)
    await until(lambda: out.exists() and out.read_text() == "a\nb-2\n")


async def until_screen(server: Server, pane_id: str, condition: Callable[[str], bool]) -> None:
    with anyio.fail_after(20):
        while not condition(await server.tmux("capture-pane", "-p", "-t", pane_id)):
            await anyio.sleep(0.01)


async def test_unusual_text_arrives_as_it_is(server: Server, tools: Tools) -> None:
    sink = await server.sink()
    for text in ("日本語 😀 é e\u0301", "\x03", "a;", "--help", "-", "C-c", "\\;", "#{pid}"):
        deliver: list[Callable[[], Awaitable[Any]]] = [
            lambda text=text: tools("send_keys", pane_id=sink.pane_id, text=text),  # type: ignore[misc]
            lambda text=text: tools("paste_text", pane_id=sink.pane_id, text=text),  # type: ignore[misc]
        ]
        for act in deliver:
            await act()
            assert (await sink.take(len(text.encode()))).decode() == text
