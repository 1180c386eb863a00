"""Typing and pasting, as the program in the pane gets it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path

import anyio
import pytest

from tests.sinks import Server, Sink
from tmuxmcp.errors import NotFound, PaneDead, PaneInMode, PaneInputOff, PaneSynchronized
from tmuxmcp.terminal.buffers import _seconds
from tmuxmcp.terminal.keyboard import Keyboard, Stroke, Typed, pasted

pytestmark = pytest.mark.anyio

TEXTS = (
    "a;",
    ";",
    ";;",
    "a\\;",
    "a ;",
    "find . -exec ls {} \\;",
    "--help",
    "-",
    "--",
    "-----BEGIN KEY-----",
    "Enter",
    "C-c",
    "#{pane_id} #(touch hit) ##",
    "$HOME ${x} `id` ~ %1 %%",
    "'\"\\'\"",
    " leading and trailing ",
    "tab\tnewline\nreturn\rend\n",
    "".join(map(chr, range(1, 32))) + "\x7f",
    "\x1b[201~ \x1b]0;t\x07 \x9b201~",
    "日本語 😀 é e\u0301 \u200d \U0010ffff",
)
"""Texts that some way to tmux changes."""


@pytest.fixture
def server(socket_path: Path) -> Server:
    return Server(socket_path)


@pytest.fixture
def keyboard(server: Server) -> Keyboard:
    return Keyboard(server.terminal)


async def test_every_text_arrives_byte_for_byte(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    for text in TEXTS:
        await keyboard.type_everywhere(sink.pane_id, Stroke(text))
        assert (await sink.take(len(text.encode()))).decode() == text
    assert await server.buffers() == []


async def test_every_text_reaches_every_synchronised_pane(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    for text in TEXTS:
        typed = await keyboard.type_everywhere(first.pane_id, Stroke(text, keys=["Enter"]))
        assert typed.reached == (first.pane_id, second.pane_id)
        for sink in (first, second):
            assert (await sink.take(len(text.encode()) + 1)).decode() == f"{text}\r"
    assert await server.buffers() == []


async def test_text_of_any_allowed_length(server: Server, keyboard: Keyboard) -> None:
    text = "0123456789abcdé" * 4096
    first, second = await synchronised(server)
    await keyboard.type_everywhere(first.pane_id, Stroke(text, keys=["Enter"]))
    for sink in (first, second):
        assert (await sink.take(len(text.encode()) + 1)).decode() == f"{text}\r"


async def test_keys_between_and_after(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    await keyboard.type(
        sink.pane_id, Stroke("text", before=["C-a"], keys=["C-c", ";", "'", '"', "-", "#", "Enter"])
    )
    assert await sink.take(12) == b"\x01text\x03;'\"-#\r"


async def test_only_those_panes_are_named_that_receive(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    third = await server.sink(split=first.pane_id)
    await server.tmux("copy-mode", "-t", third.pane_id)
    assert await both(keyboard, first) == (first.pane_id, second.pane_id)
    await server.tmux("copy-mode", "-q", "-t", third.pane_id)
    await server.tmux("select-pane", "-d", "-t", second.pane_id)
    assert await both(keyboard, first) == (first.pane_id, third.pane_id)
    await server.tmux("set-option", "-p", "-t", third.pane_id, "synchronize-panes", "off")
    assert await both(keyboard, first) == (first.pane_id,)
    assert await both(keyboard, third) == (third.pane_id,)
    await server.tmux("select-pane", "-e", "-t", second.pane_id)
    await server.tmux("resize-pane", "-Z", "-t", first.pane_id)
    assert await both(keyboard, first) == (first.pane_id,)
    for sink, size in ((first, 24), (second, 6), (third, 12)):
        assert len(await sink.take(size)) == size


async def test_dead_panes_do_not_receive(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    await server.tmux("set-option", "-p", "-t", second.pane_id, "remain-on-exit", "on")
    await server.tmux("respawn-pane", "-k", "-t", second.pane_id, "exit 3")
    await dead(server, second.pane_id)
    assert await both(keyboard, first) == (first.pane_id,)
    for act in acts(keyboard, second.pane_id):
        with pytest.raises(PaneDead):
            await act
    assert await server.buffers() == []


async def test_modes_and_closed_inputs_are_refused(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    await server.tmux("copy-mode", "-t", sink.pane_id)
    for act in acts(keyboard, sink.pane_id):
        with pytest.raises(PaneInMode, match="exit_copy_mode"):
            await act
    await server.tmux("copy-mode", "-q", "-t", sink.pane_id)
    await server.tmux("select-pane", "-d", "-t", sink.pane_id)
    for act in acts(keyboard, sink.pane_id):
        with pytest.raises(PaneInputOff):
            await act
    for act in acts(keyboard, "%99"):
        with pytest.raises(NotFound):
            await act
    assert await server.buffers() == []
    await server.tmux("select-pane", "-e", "-t", sink.pane_id)
    await keyboard.type(sink.pane_id, Stroke("end"))
    assert await sink.take(3) == b"end"


async def test_typing_into_one_pane_of_several_is_refused(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    with pytest.raises(PaneSynchronized, match="set_synchronize_panes"):
        await keyboard.type(first.pane_id, Stroke("x", keys=["Enter"]))
    with pytest.raises(PaneSynchronized):
        await keyboard.type(first.pane_id, Stroke(keys=["Enter"]))
    await both(keyboard, first)
    for sink in (first, second):
        assert len(await sink.take(6)) == 6


async def test_a_paste_reaches_one_pane(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    typed = await keyboard.paste(first.pane_id, "one\ntwo", bracketed=True, enter=True)
    assert typed.reached == (first.pane_id,)
    assert await first.take(8) == b"one\rtwo\r"
    await keyboard.paste(second.pane_id, "x", bracketed=False, enter=False)
    assert await second.take(1) == b"x"


async def test_brackets_only_for_a_program_that_asked(server: Server, keyboard: Keyboard) -> None:
    asked = await server.sink(says="\\033[?2004h")
    plain = await server.sink()
    text = "a\x1b[201~b\x9b201~c\x1b[0201~d\x1b[201;1~e\x1b[20\x1b[201~1~f\x1b[202~\x1b[31mg"
    tame = "a␛[201~b␛[201~c␛[0201~d␛[201;1~e\x1b[20␛[201~1~f\x1b[202~\x1b[31mg".encode()
    typed = await keyboard.paste(asked.pane_id, text, bracketed=True, enter=True)
    assert typed.wants_brackets in (None, True)
    assert await asked.take(len(tame) + 13) == b"\x1b[200~" + tame + b"\x1b[201~\r"
    typed = await keyboard.paste(asked.pane_id, text, bracketed=False, enter=False)
    assert (await asked.take(len(text.encode()))).decode() == text
    typed = await keyboard.paste(plain.pane_id, text, bracketed=True, enter=False)
    assert typed.wants_brackets in (None, False)
    assert await plain.take(len(tame)) == tame


def test_a_paste_has_a_terminals_line_ends() -> None:
    assert pasted("a\r\nb\nc\rd\n\n", bracketed=True) == "a\rb\rc\rd\r\r"
    assert pasted("\x1b[201~", bracketed=False) == "\x1b[201~"


async def test_pastes_of_megabytes(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    text = "0123456789abcdef" * (3 << 16)
    await keyboard.paste(sink.pane_id, text, bracketed=True, enter=False)
    assert await sink.take(len(text)) == text.encode()


async def test_a_program_that_does_not_read(server: Server, keyboard: Keyboard) -> None:
    """tmux keeps what is pasted until the program takes it, and answers others meanwhile."""
    await server.sink()
    rows = await server.tmux(
        "split-window", "-d", "-P", "-F", "#{pane_id}", "stty raw -echo; exec sleep 1000"
    )
    pane_id = rows.strip()
    with anyio.fail_after(10):
        await keyboard.paste(pane_id, "x" * (4 << 20), bracketed=False, enter=True)
        await keyboard.type_everywhere(pane_id, Stroke("more", keys=["Enter"]))
        assert pane_id in await server.tmux("list-panes", "-F", "#{pane_id}")
    assert await server.buffers() == []


async def test_nothing_to_paste(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    await keyboard.paste(sink.pane_id, "", bracketed=True, enter=False)
    await keyboard.paste(sink.pane_id, "", bracketed=True, enter=True)
    assert await sink.take(1) == b"\r"


async def test_no_text_is_in_a_process_list(server: Server, keyboard: Keyboard) -> None:
    first, _ = await synchronised(server)
    seen: list[str] = []
    run = server.client.runner.run

    async def watched(argv: list[str], **options: object) -> object:
        seen.append(" ".join(argv))
        return await run(argv, **options)  # type: ignore[arg-type]

    server.client.runner.run = watched  # type: ignore[method-assign,assignment]
    await keyboard.type_everywhere(first.pane_id, Stroke("hunter2"))
    await keyboard.paste(first.pane_id, "hunter2", bracketed=True, enter=True)
    assert seen
    assert not [line for line in seen if "hunter2" in line or b"hunter2".hex(" ") in line]


async def test_typed_lines_are_remembered(server: Server, keyboard: Keyboard) -> None:
    first, second = await synchronised(server)
    await keyboard.type_everywhere(first.pane_id, Stroke("echo one\n\n echo two", keys=["Enter"]))
    await keyboard.paste(second.pane_id, "three", bracketed=True, enter=True)
    assert [line.text for line in server.terminal.memory(first.pane_id).typed] == ["echo one", " echo two"]
    assert [line.text for line in server.terminal.memory(second.pane_id).typed] == [
        "echo one",
        " echo two",
        "three",
    ]
    await server.tmux("copy-mode", "-t", second.pane_id)
    with pytest.raises(PaneInMode):
        await keyboard.type_everywhere(second.pane_id, Stroke("refused"))
    assert "refused" not in [line.text for line in server.terminal.memory(second.pane_id).typed]


async def test_nothing_is_left_of_a_cancelled_paste(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    for delay in (0, 0.0005, 0.001, 0.002, 0.004, 0.008):
        with anyio.move_on_after(delay):
            await keyboard.paste(sink.pane_id, "x" * (1 << 20), bracketed=False, enter=False)
        assert await server.buffers() == []


async def test_buffers_of_dead_owners_are_swept(server: Server, keyboard: Keyboard) -> None:
    sink = await server.sink()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gone:
        gone.kill()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        soon = 9_000_000_000_000_000
        names = {
            f"tmuxmcp-{gone.pid}-{soon}-0": False,
            f"tmuxmcp-{living.pid}-{soon}-3": True,
            f"tmuxmcp-{living.pid}-1000000-1": False,  # that process has begun since
            f"tmuxmcp-{os.getpid()}-1000000-7": False,
            "tmuxmcp-notes": True,
            "buffer0": True,
        }
        for name in names:
            await server.tmux("set-buffer", "-b", name, "x")
        await keyboard.type(sink.pane_id, Stroke("x"))
        assert set(await server.buffers()) == {name for name, stays in names.items() if stays}
        living.kill()


def test_elapsed_times() -> None:
    assert _seconds("   00:05\n") == 5
    assert _seconds("01:02:03") == 3723
    assert _seconds("2-01:02:03") == 2 * 86400 + 3723
    assert _seconds("") is None


async def synchronised(server: Server) -> tuple[Sink, Sink]:
    first = await server.sink()
    second = await server.sink(split=first.pane_id)
    await server.tmux("set-option", "-w", "-t", first.window_id, "synchronize-panes", "on")
    return first, second


async def both(keyboard: Keyboard, sink: Sink) -> tuple[str, ...]:
    """Type two bytes by each way, and give the panes reached, which are the same."""
    typed: list[Typed] = [
        await keyboard.type_everywhere(sink.pane_id, Stroke("xx")),
        await keyboard.type_everywhere(sink.pane_id, Stroke(keys=["y", "y"])),
        await keyboard.type_everywhere(sink.pane_id, Stroke("x", keys=["y"])),
    ]
    assert len({each.reached for each in typed}) == 1
    return typed[0].reached


def acts(keyboard: Keyboard, pane_id: str) -> list[Coroutine[None, None, Typed]]:
    return [
        keyboard.type(pane_id, Stroke("lost", keys=["Enter"])),
        keyboard.type_everywhere(pane_id, Stroke("lost")),
        keyboard.type_everywhere(pane_id, Stroke(keys=["Enter"])),
        keyboard.paste(pane_id, "lost", bracketed=True, enter=True),
        keyboard.paste(pane_id, "", bracketed=True, enter=True),
    ]


async def dead(server: Server, pane_id: str) -> None:
    with anyio.fail_after(10):
        while await server.tmux("display-message", "-p", "-t", pane_id, "#{pane_dead}") != "1\n":
            await anyio.sleep(0.01)
