"""Typing and pasting: what went wrong between agents and terminals, case by case, through a client."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.session import Session, own_session, said, together, until


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[Session]:
    async with own_session() as session:
        yield session


@pytest.fixture
async def pane(session: Session) -> str:
    return await session.pane()


class Sink:
    """A pane whose program writes each byte that it receives into a file, and onto the screen."""

    def __init__(self, session: Session, pane: str) -> None:
        self.pane = pane
        self._session = session
        self._file = session.place.work / f"got-{pane[1:]}"

    async def open(self, mode: str) -> Sink:
        command = f"stty {mode}; echo ready; exec tee {self._file}"
        await self._session.call("respawn_pane", pane_id=self.pane, kill=True, command=command)
        await self._session.shows(self.pane, "ready")
        await until(self._file.exists)
        return self

    async def received(self, expected: str | bytes) -> None:
        """Assert that this, and nothing else, has arrived; it ends in what arrives only once."""
        data = expected.encode() if isinstance(expected, str) else expected
        got = await until(lambda: got if len(got := self._file.read_bytes()) >= len(data) else b"")
        assert got == data


async def sink(session: Session, mode: str = "raw -echo") -> Sink:
    return await Sink(session, await session.pane()).open(mode)


AWKWARD = [
    "a;",
    ";",
    ";;",
    "a\\;",
    "a ;",
    "find . -exec ls {} \\;",
    "a\\",
    "'",
    '"',
    "$(id)",
    "#{pid}",
    "{",
    "%1",
]
DASHED = ["--help", "-----BEGIN KEY-----", "-", "--", "-l", "-N 5 x", "-t %0"]
NAMES_OF_KEYS = ["Enter", "Space", "Up", "C-c", "Escape", "0x41", "M-x", "^C"]


@pytest.mark.parametrize("payloads", [AWKWARD, DASHED, NAMES_OF_KEYS], ids=["c41", "c42", "c43"])
async def test_c41_to_c43_text_is_literal(session: Session, payloads: list[str]) -> None:
    """Text arrives byte by byte: no final semicolon is lost, no dash is an option, no word is a key."""
    into = await sink(session)
    for text in payloads:
        await session.call("send_keys", pane_id=into.pane, text=text, enter=True)
    operations = [{"pane_id": into.pane, "text": text, "enter": True} for text in payloads]
    await session.call("send_keys_batch", operations=operations)
    for text in payloads:
        await session.call("paste_text", pane_id=into.pane, text=text, enter=True)
    await into.received("".join(f"{text}\r" for text in payloads) * 3)


async def test_c41_names_that_end_in_a_semicolon(session: Session) -> None:
    """A final semicolon of a name is kept, wherever a name is set."""
    created = await session.call("create_session", name="nm;", window_name="w;")
    row = await session.call("get_window_info", window_id=created["window_id"])
    assert (created["name"], row["name"], row["session"]) == ("nm;", "w;", "nm;")
    window = created["window_id"]
    assert (await session.call("rename_session", session="nm;", new_name="other;"))["name"] == "other;"
    assert (await session.call("rename_window", window_id=window, new_name="x;;"))["name"] == "x;;"
    titled = await session.call("set_pane_title", pane_id=created["pane_id"], title="kill-server;")
    assert titled["title"] == "kill-server;"
    assert (await session.call("kill_session", session="other;"))["session_ids"] == [created["session_id"]]


async def test_c42_names_that_begin_with_a_dash(session: Session, pane: str) -> None:
    """A name that tmux could take for an option is refused, with the reason."""
    window = (await session.call("get_pane_info", pane_id=pane))["window_id"]
    for tool, arguments in (
        ("rename_window", {"window_id": window, "new_name": "-x"}),
        ("rename_session", {"session": "first", "new_name": "-t"}),
        ("create_session", {"name": "-d"}),
    ):
        refusal = await session.refusal(tool, **arguments)
        assert refusal["code"] == "invalid_name"
        assert "-" in refusal["message"]


async def test_c43_keys_are_keys(session: Session, pane: str) -> None:
    """A key by its name does what the key does; a name that is none is refused before anything is sent."""
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text="sleep 999", enter=True)
    await session.runs(pane, "sleep")
    for name in ("Ctrl-C", "C-cc", "Return", ""):
        refusal = await session.refusal("send_keys", pane_id=pane, text="lost", keys=[name])
        assert refusal["code"] == "invalid_argument"
    await session.call("send_keys", pane_id=pane, keys=["C-c"])
    await session.runs(pane, "bash")
    assert "lost" not in session.screen(pane)


async def test_c44_keys_without_enter(session: Session, pane: str) -> None:
    """Single keys drive a full-screen program."""
    (session.place.work / "lines").write_text("".join(f"line {n}\n" for n in range(1, 201)))
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text="less lines", enter=True)
    await session.shows(pane, "line 1\n")
    await session.call("send_keys", pane_id=pane, text="j")
    await until(lambda: session.screen(pane).startswith("line 2\n"))
    await session.call("send_keys", pane_id=pane, text="G")
    await session.shows(pane, "line 200")
    await session.call("send_keys", pane_id=pane, text="q")
    await session.runs(pane, "bash")
    assert said(await session.run(pane, "echo back")) == ("completed", 0, "back")


async def test_c47_long_text(session: Session) -> None:
    """Text beyond one message of tmux arrives whole; beyond our limit it is refused with what takes more."""
    into = await sink(session)
    long, longest = "0123456789" * 2000, "x" * (64 * 1024)
    await session.call("send_keys", pane_id=into.pane, text=long, enter=True)
    await session.call("send_keys", pane_id=into.pane, text=longest, enter=True)
    refusal = await session.refusal("send_keys", pane_id=into.pane, text=longest + "x")
    assert refusal["code"] == "too_large"
    assert "paste_text" in refusal["message"]
    pasted = "y" * 500_000
    answer = await session.call("paste_text", pane_id=into.pane, text=pasted, enter=True)
    assert answer["bytes"] == 500_000
    await into.received(f"{long}\r{longest}\r{pasted}\r")


async def test_c47_long_text_for_synchronized_panes(session: Session) -> None:
    """It arrives whole in every pane that receives it."""
    into = await sink(session)
    split = await session.call("split_window", pane_id=into.pane)
    beside = await Sink(session, split["pane_id"]).open("raw -echo")
    await session.call("set_synchronize_panes", window_id=split["window_id"], enabled=True)
    text = "0123456789é" * 2000
    answer = await session.call("send_keys", pane_id=into.pane, text=text, enter=True)
    assert sorted(answer["pane_ids"]) == sorted([into.pane, beside.pane])
    await together(into.received(f"{text}\r"), beside.received(f"{text}\r"))


async def test_c48_lines_longer_than_a_terminal_takes(session: Session, pane: str) -> None:
    """A terminal in line mode cuts a line; paste_text says so, and run_shell_command gets around it."""
    assert "4096 bytes" in await session.description("paste_text")
    if sys.platform == "linux":
        cooked = await sink(session, "cooked -echo")
        await session.call("paste_text", pane_id=cooked.pane, text="y" * 5000, enter=True)
        await cooked.received("y" * 4095 + "\n")
    for length in (5_000, 100_000):
        text = "y" * length
        answer = await session.run(pane, f"printf %s {text}; printf %s {text} | wc -c", max_bytes=200_000)
        assert answer["exit_status"] == 0
        assert answer["output"].split() == [text + str(length)]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_c50_c51_a_paste_of_several_lines(session: Session, shell: str) -> None:
    """All lines wait at the prompt, in every version of tmux, until Enter is sent."""
    pane = await session.pane(shell)
    await session.prompt(pane)
    answer = await session.call("paste_text", pane_id=pane, text="echo a\necho b")
    assert answer["pane_ids"] == [pane]
    assert answer.get("program_asked", True) is True
    await session.shows(pane, "echo b")
    await session.call("send_keys", pane_id=pane, enter=True)
    screen = await session.shows(pane, "\na\nb\n")
    assert "200~" not in screen
    assert screen.index("echo a\n") < screen.index("echo b\n") < screen.index("\na\nb\n")


async def test_c50_a_paste_into_a_program_that_did_not_ask(session: Session) -> None:
    """Without brackets line ends arrive as Enter, and no bracket is left in the text."""
    into = await sink(session)
    answer = await session.call("paste_text", pane_id=into.pane, text="one\ntwo\r\nthree", enter=True)
    assert answer.get("program_asked", False) is False
    await into.received("one\rtwo\rthree\r")


async def test_c50_a_paste_cannot_leave_its_brackets(session: Session) -> None:
    """What would end the paste is made visible, so that nothing of the text is taken for typing."""
    into = await sink(session)
    asks = f"printf '\\033[?2004h'; stty raw -echo; echo asked; exec tee {session.place.work}/asked"
    await session.call("respawn_pane", pane_id=into.pane, kill=True, command=asks)
    await session.shows(into.pane, "asked")
    await session.call("paste_text", pane_id=into.pane, text="safe\x1b[201~\nrm -rf x")
    got = await until(
        lambda: data if (data := _read(session.place.work / "asked")).endswith(b"201~") else b""
    )
    assert got == "\x1b[200~safe\u241b[201~\rrm -rf x\x1b[201~".encode()


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def input_calls(pane: str) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that types into a pane."""
    return [
        ("send_keys", {"pane_id": pane, "text": "echo LOST", "enter": True}),
        ("send_keys", {"pane_id": pane, "keys": ["q"]}),
        ("paste_text", {"pane_id": pane, "text": "echo LOST\n"}),
        ("run_shell_command", {"pane_id": pane, "command": "echo LOST"}),
    ]


@pytest.mark.parametrize("mode", ["copy-mode", "clock-mode", "choose-tree"])
async def test_c52_a_pane_in_a_mode(session: Session, pane: str, mode: str) -> None:
    """A mode would swallow what is typed, so it is refused; the refusal says how to leave it, which works."""
    await session.prompt(pane)
    if mode == "copy-mode":
        assert (await session.call("enter_copy_mode", pane_id=pane))["in_mode"] is True
    else:
        session.tmux(mode, "-t", pane)
    for tool, arguments in input_calls(pane):
        refusal = await session.refusal(tool, **arguments)
        assert refusal["code"] == "pane_in_mode"
        assert "exit_copy_mode" in refusal["message"]
    batch = await session.call("send_keys_batch", operations=[{"pane_id": pane, "text": "LOST"}])
    assert batch["results"][0]["error"]["code"] == "pane_in_mode"
    assert "in_mode" not in await session.call("exit_copy_mode", pane_id=pane)
    assert said(await session.run(pane, "echo x")) == ("completed", 0, "x")
    assert "LOST" not in session.screen(pane)


async def test_c54_synchronized_panes(session: Session, pane: str) -> None:
    """Keys name every pane that they reach; a command, which would run in each, is refused."""
    split = await session.call("split_window", pane_id=pane)
    both = sorted([pane, split["pane_id"]])
    await together(*map(session.prompt, both))
    row = await session.call("set_synchronize_panes", window_id=split["window_id"], enabled=True)
    assert row["synchronized"] is True
    answer = await session.call("send_keys", pane_id=pane, text="echo s-$((1+1))", enter=True)
    assert sorted(answer["pane_ids"]) == both
    for each in both:
        await session.shows(each, "s-2\n")
    refusal = await session.refusal("run_shell_command", pane_id=pane, command="true")
    assert refusal["code"] == "pane_synchronized"
    assert "set_synchronize_panes" in refusal["message"]
    pasted = await session.call("paste_text", pane_id=pane, text="echo only-$((1+1))", enter=True)
    assert pasted["pane_ids"] == [pane]
    await session.shows(pane, "only-2\n")
    assert "only" not in session.screen(split["pane_id"])
    await session.call("set_synchronize_panes", window_id=split["window_id"], enabled=False)
    assert said(await session.run(pane, "echo one")) == ("completed", 0, "one")


async def test_c55_control_characters(session: Session, pane: str) -> None:
    """They arrive as they are, but for NUL, which no terminal program expects."""
    into = await sink(session)
    text = "a\tb\x1b[31mred\x07\x03\x04\x15\x16\x7f"
    await session.call("send_keys", pane_id=into.pane, text=text, enter=True)
    await session.call("paste_text", pane_id=into.pane, text=text, enter=True)
    await into.received(f"{text}\r{text}\r")
    for tool, arguments in (
        ("send_keys", {"text": "a\0b"}),
        ("paste_text", {"text": "a\0b"}),
        ("run_shell_command", {"command": "echo a\0b"}),
    ):
        refusal = await session.refusal(tool, pane_id=pane, **arguments)
        assert refusal["code"] == "invalid_argument"
        assert "NUL" in refusal["message"]
    # tmux keeps tabs from 3.7 on.
    assert (await session.run(pane, "printf '%s' 'a\tb'"))["output"].expandtabs() == "a       b"


UNICODE = "日本語 😀 é e\u0301 \u202e→ ‘’ ẞ 👩‍👩‍👧"


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
async def test_c57_any_character(locale: str) -> None:
    """The same code points arrive and come back, in a UTF-8 locale and without one."""
    async with own_session(LC_ALL=locale) as session:
        await any_character(session)


async def any_character(session: Session) -> None:
    into = await sink(session)
    await session.call("send_keys", pane_id=into.pane, text=UNICODE, enter=True)
    await session.call("paste_text", pane_id=into.pane, text=UNICODE, enter=True)
    await into.received(f"{UNICODE}\r{UNICODE}\r")
    pane = await session.pane()
    for text in ("日本語 😀 é", "→ ‘’ ẞ"):
        assert said(await session.run(pane, f"printf '%s' '{text}'")) == ("completed", 0, text)
        assert text in (await session.call("capture_pane", pane_id=pane))["content"].split("\n")


async def test_what_a_command_repeats_of_its_input_is_output(session: Session) -> None:
    """The echo of an answer is not output; the command's own line with it is."""
    pane = await session.pane()
    asked = await session.run(pane, "read -p 'name? ' n; echo hi $n", timeout=0.5)
    assert asked["outcome"] == "timed_out"
    typed = await session.call("send_keys", pane_id=pane, text="bob", enter=True)
    waited = await session.call(
        "wait_for_text", pane_id=pane, cursor=typed["cursor"], patterns=["hi bob"], timeout=10
    )
    assert (waited["outcome"], waited["matched_lines"]) == ("matched", ["hi bob"])
