"""wait_for_text's engine, on a real tmux."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from tests.conftest import installed
from tests.panes import Pane, pane
from tmuxmcp.errors import InvalidCursor, NotFound
from tmuxmcp.terminal import matching
from tmuxmcp.terminal.cursor import Cursor, Mark
from tmuxmcp.terminal.handle import Handle
from tmuxmcp.terminal.keyboard import Stroke
from tmuxmcp.terminal.wait import Wait, Waited, Wanted

pytestmark = pytest.mark.anyio


def matcher(*patterns: str, regex: bool = False) -> matching.Matcher:
    return matching.compile(patterns, regex=regex, match_case=True)


async def wait(p: Pane, wanted: Wanted, timeout: float = 20, cursor: Cursor | None = None) -> Waited:
    return await Wait(p.terminal, p.id, wanted, deadline=anyio.current_time() + timeout).until(cursor)


async def while_waiting(
    p: Pane, wanted: Wanted, act: Callable[[], Awaitable[object]], timeout: float = 20
) -> Waited:
    """The wait's end, when `act` happens after the wait has begun to look."""
    waited: list[Waited] = []

    async def begin() -> None:
        waited.append(await wait(p, wanted, timeout))

    calls = p.client.runner.calls if hasattr(p.client.runner, "calls") else None
    assert calls is None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(begin)
        await anyio.sleep(0.3)
        await act()
    return waited[0]


async def typed(p: Pane, text: str) -> Cursor:
    """Type a line, and the cursor from just before it."""
    mark = Mark(p.id)
    done = await p.keyboard.type_everywhere(p.id, Stroke(text=text, keys=("Enter",)), along=mark.commands)
    return mark.parse(done.printed)[0]


async def test_new_output_matches_and_the_echo_does_not(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        cursor = await typed(p, "sleep 0.5; echo READY")
        waited = await wait(p, Wanted(matcher("READY")), cursor=cursor)
        assert (waited.outcome, waited.pattern, list(waited.lines)) == ("matched", 0, ["READY"])
        again = await wait(p, Wanted(matcher("READY")), timeout=0.5, cursor=waited.cursor)
        assert (again.outcome, again.before) == ("timeout", True)


async def test_what_is_typed_ahead_of_the_prompt_is_shown_twice(socket_path: Path) -> None:
    async with pane(socket_path, "bash", rc="sleep 0.7\n") as p:
        cursor = await typed(p, "sleep 0.3; echo READY")
        waited = await wait(p, Wanted(matcher("READY")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["READY"])


async def test_nothing_between_typing_and_waiting_is_missed(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        cursor = await typed(p, "echo AT-ONCE; seq 1 3000")
        await p.screen("\n3000")
        waited = await wait(p, Wanted(matcher("AT-ONCE")), cursor=cursor)
        assert (waited.outcome, list(waited.lines), waited.before) == ("matched", ["AT-ONCE"], False)


async def test_the_next_prompt_is_new_though_it_looks_like_the_old_one(socket_path: Path) -> None:
    async with pane(socket_path, "bash", rc="PS1='$ '\n") as p:
        await p.run("true")
        cursor = await typed(p, "sleep 0.5")
        begun = anyio.current_time()
        waited = await wait(p, Wanted(matcher(r"^\$ $", regex=True)), cursor=cursor)
        assert waited.outcome == "matched"
        assert anyio.current_time() - begun > 0.2
        waited = await while_waiting(
            p, Wanted(matcher(r"^\$ $", regex=True)), lambda: p.type("sleep 0.3", "Enter")
        )
        assert waited.outcome == "matched"


@pytest.mark.parametrize("asks", ["printf 'na''me? '", "echo 'na''me?'"])
@pytest.mark.parametrize("name", ["bash", "zsh"])
async def test_an_answer_that_is_repeated_is_output(socket_path: Path, name: str, asks: str) -> None:
    """The terminal shows what `read` is given; only a prompt would show it again."""
    async with pane(socket_path, name) as p:
        await p.run("true")
        await typed(p, f'{asks}; read x; sleep 0.3; echo "$x"')
        await p.screen("\nname?")
        cursor = await typed(p, "hello")
        waited = await wait(p, Wanted(matcher("hello")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["hello"])


@pytest.mark.parametrize(
    "does",
    [
        'read x; sleep 0.3; echo "got $x"',
        'read x; sleep 0.3; echo "$x world"',
        'read x; sleep 0.3; echo "<$x>"',
        "bash -c 'read x; sleep 0.3; echo \"got $x\"'",
    ],
)
async def test_an_answer_among_other_words_is_output(socket_path: Path, does: str) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        await typed(p, f"printf 'na''me? '; {does}")
        await p.screen("\nname?")
        cursor = await typed(p, "hello")
        begun = anyio.current_time()
        waited = await wait(p, Wanted(matcher("hello")), cursor=cursor)
        assert (waited.outcome, len(waited.lines)) == ("matched", 1)
        assert "name?" not in waited.lines[0]
        assert anyio.current_time() - begun > 0.2


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("name", "rc"),
    [("bash", ""), ("zsh", ""), ("zsh", "PROMPT='%D{%S} %# '\nRPROMPT='[%~]'\n"), ("fish", "")],
)
async def test_what_is_typed_ahead_of_a_program_is_shown_twice(
    socket_path: Path, name: str, rc: str, known: bool
) -> None:
    async with pane(socket_path, name, rc=rc) as p:
        if known:
            await p.run("true")
        await typed(p, "sleep 1")
        await p.program("sleep")
        cursor = await typed(p, "sleep 0.5; echo READY")
        waited = await wait(p, Wanted(matcher("READY")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["READY"])


@pytest.mark.parametrize(
    "before", [": xxxxxxxxxxxxxxxx", ": " + "y" * 60, ": words that end at the edge of it, and"]
)
@pytest.mark.parametrize(
    ("name", "rc"),
    [("bash", ""), ("zsh", ""), ("zsh", "RPROMPT='[%~]'\n"), ("fish", ""), ("ksh", ""), ("dash", "")],
)
async def test_the_echo_of_a_line_that_is_longer_than_the_pane(
    socket_path: Path, name: str, rc: str, before: str
) -> None:
    """zsh and ksh93 break what is typed at the edge: for tmux those are lines of their own."""
    async with pane(socket_path, installed(name), rc=rc, size="40x20") as p:
        await p.run("true")
        begun = anyio.current_time()
        cursor = await typed(p, f"sleep 0.7; {before}; echo READY; : and more words")
        waited = await wait(p, Wanted(matcher("READY")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["READY"])
        assert anyio.current_time() - begun > 0.5


@pytest.mark.parametrize("before", ["> ", "=> ", "100% "])
async def test_what_a_program_makes_of_its_input_is_output(socket_path: Path, before: str) -> None:
    """It stands behind what a prompt may look like, while the program that was typed to still runs."""
    async with pane(socket_path, "bash") as p:
        await typed(p, f"sed -u 's/^/{before}/'")
        await p.program("sed")
        for line in ("hello", "hello again"):
            cursor = await typed(p, line)
            waited = await wait(p, Wanted(matcher(f"{before}hello")), cursor=cursor)
            assert (waited.outcome, list(waited.lines)) == ("matched", [before + line])


@pytest.mark.parametrize("reads", ["read -rs k; echo", "read -r k"])
async def test_an_answer_behind_what_looks_like_a_prompt_is_output(socket_path: Path, reads: str) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        await typed(p, f"printf 'ke''y? '; {reads}; sleep 0.3; bash -c 'echo \"> $1\"' - \"$k\"")
        await p.screen("\nkey?")
        cursor = await typed(p, "hello")
        waited = await wait(p, Wanted(matcher("hello")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["> hello"])


@pytest.mark.parametrize("name", ["bash", "zsh"])
async def test_what_is_typed_ahead_of_a_busy_shell_is_shown_twice(socket_path: Path, name: str) -> None:
    async with pane(socket_path, name) as p:
        await typed(p, "echo be''gun; for ((i = 0; i < 2000000; i++)); do :; done")
        await p.screen("\nbegun")
        cursor = await typed(p, "sleep 0.5; echo READY")
        waited = await wait(p, Wanted(matcher("READY")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["READY"])


@pytest.mark.parametrize(
    ("asks", "answer", "says"),
    [
        ("printf 'Su''re? '; stty -echo; read x; stty echo; sleep 0.3; echo", "y", "Ready to go"),
        ("printf 'Su''re? '; read -rsn1 x; sleep 0.3; echo", "y", "Ready to go"),
        ("printf 'Su''re? '; read -rsn1 x; sleep 0.3; echo", "y", "yes: Ready"),
        ("printf 'Su''re? '; read x; sleep 0.3; echo", "y", "really"),
        (
            "printf 'Su''re? '; stty -icanon -echo; head -c 1 >/dev/null; stty sane; sleep 0.3; echo",
            "1",
            "Step 1",
        ),
        (
            "printf 'Su''re? '; stty -echo; read x; stty echo; sleep 0.3; echo",
            "token",
            "bad token seen",
        ),
    ],
)
async def test_output_keeps_what_an_unseen_or_short_answer_has_in_common_with_it(
    socket_path: Path, asks: str, answer: str, says: str
) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        await typed(p, f"{asks}; echo '{says}'")
        await p.screen("\nSure? ")
        cursor = await typed(p, answer)
        waited = await wait(p, Wanted(matcher(says)), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", [says])


async def test_text_that_is_cleared_and_printed_again(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("echo DONE-1")
        cursor = await typed(p, "sleep 0.2; clear; printf 'DONE-%d\\n' 1")
        waited = await wait(p, Wanted(matcher("DONE-1")), cursor=cursor)
        assert (waited.outcome, list(waited.lines)) == ("matched", ["DONE-1"])


async def test_text_across_a_wrap(socket_path: Path) -> None:
    async with pane(socket_path, "bash", size="40x10") as p:
        await p.run("true")
        cursor = await typed(p, "printf '%050d-END\\n' 7")
        waited = await wait(p, Wanted(matcher("00007-END")), cursor=cursor)
        assert waited.outcome == "matched"
        assert list(waited.lines) == [f"{7:050d}-END"]


async def test_output_beyond_the_history_is_looked_through(socket_path: Path) -> None:
    async with pane(socket_path, "bash", options="set -g history-limit 500") as p:
        await p.run("seq 1 600")
        cursor = await typed(p, "echo NEEDLE; seq 1000 1300")
        await p.screen("\n1300")
        waited = await wait(p, Wanted(matcher("NEEDLE")), cursor=cursor)
        assert waited.outcome == "matched"


async def test_several_patterns_and_stops_tell_which(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        cursor = await typed(p, "printf 'x: %s\\n' two")
        waited = await wait(p, Wanted(matcher("x: one", "x: two")), cursor=cursor)
        assert (waited.outcome, waited.pattern) == ("matched", 1)
        cursor = await typed(p, "printf 'x: %s\\n' error")
        waited = await wait(p, Wanted(matcher("never"), stop=matcher("nope", "x: error")), cursor=cursor)
        assert (waited.outcome, waited.pattern) == ("stopped", 1)


async def test_any_output_and_silence(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        assert (await wait(p, Wanted(), timeout=0.3)).outcome == "timeout"
        waited = await while_waiting(p, Wanted(), lambda: p.run("echo something"))
        assert waited.outcome == "any_output"
        await typed(p, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done")
        await p.screen("\n1\n")
        waited = await wait(p, Wanted(quiet_for=0.4))
        assert waited.outcome == "quiet"
        assert "6" in waited.tail


async def test_a_full_screen_program(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        (socket_path.parent / "text").write_text("".join(f"row {n}\n" for n in range(200)))
        await p.type(f"less {socket_path.parent}/text", "Enter")
        await p.screen("row 0")
        waited = await while_waiting(p, Wanted(matcher("row 99")), lambda: p.type("", *"50g"))
        assert waited.outcome == "timeout" or waited.alternate
        waited = await while_waiting(p, Wanted(matcher("row 199")), lambda: p.type("G"))
        assert (waited.outcome, waited.alternate) == ("matched", True)
        assert (await wait(p, Wanted(matcher("row 199")), timeout=0.3)).outcome == "timeout"


async def test_a_command_that_timed_out_is_waited_for(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        ending = await p.run("echo begin; sleep 1; sh -c 'exit 7'", timeout=0.4)
        assert ending.outcome == "timed_out"
        assert ending.marks
        assert ending.state
        handle = Handle.decode(Handle.of(ending.marks, ending.state).encode())
        assert (await wait(p, Wanted(run=handle), timeout=0.2)).outcome == "timeout"
        for _ in range(2):
            waited = await wait(p, Wanted(run=handle))
            assert (waited.outcome, waited.status) == ("run_completed", 7)


async def test_an_interrupted_command_is_not_waited_for_in_vain(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await p.run("/bin/sleep 60", timeout=0.4)
        assert ending.marks
        assert ending.state
        handle = Handle.of(ending.marks, ending.state)
        waited = await while_waiting(p, Wanted(run=handle), lambda: p.type("", "C-c"))
        assert (waited.outcome, waited.status) == ("run_completed", None)
        assert "interrupted" in waited.note


@pytest.mark.parametrize("after", ["true", "clear", "seq 1 2500"])
async def test_a_command_whose_marks_are_gone_is_not_waited_for_in_vain(
    socket_path: Path, after: str
) -> None:
    async with pane(socket_path, "bash", options="set -g history-limit 2000") as p:
        ending = await p.run("/bin/sleep 60", timeout=0.4)
        assert ending.marks
        assert ending.state
        await p.keyboard.type_everywhere(p.id, Stroke(keys=("C-c",)))
        await p.run(after)
        p.tmux("clear-history") if after == "clear" else None
        handle = Handle.of(ending.marks, ending.state)
        waited = await wait(p, Wanted(run=handle))
        assert (waited.outcome, waited.status) == ("run_completed", None)
        assert ("interrupted" in waited.note) == (after == "true")


async def test_a_handle_of_another_program_is_refused(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await p.run("/bin/sleep 60", timeout=0.4)
        assert ending.marks
        assert ending.state
        handle = Handle.of(ending.marks, ending.state)
        p.tmux("respawn-pane", "-k", "-t", p.id)
        with pytest.raises(InvalidCursor, match="respawned"):
            await wait(p, Wanted(run=handle))
        with pytest.raises(InvalidCursor):
            Handle.decode("AAAA")


async def test_the_end_of_the_pane_ends_the_wait(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        p.tmux("new-session", "-d")

        async def kill() -> None:
            p.tmux("kill-pane", "-t", p.id)

        assert (await while_waiting(p, Wanted(matcher("never")), kill)).outcome == "pane_gone"
        with pytest.raises(NotFound):
            await wait(p, Wanted(matcher("never")))


async def test_the_end_of_the_server_ends_the_wait(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")

        async def kill() -> None:
            p.tmux("kill-server")

        assert (await while_waiting(p, Wanted(matcher("never")), kill)).outcome == "server_gone"
