"""Running commands: what went wrong between agents and terminals, case by case, through a client."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import anyio
import pytest

from tests.conftest import TMUX
from tests.session import Session, connected, meanwhile, own_session, place, said, together, until
from tmuxmcp.terminal.panes import Discipline

OWN = Path("/proc/self/cmdline")
PYTHON = Path(OWN.read_text().partition("\0")[0]).name if OWN.exists() else "python"
"""The name that this interpreter runs under: some are started by a loader of their own."""


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[Session]:
    async with own_session() as session:
        yield session


@pytest.fixture
async def pane(session: Session) -> str:
    return await session.pane()


async def test_c1_commands_sent_at_once(session: Session, pane: str) -> None:
    """Commands that are sent to one pane at once queue, and each keeps its own output and status."""
    answers = await together(*(session.run(pane, f"echo {n}; sleep 0.2; (exit {n})") for n in range(4)))
    assert [said(answer) for answer in answers] == [("completed", n, str(n)) for n in range(4)]


@pytest.mark.parametrize(
    ("delimiter", "text"),
    [
        ("'PY'", "print(1)"),
        ("EOF", "one\n\n  two\n"),
        ("'end of it'", "$HOME `id` \\ \"quoted\" 'text'\n# no comment"),
        ("'-X'", "x\n\ty"),
    ],
)
async def test_c2_heredocs(session: Session, pane: str, delimiter: str, text: str) -> None:
    """A here-document's text gets into the file as it is, and nothing else does."""
    body = text if text.endswith("\n") else text + "\n"
    command = f"cat > here <<{delimiter}\n{body}{delimiter.strip(chr(39))}"
    assert said(await session.run(pane, command)) == ("completed", 0, "")
    assert (session.place.work / "here").read_text() == body
    assert said(await session.run(pane, "echo back")) == ("completed", 0, "back")


@pytest.mark.parametrize("command", ["echo hi # note", "echo hi #", "echo hi;#'", '# first\necho hi # "'])
async def test_c3_comments(session: Session, pane: str, command: str) -> None:
    """A comment ends with its line and hides nothing behind it."""
    assert said(await session.run(pane, command)) == ("completed", 0, "hi")


async def test_c4_what_may_end_a_command(session: Session, pane: str) -> None:
    """An operator at the end is part of the command: it works, or is the shell's own syntax error."""
    assert said(await session.run(pane, "echo hi;")) == ("completed", 0, "hi")
    background = await session.run(pane, "sleep 1 &")
    assert (background["outcome"], background["exit_status"]) == ("completed", 0)
    assert re.fullmatch(r"\[1\] \d+", background["output"])
    assert background["elapsed_seconds"] < 1
    for unfinished in ("true &&", "true |", "false ||", "(true", "{ true", "if true; then", "true;;"):
        answer = await session.run(pane, unfinished)
        assert (answer["outcome"], answer["exit_status"]) == ("completed", 2), unfinished
        assert "syntax error" in answer["output"] or "unexpected EOF" in answer["output"], unfinished


@pytest.mark.parametrize(
    ("command", "output"),
    [("echo a \\", "a"), ("echo a\\\\", "a\\"), ("echo a\\\\\\", "a\\"), ("echo a \\\n  b \\", "a b")],
)
async def test_c5_a_trailing_backslash(session: Session, pane: str, command: str, output: str) -> None:
    """A backslash at the end joins with nothing of ours."""
    assert said(await session.run(pane, command)) == ("completed", 0, output)


@pytest.mark.parametrize(
    "command", ['echo "abc', "echo 'abc", "echo `abc", "echo $(abc", "echo ${abc", "cat <<'E"]
)
async def test_c6_an_unclosed_quote(session: Session, pane: str, command: str) -> None:
    """What is left open is an error of that command, and the next one runs as if nothing had been."""
    answer = await session.run(pane, command, timeout=5)
    assert answer["outcome"] == "completed"
    assert answer["exit_status"] != 0 or command.startswith("cat")
    assert said(await session.run(pane, "echo again")) == ("completed", 0, "again")


async def test_c7_exit(session: Session) -> None:
    """A command that ends the shell is told at once, with its status where the pane is kept."""
    pane = await session.pane()
    answer = await session.run(pane, "exit 3")
    outcome, status, output = said(answer)
    assert (outcome, status) == ("pane_gone", None)
    assert "logout".startswith(output)
    assert "ended its shell" in answer["note"]
    assert answer["truncated"]
    kept = await session.pane(name="kept")
    session.tmux("set-option", "-w", "-t", kept, "remain-on-exit", "on")
    outcome, status, output = said(await session.run(kept, "echo bye; exit 3"))
    assert outcome == "shell_exited"
    assert "bye\nlogout".startswith(output), "tmux can lose what was printed last in a pane that it keeps"
    assert status in (3, None), "and 3.3a the status"
    assert (await session.refusal("run_shell_command", pane_id=kept, command="true"))["code"] == "pane_dead"


async def test_c7_exit_in_the_last_pane() -> None:
    """When the tmux server ends with the shell, that is told too, and a new session can be made."""
    with place() as made:
        async with connected(made) as session:
            answer = await session.run(await session.pane(), "exit 3")
            assert answer["outcome"] == "server_gone"
            assert answer["elapsed_seconds"] < 5
            assert said(await session.run(await session.pane(), "echo new")) == ("completed", 0, "new")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", "mksh", "ksh"])
async def test_c8_no_final_newline(session: Session, shell: str) -> None:
    """Output that ends within a line is exact, without a mark that the shell puts there."""
    assert said(await session.run(await session.pane(shell), "printf nonl")) == ("completed", 0, "nonl")


async def test_c9_fish(session: Session) -> None:
    """fish keeps its own grammar, and its statuses arrive."""
    pane = await session.pane("fish")
    assert said(await session.run(pane, "false")) == ("completed", 1, "")
    assert said(await session.run(pane, "echo hi; echo $status")) == ("completed", 0, "hi\n0")
    loop = "for i in 1 2\n  echo $i\nend"
    assert said(await session.run(pane, loop)) == ("completed", 0, "1\n2")


@pytest.mark.parametrize(
    ("command", "output"),
    [("echo wow!", "wow!"), ("echo 'a!b' \"c!\"", "a!b c!"), ('echo "!!" !$ !-1', "!! !$ !-1")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_c11_exclamation_marks(session: Session, shell: str, command: str, output: str) -> None:
    """The history of an interactive shell takes no part in a command."""
    assert said(await session.run(await session.pane(shell), command)) == ("completed", 0, output)


async def test_c12_the_shell_goes_on(session: Session, pane: str) -> None:
    """Directory, variables, functions and options last from one command to the next."""
    await session.run(pane, "cd /usr; export FOO=bar; f() { echo f-$1; }; set -o noglob")
    assert said(await session.run(pane, "pwd; echo $FOO; f *")) == ("completed", 0, "/usr\nbar\nf-*")


@pytest.mark.parametrize("wiping", ["clear", "tput clear", "printf '\\033[2J\\033[H'", "printf '\\033c'"])
async def test_c13_clear(session: Session, pane: str, wiping: str) -> None:
    """A command that wipes the screen ends as any other, with the output that it left there."""
    assert said(await session.run(pane, f"echo before; {wiping}; echo after"))[:2] == ("completed", 0)
    answer = await session.run(pane, f"{wiping}; echo after")
    assert said(answer) == ("completed", 0, "after")


def numbers(first: int, last: int) -> str:
    return "\n".join(map(str, range(first, last + 1)))


async def test_c14_more_output_than_asked_for(session: Session, pane: str) -> None:
    """Long output is cut to its tail, and the number of lines left out is exact."""
    answer = await session.run(pane, "seq 1 5000")
    assert said(answer) == ("completed", 0, numbers(4501, 5000))
    assert (answer["truncated"], answer["dropped_lines"], answer["lines"]) == (True, 4500, 500)
    answer = await session.run(pane, "seq 1 5000", max_lines=5000)
    assert said(answer) == ("completed", 0, numbers(1, 5000))
    assert (answer["truncated"], answer["dropped_lines"]) == (False, 0)


async def test_c14_more_output_than_the_history_holds(session: Session, pane: str) -> None:
    """When the beginning has left the history, the tail comes with the reason."""
    answer = await session.run(pane, "seq 1 200000")
    assert said(answer) == ("completed", 0, numbers(199501, 200000))
    assert (answer["truncated"], answer["reason"]) == (True, "trimmed")
    assert answer["dropped_lines"] > 40_000


async def test_c15_more_output_than_the_screen_holds(session: Session) -> None:
    """Output is read from the history as well as from the screen."""
    pane = await session.pane(width=80, height=24)
    answer = await session.run(pane, "seq 1 300")
    assert said(answer) == ("completed", 0, numbers(1, 300))
    assert answer["truncated"] is False


async def test_c16_one_long_line(session: Session, pane: str) -> None:
    """A line of any length is one line; what does not fit is cut by bytes, and said."""
    answer = await session.run(pane, "head -c 20000 /dev/zero | tr '\\0' x")
    assert said(answer) == ("completed", 0, "x" * 20000)
    assert answer["truncated"] is False
    answer = await session.run(pane, "head -c 20000 /dev/zero | tr '\\0' x; echo END", max_bytes=1000)
    assert said(answer) == ("completed", 0, "x" * 997 + "END")
    assert answer["truncated"] is True


@pytest.mark.parametrize(
    ("start", "program", "names"),
    [
        (f"{sys.executable} -q", PYTHON, PYTHON),
        ("sleep 30", "sleep", "sleep"),
        ("less here", "less", "less"),
    ],
)
async def test_c19_a_busy_pane(session: Session, pane: str, start: str, program: str, names: str) -> None:
    """Nothing is typed into a program that is no shell; the refusal names it and what helps."""
    (session.place.work / "here").write_text(numbers(1, 100))
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text=start, enter=True)
    await until(lambda: session.program(pane).startswith(program))
    await session.call("wait_for_text", pane_id=pane, quiet_for=0.3)
    before = session.screen(pane)
    refusal = await session.refusal("run_shell_command", pane_id=pane, command="1+1")
    assert refusal["code"] == "pane_busy"
    assert names in refusal["details"]["program"]
    assert names in refusal["message"]
    assert "send_keys" in refusal["message"]
    assert session.screen(pane) == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "mksh"])
async def test_c19_the_end_of_a_pipeline(session: Session, shell: str) -> None:
    """A pager is seen as well when what feeds it has ended, and tmux takes the shell for the program."""
    pane = await session.pane(shell)
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text="seq 1 3000 | less", enter=True)
    before = await session.shows(pane, "49\n:")
    refusal = await session.refusal("run_shell_command", pane_id=pane, command="!date")
    assert (refusal["code"], refusal["details"]["program"]) == ("pane_busy", "less")
    assert session.screen(pane) == before
    await session.call("send_keys", pane_id=pane, text="q")
    assert said(await session.run(pane, "echo free")) == ("completed", 0, "free")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "mksh"])
async def test_c20_a_half_typed_line(session: Session, shell: str) -> None:
    """A line that somebody left at the prompt is put aside, not joined with the command."""
    pane = await session.pane(shell)
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text="partial typed ")
    await session.shows(pane, "partial typed")
    assert said(await session.run(pane, "echo dirty-$(math 1+1 2>/dev/null || expr 1 + 1)")) == (
        "completed",
        0,
        "dirty-2",
    )


async def test_c22_a_shell_that_is_killed(session: Session) -> None:
    """A run ends at once when its shell or its pane is killed."""
    pane = await session.pane()
    answer = await session.run(pane, "kill -9 $$")
    assert answer["outcome"] == "pane_gone"
    pane = await session.pane()
    await session.prompt(pane)

    async def kill() -> None:
        await session.runs(pane, "sleep")
        await session.call("kill_pane", pane_id=pane)

    killed = time.monotonic()
    answer = await meanwhile(session.run(pane, "sleep 60"), kill())
    assert answer["outcome"] == "pane_gone"
    assert time.monotonic() - killed < 10


async def test_c22_a_channel_that_nobody_signals(session: Session) -> None:
    """Waiting for a signal that does not come ends with the timeout."""
    answer = await session.call("wait_for_channel", channel="never", timeout=0.5)
    assert answer["outcome"] == "timeout"


async def test_c24_a_channel_with_dashes(session: Session, pane: str) -> None:
    """The whole name of a channel counts, wherever the signal comes from."""

    async def signal() -> None:
        await session.prompt(pane)
        await session.run(pane, f"{TMUX} wait-for -S a-b; {TMUX} wait-for -S a-b-c")

    answer = await meanwhile(session.call("wait_for_channel", channel="a-b-c", timeout=20), signal())
    assert answer["outcome"] == "signaled"


async def test_c25_cancelled_runs_leave_nothing(session: Session) -> None:
    """Cancelled calls leave no tmux process behind, and the panes can be used."""
    panes = [await session.pane() for _ in range(10)]
    await together(*map(session.prompt, panes))
    async with anyio.create_task_group() as tasks:
        for pane in panes:
            tasks.start_soon(session.run, pane, "sleep 60")
        for pane in panes:
            await session.runs(pane, "sleep")
        tasks.cancel_scope.cancel()
    await session.call("list_sessions")
    await until(lambda: not session.place.clients())
    assert (await session.refusal("run_shell_command", pane_id=panes[0], command="true"))[
        "code"
    ] == "pane_busy"
    await session.call("send_keys", pane_id=panes[0], keys=["C-c"])
    assert said(await session.run(panes[0], "echo free")) == ("completed", 0, "free")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", "mksh", "ksh"])
async def test_c26_nothing_but_the_output(session: Session, shell: str) -> None:
    """No prompt, no echo, no older text and no mark of ours is in an output."""
    pane = await session.pane(shell)
    assert said(await session.run(pane, "echo one")) == ("completed", 0, "one")
    assert said(await session.run(pane, "echo two")) == ("completed", 0, "two")
    assert said(await session.run(pane, "true")) == ("completed", 0, "")


async def test_c27_a_progress_bar(session: Session, pane: str) -> None:
    """A line that is drawn over itself is told as the terminal shows it at last."""
    bar = 'for i in 1 2 3; do printf "\\r$i%%"; sleep 0.1; done; echo'
    assert said(await session.run(pane, bar)) == ("completed", 0, "3%")


@pytest.mark.parametrize("elsewhere", ["exec >/dev/null", "printf() { :; }", "exec >log 2>&1"])
async def test_c26_a_shell_that_shows_nothing(session: Session, pane: str, elsewhere: str) -> None:
    """Where no mark of ours can show, a command runs once all the same, and no success is made up."""
    await session.prompt(pane)
    await session.call("send_keys", pane_id=pane, text=elsewhere, enter=True)
    count = session.place.work / f"count-{pane[1:]}"
    answer = await session.run(pane, f"echo x >> {count}", timeout=5)
    assert count.read_text() == "x\n"
    assert answer["outcome"] == "timed_out" or (answer["outcome"], answer["exit_status"]) == ("completed", 0)


async def test_c32_a_password_prompt(session: Session, pane: str) -> None:
    """A prompt is answered with send_keys while the run waits; the audit record holds no plain text."""
    await session.prompt(pane)
    tty = session.tmux("display-message", "-p", "-t", pane, "#{pane_tty}").strip()

    async def answer() -> None:
        await until(lambda: Discipline.of(tty) == Discipline(canonical=True, echo=False))
        await session.call("send_keys", pane_id=pane, text="hunter2", enter=True)

    ran = await meanwhile(session.run(pane, "read -s x; echo ${#x}"), answer())
    assert said(ran) == ("completed", 0, "7")
    record = session.place.audit.read_text()
    typed = [event for event in map(json.loads, record.splitlines()) if event["tool"] == "send_keys"][-1]
    assert typed["arguments"]["text"]["length"] == 7
    assert "hunter2" not in record + session.place.errors.read_text()


@pytest.mark.parametrize("text", ["collecting ... ", "Password: ", "root@host:~# ", "$ ", ">>> ", "> ", "% "])
async def test_c33_output_that_looks_like_a_prompt(session: Session, pane: str, text: str) -> None:
    """Nothing that a command prints is taken for its end."""
    answer = await session.run(pane, f"printf '{text.replace('%', '%%')}'; sleep 0.6; echo; echo done")
    assert said(answer) == ("completed", 0, f"{text}\ndone")


async def test_c34_a_command_that_fails_at_once(session: Session, pane: str) -> None:
    """A failure's text is there however fast it was."""
    answer = await session.run(pane, f"{sys.executable} -c 'import nope'")
    assert (answer["outcome"], answer["exit_status"]) == ("completed", 1)
    assert answer["output"].startswith("Traceback (most recent call last):\n")
    assert answer["output"].endswith("\nModuleNotFoundError: No module named 'nope'")
    missing = await session.run(pane, "/nonexistent/program")
    assert missing["exit_status"] == 127
    assert missing["output"].endswith("/nonexistent/program: No such file or directory")


async def test_c36_a_quick_command_is_quick(session: Session, pane: str) -> None:
    """A command's end is seen when it comes, not at the end of a fixed pause."""
    await session.prompt(pane)
    times = []
    for _ in range(30):
        begun = time.monotonic()
        await session.run(pane, "true")
        times.append(time.monotonic() - begun)
    assert median(times) < 0.15, sorted(times)


async def test_c37_a_pattern_that_could_backtrack_for_ever(session: Session) -> None:
    """A hostile pattern costs neither its own call nor others their time."""
    pane = await session.pane(width=200, height=24)
    await session.run(pane, "for i in $(seq 100); do printf %0190d! 0 | tr 0 a; done")

    async def others() -> None:
        while True:
            begun = time.monotonic()
            await session.call("list_sessions")
            assert time.monotonic() - begun < 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        searched = await session.call("search_panes", pattern="(a+)+$", regex=True, history_lines=1000)
        waited = await session.call(
            "wait_for_text", pane_id=pane, patterns=["(a+)+$"], regex=True, timeout=0.5
        )
        tasks.cancel_scope.cancel()
    assert "matches" in searched
    assert waited["outcome"] == "timeout"
    assert waited["elapsed_seconds"] < 3


async def test_c38_which_timeout_it_was(session: Session, pane: str) -> None:
    """A result names the timeout that held; one that cannot be kept is cut to the ceiling, or refused."""
    answer = await session.run(pane, "sleep 5", timeout=1)
    assert answer["outcome"] == "timed_out"
    assert answer["effective_timeout"] == 1
    assert 1 <= answer["elapsed_seconds"] < 4
    assert answer["still_running"] is True
    await session.call("send_keys", pane_id=pane, keys=["C-c"])
    assert (await session.run(pane, "true", timeout=3600))["effective_timeout"] == 30
    for timeout in (0, -1, 3601):
        refusal = await session.refusal("run_shell_command", pane_id=pane, command="true", timeout=timeout)
        assert refusal["code"] == "invalid_argument"
        assert "timeout" in refusal["message"]


# What several servers were measured with, in two shells each.

TABLE = [
    ("echo hi;", 0, "hi"),
    ("printf nonl", 0, "nonl"),
    ("cat <<'E'\none\n  two\nthree\nE", 0, "one\n  two\nthree"),
    ("echo hi # note", 0, "hi"),
    ("echo a \\", 0, "a"),
    ("echo wow!", 0, "wow!"),
    ("clear; echo x", 0, "x"),
    ("printf '%05000d' 0", 0, "0" * 5000),
    ("false", 1, ""),
    ("(exit 3)", 3, ""),
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
async def test_the_table(session: Session, shell: str) -> None:
    """Ordinary and awkward commands, one after the other in one pane, are all exact."""
    pane = await session.pane(shell)
    for command, status, output in TABLE:
        assert said(await session.run(pane, command)) == ("completed", status, output), command
    unclosed = await session.run(pane, 'echo "abc')
    assert unclosed["outcome"] == "completed"
    assert unclosed["exit_status"] != 0
    background = await session.run(pane, "sleep 1 &")
    assert (background["exit_status"], background["elapsed_seconds"] < 1) == (0, True)
    assert said(await session.run(pane, "seq 1 5000", max_lines=5000)) == ("completed", 0, numbers(1, 5000))
    await session.run(pane, "cd /usr; FOO=1")
    assert said(await session.run(pane, "pwd; echo $FOO")) == ("completed", 0, "/usr\n1")


async def test_the_table_a_shell_that_is_still_starting(session: Session) -> None:
    """A command for a new pane waits until its slow shell is ready."""
    profile = session.place.home / ".bash_profile"
    profile.write_text("echo starting; sleep 1.5; echo started\n")
    try:
        answer = await session.run(await session.pane(), "echo ready")
    finally:
        profile.unlink()
    assert said(answer) == ("completed", 0, "ready")


async def test_the_table_panes_side_by_side(session: Session) -> None:
    """Commands in different panes run at the same time."""
    panes = [await session.pane() for _ in range(4)]
    await together(*map(session.prompt, panes))
    begun = time.monotonic()
    answers = await together(*(session.run(pane, f"sleep 1; echo {pane}") for pane in panes))
    assert time.monotonic() - begun < 3
    assert [said(answer) for answer in answers] == [("completed", 0, pane) for pane in panes]


async def test_the_table_a_cancelled_run(session: Session, pane: str) -> None:
    """What runs in a pane goes on when its call is cancelled, and its end is still there to see."""
    await session.prompt(pane)
    cursor = (await session.call("capture_since", pane_id=pane))["cursor"]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.run, pane, "sleep 1; echo went on > went; cat went")
        await session.runs(pane, "sleep")
        tasks.cancel_scope.cancel()
    answer = await session.call(
        "wait_for_text", pane_id=pane, cursor=cursor, patterns=["^went on$"], regex=True
    )
    assert answer["outcome"] == "matched"
    assert (session.place.work / "went").read_text() == "went on\n"
