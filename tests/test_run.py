"""run_shell_command's engine, in real shells on a real tmux."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.panes import Pane, pane
from tmuxmcp.errors import NotFound, PaneBusy, PaneDead, PaneInMode, PaneSynchronized, TmuxFailed
from tmuxmcp.terminal.keyboard import Stroke, Typed
from tmuxmcp.terminal.panes import Look
from tmuxmcp.terminal.run import Runner
from tmuxmcp.terminal.shells import KILL, Marks, is_mark
from tmuxmcp.terminal.watch import Ending

pytestmark = pytest.mark.anyio


def is_fish(shell: str) -> bool:
    return Path(shell).name == "fish"


def told(ending: Ending) -> tuple[str, int | None, str]:
    return ending.outcome, ending.status, ending.text


async def test_output_and_status_are_exact(socket_path: Path, shell: str) -> None:
    """The commands that other tools wrap wrongly: comments, separators, heredocs, quotes, blanks."""
    cases = [
        ("true", 0, ""),
        ("false", 1, ""),
        ("echo hi;", 0, "hi\n"),
        ("echo hi # note", 0, "hi\n"),
        ("echo a \\", 0, "a\n"),
        ("printf nonl", 0, "nonl"),
        ("echo; echo", 0, "\n\n"),
        ("printf '  a   \\n\\n   \\n'", 0, "  a   \n\n   \n"),
        ("echo 'a!b' \"c\"", 0, "a!b c\n"),
        ("echo wow!", 0, "wow!\n"),
        ("printf '12345\\r'", 0, "12345"),
        ("printf 'é日本😀 e\\314\\201\\n' # é", 0, "é日本😀 e\u0301\n"),
        ("echo 'a\tb'", 0, "a\tb\n"),
        ("echo 'one\ntwo'", 0, "one\ntwo\n"),
        ("echo one\n\necho two", 0, "one\ntwo\n"),
        ("sh -c 'exit 213'", 213, ""),
        ("printf 'a\\003b\x03\x04\x15\x16\x7f\r'", 0, "ab"),
        ("#{pane_id} only a comment", 0, ""),
        ("", 0, ""),
    ]
    if not is_fish(shell):
        cases += [
            ("cat <<'E'\n$x `y` \\z\nE", 0, "$x `y` \\z\n"),
            ("cat <<E\n$((1+1))\nE\n", 0, "2\n"),
            ("f() { return 7; }; f", 7, ""),
        ]
    async with pane(socket_path, shell) as p:
        for command, status, output in cases:
            ending = await p.run(command)
            # Up to 3.5a tmux remembers a tab as the blanks that it skipped.
            text = ending.text.replace("a       b", "a\tb")
            assert (command, ending.outcome, ending.status, text) == (command, "completed", status, output)


async def test_what_a_builtin_says_on_standard_error_is_not_late(socket_path: Path) -> None:
    """mksh holds it back until it starts another process."""
    async with pane(socket_path, "mksh") as p:
        ending = await p.run("kill")
        assert (ending.outcome, ending.status) == ("completed", 1)
        assert ending.text.startswith("usage:")


async def test_marks_of_digits_alone_are_no_file_descriptors(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Marks, "new", lambda: Marks("4023193444640433"))
            assert told(await p.run("echo one\necho two")) == ("completed", 0, "one\ntwo\n")


async def test_state_of_the_shell_lasts(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        await p.run("cd /usr; set -gx FOO bar" if is_fish(shell) else "cd /usr; export FOO=bar")
        assert told(await p.run("pwd; echo $FOO")) == ("completed", 0, "/usr\nbar\n")


async def test_a_syntax_error_is_a_status(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        for command in ('echo "abc', "(", "echo )", "echo $(", "if"):
            ending = await p.run(command)
            assert ending.outcome == "completed", command
            assert ending.status not in (None, 0), command
            assert ending.text.strip(), command
            assert told(await p.run("echo again")) == ("completed", 0, "again\n")


async def test_long_commands_and_long_output(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        assert told(await p.run(f"echo '{'z' * 200_000}' | wc -c | tr -d ' '")) == (
            "completed",
            0,
            "200001\n",
        )
        lines = "".join(f"line {n}\n" for n in range(5000))
        assert told(await p.run(f"echo '{lines}' | wc -l | tr -d ' '")) == ("completed", 0, "5001\n")
        assert told(await p.run("head -c 20000 /dev/zero | tr '\\0' x")) == ("completed", 0, "x" * 20_000)
        assert told(await p.run("seq 1 5000")) == ("completed", 0, "".join(f"{n}\n" for n in range(1, 5001)))


async def test_output_beyond_the_history_says_so(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell, options="set -g history-limit 1000") as p:
        ending = await p.run("seq 1 20000")
        assert (ending.outcome, ending.status, ending.reason) == ("completed", 0, "trimmed")
        numbers = ending.text.split()
        assert numbers == [str(n) for n in range(20_001 - len(numbers), 20_001)]
        assert len(numbers) > 900


async def test_clear_in_a_command(socket_path: Path, shell: str) -> None:
    """`clear` under our terminal description keeps the history; one that wipes it is told."""
    async with pane(socket_path, shell) as p:
        kept = await p.run("echo before; clear; echo after")
        assert (kept.outcome, kept.status, kept.reason) == ("completed", 0, None)
        assert kept.text.split() == ["before", "after"]
        wiped = await p.run("echo before; printf '\\033[H\\033[2J\\033[3J'; echo after")
        assert (*told(wiped), wiped.reason) == ("completed", 0, "after\n", "cleared")
        painted = await p.run("printf '\\033[H'; echo over")
        assert painted.text.startswith("over")
        assert painted.reason == "cleared"


async def test_output_that_leaves_the_terminal_in_the_middle_of_something(
    socket_path: Path, shell: str
) -> None:
    """A string or a sequence that was never ended does not take the closing mark with it."""
    async with pane(socket_path, shell) as p:
        for left, output in (
            ("x\\033]0;title", "x"),
            ("x\\033Pdata", "x"),
            ("x\\033_data", "x"),
            ("x\\033^data", "x"),
            ("x\\033[", "x"),
            ("x\\033[?1", "x"),
            ("x\\033", "x"),
            ("x\\r", "x"),
            ("xyz\\033[2D", "xyz"),
            ("\\033(0x", "x"),
            ("\\033[8mx", "x"),
            ("\\033(B", ""),
        ):
            assert told(await p.run(f"printf '{left}'")) == ("completed", 0, output), left
        half = await p.run("printf 'x\\303'")  # of a character; tmux 3.7 shows that there was one
        assert told(half._replace(text=half.text.removesuffix("\ufffd"))) == ("completed", 0, "x")
        painted = await p.run("printf 'over\\n\\033[H'")
        assert (painted.outcome, painted.status, painted.reason) == ("completed", 0, "cleared")
        assert not any(map(is_mark, painted.text.split("\n")))
        assert told(await p.run("echo anew")) == ("completed", 0, "anew\n")


async def test_a_half_typed_line_is_not_glued_to_the_command(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        await p.run("true")
        await p.type("partial typed ")
        await p.screen("partial typed")
        assert told(await p.run("echo dirty-2")) == ("completed", 0, "dirty-2\n")


async def test_an_unfinished_line_is_interrupted(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        await p.type("echo 'open", "Enter")
        await p.screen("> ")
        assert told(await p.run("echo once")) == ("completed", 0, "once\n")


async def test_an_interrupted_command_has_a_status(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(interrupt, p, "sleep")
            ending = await p.run("echo started; /bin/sleep 60; echo not reached")
        assert ending.outcome == "completed"
        assert ending.status in (130, 258), "258 is ksh93's 256 + SIGINT"
        assert ending.text.startswith("started")
        assert "not reached" not in ending.text
        assert told(await p.run("echo next")) == ("completed", 0, "next\n")


@pytest.mark.parametrize(
    ("shell", "rc"),
    [
        ("bash", "PS1='\\n[\\t] \\w\\n$ '\n"),
        ("zsh", "PROMPT=$'\\n%~ %*\\n❯ '; RPROMPT='%*'; setopt transient_rprompt\n"),
        ("fish", 'function fish_prompt; echo; prompt_pwd; echo -n "[$status] > "; end\n'),
    ],
)
async def test_prompts_of_several_lines_that_change(socket_path: Path, shell: str, rc: str) -> None:
    async with pane(socket_path, shell, rc=rc) as p:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(interrupt, p, "sleep")
                ending = await p.run("cd /usr; echo started; /bin/sleep 60")
            assert ending.outcome == "completed"
            assert ending.status == 130
            assert re.fullmatch(r"started\n(\^C\n?)?", ending.text)


async def interrupt(p: Pane, program: str) -> None:
    await p.program(program)
    await p.type("", "C-c")


async def test_typing_answers_a_command_that_asks(socket_path: Path, shell: str) -> None:
    """Only typing is serialised: input passes while a command waits for it."""
    ask = "sh -c 'stty -echo; printf \"Password: \"; read p; stty echo; echo; echo got $p'"
    async with pane(socket_path, shell) as p:

        async def answer() -> None:
            await p.screen("\nPassword:")
            await p.type("hunter2", "Enter")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            ending = await p.run(ask)
        assert told(ending) == ("completed", 0, "Password: \ngot hunter2\n")


async def test_a_key_that_a_shell_builtin_reads_is_not_a_prompt(socket_path: Path) -> None:
    """bash leaves canonical mode for `read -n1` too; the question must not be answered by us."""
    async with pane(socket_path, "bash") as p:

        async def answer() -> None:
            await p.screen("\nContinue?")
            await anyio.sleep(0.6)  # longer than a prompt has to stand still to be believed
            await p.type("y")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            ending = await p.run("read -s -n1 -p 'Continue? ' x; echo \"=$x=\"")
        assert told(ending) == ("completed", 0, "Continue? =y=\n")


async def test_commands_in_one_pane_queue(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        endings: list[Ending] = []

        async def run(n: int) -> None:
            endings.append(await p.run(f"echo {n}; sleep 0.1; echo {n}"))

        async with anyio.create_task_group() as tasks:
            for n in range(4):
                tasks.start_soon(run, n)
        assert sorted(map(told, endings)) == [("completed", 0, f"{n}\n{n}\n") for n in range(4)]


async def test_a_queued_command_keeps_its_own_time(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p, anyio.create_task_group() as tasks:
        tasks.start_soon(p.run, "sleep 2")
        await p.screen("sleep 2")
        assert (await p.run("echo never", timeout=0.3)).outcome == "not_started"
        assert "never" not in p.tmux("capture-pane", "-p")


async def test_after_a_timeout_the_command_goes_on(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await p.run("echo early; sleep 60", timeout=0.5)
        assert (*told(ending), ending.running) == ("timed_out", None, "early", True)
        assert ending.note.startswith("'sleep' has the terminal. Answer it with send_keys")
        with pytest.raises(PaneBusy, match="sleep"):
            await p.run("echo no")


async def test_a_look_that_fails_is_taken_again(socket_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be no descriptor, or somebody kills a client: the command goes on."""
    looks: list[int] = []

    async with pane(socket_path, "bash") as p:
        look = p.terminal.look

        async def fail_twice(*args: Any, **options: Any) -> Look:
            looks.append(len(looks))
            if 2 <= looks[-1] < 4:
                raise TmuxFailed("It ended with -11 and said nothing.")
            return await look(*args, **options)

        await p.run("true")
        monkeypatch.setattr(p.terminal, "look", fail_twice)
        assert told(await p.run("echo begin; sleep 0.5; echo end; (exit 5)")) == (
            "completed",
            5,
            "begin\nend\n",
        )
        assert len(looks) > 4


@pytest.mark.parametrize(
    ("shell", "prompt", "asks", "answer"),
    [
        ("bash", "PS1='root@vm:# '", "read -e -p 'root: ' x", "hello"),
        ("bash", "PS1='$ '", "read -e -p '$HOME? ' x", "hello"),
        ("zsh", "PS1='vm%# '", "vared -p 'vm> ' x", "hello"),
        ("fish", "function fish_prompt; echo 'root# '; end", "read -P 'root: ' x", "hello"),
    ],
)
async def test_a_question_that_begins_like_the_prompt_is_no_prompt(
    socket_path: Path, shell: str, prompt: str, asks: str, answer: str
) -> None:
    async with pane(socket_path, shell, rc=f"x=\n{prompt}\n" if shell == "zsh" else f"{prompt}\n") as p:
        ending = await p.run(f"{asks}; echo \"got $x\"; sh -c 'exit 4'", timeout=1.5)
        assert (ending.outcome, ending.running) == ("timed_out", True)
        await p.type(answer, "Enter")
        assert "got hello" in await p.screen("got hello")


async def test_a_full_screen_program_covers_the_output_and_nothing_else(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        ending = await p.run("echo before; less /etc/passwd", timeout=1)
        assert (*told(ending), ending.reason) == ("timed_out", None, "before", None)
        assert "'less' has the terminal and has painted the whole screen" in ending.note
        await p.type("q")
        assert told(await p.run("tput smcup; echo on the other screen; false"))[:2] == ("completed", 1)
        assert (await p.run("tput rmcup")).outcome == "completed"


async def test_the_end_of_an_inner_shell_with_another_prompt(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        assert (await p.run("PS1='inner> ' sh", timeout=1)).outcome == "timed_out"
        ending = await p.run("exit 4")
        assert (ending.outcome, ending.status) == ("shell_exited", 4)


async def test_other_programs_are_refused(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        await p.run("true")
        for command, program in (
            ("/bin/sleep 60", "sleep"),
            ("less /etc/passwd", "less"),
            ("sh -c 'sleep 60; true'", "sh"),
        ):
            await p.type(command, "Enter")
            await p.program(program)
            with pytest.raises(PaneBusy) as refusal:
                await p.run("echo typed")
            assert refusal.value.details["program"].split()[0] == program
            assert "echo typed" not in p.tmux("capture-pane", "-p")
            await p.type("", *(["q"] if program == "less" else ["C-c"]))
            assert (await p.run("true")).outcome == "completed"


async def test_panes_that_take_no_input_are_refused(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        p.tmux("copy-mode", "-t", p.id)
        with pytest.raises(PaneInMode):
            await p.run("true")
        p.tmux("copy-mode", "-q", "-t", p.id)
        p.tmux("split-window", "-d")
        p.tmux("set-option", "-w", "synchronize-panes", "on")
        with pytest.raises(PaneSynchronized):
            await p.run("true")
        p.tmux("set-option", "-w", "synchronize-panes", "off")
        p.tmux("set-option", "-w", "remain-on-exit", "on")
        p.tmux("respawn-pane", "-k", "-t", p.id, "exit 4")
        while p.tmux("display-message", "-p", "-t", p.id, "#{pane_dead}").strip() != "1":
            await anyio.sleep(0.01)
        with pytest.raises(PaneDead, match="program has ended"):
            await p.run("true")
        p.id = "%99"
        with pytest.raises(NotFound):
            await p.run("true")


async def test_the_end_of_the_shell_is_told(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        p.tmux("new-session", "-d", "sleep 60")
        assert (await p.run("exit 3")).outcome == "pane_gone"


async def test_the_end_of_a_kept_shell_has_a_status(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell, options="set -g remain-on-exit on") as p:
        ending = await p.run("echo bye; exit 3")
        assert ending.outcome == "shell_exited"
        assert ending.status in (3, None), "tmux 3.3a can lose the status of a pane that it keeps"
        assert ending.text.startswith("bye") or (not ending.text and "can have lost" in ending.note)


async def test_the_end_of_an_inner_shell_has_a_status(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        assert (await p.run(Path(shell).name, timeout=1)).outcome == "timed_out"
        ending = await p.run("echo inner; exit 5")
        assert (ending.outcome, ending.status) == ("shell_exited", 5)
        assert ending.text.startswith("inner")
        assert told(await p.run("echo outer")) == ("completed", 0, "outer\n")


async def test_the_end_of_the_server_is_told(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p, anyio.create_task_group() as tasks:
        server = int(p.tmux("display-message", "-p", "#{pid}"))

        async def kill() -> None:
            await p.screen("sleep 60")
            os.kill(server, 9)

        tasks.start_soon(kill)
        assert (await p.run("sleep 60")).outcome == "server_gone"


async def test_a_shell_that_is_still_starting_is_waited_for(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell, rc="sleep 0.7; echo ready\n") as p:
        assert told(await p.run("echo first")) == ("completed", 0, "first\n")


async def test_output_that_looks_like_marks_changes_nothing(socket_path: Path) -> None:
    async with pane(socket_path, "bash") as p:
        await p.run("true")
        old = re.findall(r"^[0-9a-f]{16} .*$", p.tmux("capture-pane", "-p"), re.MULTILINE)
        assert len(old) == 2
        fake = "\\n".join(old)
        assert told(await p.run(f"printf '{fake}\\n'; sh -c 'exit 9'")) == (
            "completed",
            9,
            "\n".join([*old, ""]),
        )


async def test_the_command_is_in_no_process_list(socket_path: Path, shell: str) -> None:
    secret = "s3cr3t-9f2c"
    command = f"ps axww | grep -c '[s]3cr3t-9f2c'; true # {secret}"
    long = command + "x" * 3000
    async with pane(socket_path, shell) as p:
        assert told(await p.run(command)) == ("completed", 0, "0\n")
        assert told(await p.run(long)) == ("completed", 0, "0\n")


async def test_the_history_is_left_alone_on_request(socket_path: Path) -> None:
    async with pane(socket_path, "bash", rc="HISTCONTROL=ignorespace; set -o history\n") as p:
        await p.run("echo hidden")
        await p.run("echo recorded", in_history=True)
        history = (await p.run("history")).text
        assert "recorded" in history
        assert "hidden" not in history


async def test_a_carried_shell_that_sees_neither_tmux_nor_our_socket(socket_path: Path, shell: str) -> None:
    """`script` stands for ssh: a program that passes the terminal on to a shell on another one."""
    carried = f"env -i PATH=/usr/bin:/bin TERM=$TERM HOME=$HOME script -q -c '{shell} -i' /dev/null"
    async with pane(socket_path, "bash") as p:
        assert (await p.run(carried, timeout=1)).outcome == "timed_out"
        assert p.tmux("display-message", "-p", "#{pane_current_command}").strip() == "script"
        run = partial(p.run, timeout=30)
        assert told(await run("cd /usr; echo hi; sh -c 'exit 6'")) == ("completed", 6, "hi\n")
        assert told(await run("pwd\necho ' a'")) == ("completed", 0, "/usr\n a\n")
        assert told(await run(f"echo '{'y' * 5000}' | wc -c | tr -d ' '")) == ("completed", 0, "5001\n")
        ending = await run("exit 4")
        assert ending.outcome == "shell_exited"


@pytest.mark.parametrize("kill", [False, True])
async def test_a_command_that_never_comes_leaves_no_reader(socket_path: Path, shell: str, kill: bool) -> None:
    """Cancelled, or killed, between the line that reads the command and the command."""
    async with pane(socket_path, shell) as p:
        await p.run("true")
        real, release = p.keyboard.type, Runner._release

        async def type(pane_id: str, stroke: Stroke, **rest: Any) -> Typed:
            if stroke.text.startswith(f"{KILL}#"):
                await anyio.sleep_forever()
            return await real(pane_id, stroke, **rest)

        async def killed(self: Runner) -> None:
            return None

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(p.keyboard, "type", type)
            patched.setattr(Runner, "_release", killed if kill else release)
            with anyio.move_on_after(1):
                await p.run("echo never\necho run")
        assert told(await p.run("echo 'next\none'")) == ("completed", 0, "next\none\n")
        assert "never" not in p.tmux("capture-pane", "-p")
        assert told(await p.run("stty -a | tr ' ' '\\n' | grep -c '^echo;*$'")) == ("completed", 0, "1\n")
