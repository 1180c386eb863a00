"""The runner for tests without tmux."""

from __future__ import annotations

import anyio
import pytest

from tmuxmcp.errors import NotFound, TmuxTimeout
from tmuxmcp.tmux.client import Client, Version
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.fake import FakeRunner, Invocation, rows
from tmuxmcp.tmux.records import Template
from tmuxmcp.tmux.runner import Output
from tmuxmcp.tmux.socket import Socket

LIST = command("list-panes", "-a")


def client(runner: FakeRunner) -> Client:
    return Client(runner, Socket("path", "path:/s", "/s"), "tmux")


async def test_replies_in_order_and_a_default() -> None:
    runner = FakeRunner("one", Output(0, b"two", ""), default="rest")
    assert [await client(runner).call(LIST) for _ in range(4)] == ["one", "two", "rest", "rest"]


async def test_what_was_asked_is_kept() -> None:
    runner = FakeRunner("")
    await client(runner).call(
        command("load-buffer", "-b", Arg("-b", "x"), "-"), stdin=b"text", cwd="/x", timeout=2, max_output=9
    )
    argv = ("tmux", "-u", "-N", "-S", "/s", "load-buffer", "-b", "x", "-")
    assert runner.calls == [Invocation(argv, b"text", "/x", None, 2, 9)]


async def test_errors_and_refusals() -> None:
    runner = FakeRunner(TmuxTimeout("late"), Output(1, b"", "can't find pane: %1\n"))
    with pytest.raises(TmuxTimeout):
        await client(runner).call(LIST)
    with pytest.raises(NotFound):
        await client(runner).call(command("has-session", "-t", target("%1")))


async def test_a_reply_can_look_at_the_call_and_wait() -> None:
    async def slowly(call: Invocation) -> str:
        await anyio.sleep(0)
        return call.argv[-1]

    assert await client(FakeRunner(slowly)).call(LIST) == "-a"


async def test_rows_answer_a_template() -> None:
    template = Template(id="#{pane_id}", title="#{pane_title}")
    wanted = [{"id": "%1", "title": "a\nb"}, {"id": "%2", "title": ""}]
    assert await client(FakeRunner(rows(template, *wanted))).rows(listing=LIST, template=template) == wanted
    with pytest.raises(AssertionError, match="does not ask"):
        await client(FakeRunner(rows(Template(id="#{window_id}")))).rows(listing=LIST, template=template)


async def test_the_version_needs_no_script() -> None:
    runner = FakeRunner(version="3.3a")
    assert await client(runner).version() == Version(3, 3, "a")
    assert runner.calls == []


async def test_an_unscripted_call_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no reply is scripted for tmux -u -N -S /s list-panes -a"):
        await client(FakeRunner()).call(LIST)
