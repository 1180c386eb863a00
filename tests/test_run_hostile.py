"""run_shell_command in shells that a person has made their own, and left in the middle of something."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.conftest import installed
from tests.panes import pane
from tmuxmcp.terminal.keyboard import Stroke

pytestmark = pytest.mark.anyio

_ALIASES = "".join(
    f"alias {name}='echo {name.upper()}'\n"
    for name in ("printf", "eval", "read", "stty", "sh", "p", "v", "builtin", "command")
)
_FUNCTIONS = "p() { :; }\nv() { :; }\nprintf() { :; }\nv=1 w=2 s=3 l=4 n=5\nreadonly v w s l n\n"
_DIGITS = "IFS=0123456789abcdef:/\n"
_SHELLS = ("bash", "zsh", "dash", "mksh", "ksh")


@pytest.mark.parametrize(
    ("shell", "rc"),
    [
        *((shell, _ALIASES) for shell in _SHELLS),
        *((shell, _FUNCTIONS) for shell in _SHELLS),
        *((shell, _DIGITS) for shell in _SHELLS),
        ("fish", "function printf; end\nfunction p; end\nset -gx v 1\nabbr -a printf 'echo no'\n"),
        ("zsh", "setopt extended_glob null_glob sh_word_split no_unset no_clobber ksh_arrays correct_all\n"),
        ("zsh", "alias -g P='| cat'\nsetopt rc_quotes share_history hist_verify\n"),
        ("bash", "set -uC -o posix\nshopt -s extglob histverify cmdhist lithist\nexport v=1 w=2\n"),
        ("bash", "PROMPT_COMMAND='echo printed; date'\nset -T\ntrap : DEBUG\n"),
    ],
)
async def test_a_shell_that_somebody_made_their_own(socket_path: Path, shell: str, rc: str) -> None:
    async with pane(socket_path, installed(shell), rc=rc) as p:
        for command, status, output in (
            ("/bin/echo hi", 0, "hi\n"),
            ("/bin/echo 'one\ntwo'", 0, "one\ntwo\n"),
            ("/bin/sh -c 'exit 213'", 213, ""),
            ("false\n", 1, ""),
        ):
            ending = await p.run(command, timeout=10)
            assert (ending.outcome, ending.status, ending.text) == ("completed", status, output)


_VI = {
    "bash": "set -o vi\n",
    "zsh": "bindkey -v\n",
    "fish": "fish_vi_key_bindings\n",
    "mksh": "set -o vi\n",
    "ksh": "set -o vi\n",
}
_LEFT_UNDONE = {
    "vi's command mode": ("touch bad", "Escape"),
    "vi's command mode, in the middle": ("touch bad", "Escape", "b"),
    "the cursor in the middle": ("touch bad", "Left", "Left"),
    "a search in the history": ("", "C-r", "t"),
    "the first half of a key sequence": ("touch bad", "C-x"),
    "a literal next key": ("touch bad", "C-v"),
    "completions that are listed": ("/usr/", "Tab", "Tab"),
    "an unfinished line": ("touch bad \\", "Enter", "x"),
}


@pytest.mark.parametrize(
    ("shell", "reads"),
    [("bash", "read -rsn1 x"), ("bash", "read -n1 x"), ("zsh", "read -sk x"), ("zsh", "read -k x")],
)
async def test_a_builtin_that_waits_for_a_key_gets_none_of_a_command(
    socket_path: Path, shell: str, reads: str
) -> None:
    async with pane(socket_path, installed(shell)) as p:
        await p.run("true")
        await p.type(f"printf 'press ''any key'; {reads}; echo \"<$x>\"", "Enter")
        await p.screen("\npress any key")
        assert (await p.run("echo no", timeout=1)).outcome == "not_started"
        await p.type("k")
        await p.screen("<k>")
        assert (await p.run("echo yes")).text == "yes\n"


@pytest.mark.parametrize("vi", [False, True])
async def test_what_somebody_left_at_the_prompt_is_replaced(socket_path: Path, shell: str, vi: bool) -> None:
    rc = _VI.get(Path(shell).name, "") if vi else ""
    async with pane(socket_path, shell, rc=rc) as p:
        await p.run("true")
        for text, *keys in _LEFT_UNDONE.values():
            await p.type(text)
            for key in keys:
                await anyio.sleep(0.05)
                await p.type("", key)
            await anyio.sleep(0.05)
            ending = await p.run("ls -d bad; echo good", timeout=10)
            assert ending.status == 0, (text, keys)
            assert ending.text.endswith("\ngood\n")
            assert "No such file" in ending.text or "cannot access" in ending.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_lines_that_were_pasted_and_not_entered_do_not_run(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, installed(shell)) as p:
        await p.run("true")
        await p.keyboard.paste(p.id, "touch bad\ntouch bad\n  touch bad", bracketed=True, enter=False)
        await p.screen("  touch bad")
        assert "bad" not in (await p.run("ls")).text


_STARSHIP = (
    "status() { s=$?; PS1=$'\\n\\\\w took 1s\\n'; [ $s = 0 ] || PS1+=\"[$s] \"; PS1+='❯ '; }\n"
    "PROMPT_COMMAND=status\n"
)


@pytest.mark.parametrize(
    ("shell", "rc"),
    [
        ("bash", "PS1='\\w $ '\n"),
        ("bash", "PS1='$RANDOM> '\n"),
        ("bash", _STARSHIP),
        ("zsh", "PROMPT='%~ $ '\n"),
        ("zsh", "PROMPT='%% '\nRPROMPT='%T [%~]'\n"),
        ("mksh", "PS1='${?#0}|$PWD # '\n"),
    ],
)
async def test_a_prompt_that_comes_back_changed_after_an_interrupt(
    socket_path: Path, shell: str, rc: str
) -> None:
    async with pane(socket_path, installed(shell), rc=rc) as p:

        async def interrupt() -> None:
            await p.program("sleep")
            await p.type("", "C-c")

        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(interrupt)
                ending = await p.run("cd /usr/lib; echo started; sleep 60", timeout=10)
            assert (ending.outcome, ending.status) == ("completed", 130)
            assert ending.text.replace("^C", "").split() == ["started"]
            await p.run("cd /")


@pytest.mark.parametrize(
    ("shell", "rc"),
    [
        ("zsh", "PROMPT='%~ %# '\n"),
        ("zsh", "PROMPT='%~ %% '\nRPROMPT='[%~]'\n"),
        ("mksh", "PS1='$PWD $ '\n"),
        ("bash", "PS1='\\w $ '\n"),
    ],
)
async def test_a_prompt_that_tells_another_directory_after_a_fatal_error(
    socket_path: Path, shell: str, rc: str
) -> None:
    """zsh and mksh drop the rest of the line, with the closing mark, and come back to their prompt."""
    async with pane(socket_path, installed(shell), rc=rc) as p:
        await p.run("cd /")
        ending = await p.run("cd /usr/lib; echo ${NOT_SET:?nothing}", timeout=20)
        assert (ending.outcome, ending.status) == ("completed", 1)
        assert "nothing" in ending.text
        assert (await p.run("pwd")).text == "/usr/lib\n"


async def test_an_interrupt_frees_a_shell_whose_prompt_is_not_known_again(socket_path: Path) -> None:
    """The error leaves no closing mark, and the prompt looks like nothing that was there before."""
    async with pane(socket_path, installed("zsh"), rc="PROMPT='%(?..[%?] )%~> '\nRPROMPT='%D{%S%.}'\n") as p:
        await p.run("cd /usr/lib")
        ending = await p.run("cd /; echo ${NOT_SET:?nothing}", timeout=1)
        assert (ending.outcome, ending.status) == ("timed_out", None)
        assert (await p.run("echo no", timeout=1)).outcome == "not_started"
        await p.keyboard.type_everywhere(p.id, Stroke(keys=("C-c",)))
        assert (await p.run("echo yes")).text == "yes\n"


async def test_insert_mode_that_a_binary_left_on(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell) as p:
        for command, output in (("printf '\\033[4h'", ""), ("echo fine", "fine"), ("echo again", "again")):
            ending = await p.run(command)
            assert (ending.outcome, ending.status, ending.text.strip()) == ("completed", 0, output)


async def test_a_pane_of_a_few_cells(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell, size="4x2") as p:
        for command, output in (("echo a", "a\n"), ("echo 'a\nb'", "a\nb\n")):
            ending = await p.run(command, timeout=20)
            assert (ending.outcome, ending.status, ending.text) == ("completed", 0, output)
