"""What a shell itself makes of a command: run outside of tmux, on a terminal of its own, and rendered.

The command is evaluated by an interactive shell of the same home, directory and environment, with a terminal
as its input and output, so that what depends on any of these (error texts, `test -t`, buffering) is the same.
"""

from __future__ import annotations

import difflib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.corpus import Case
from tests.dialects import Compare
from tests.render import render

# An error in a special builtin ends a POSIX shell; then no status is written, and its own counts.
_POSIX = "eval \"$(cat '{0}/command'){1}\"\nprintf %s \"$?\" >'{0}/status'"
_ZSH = f"setopt no_hup\n{_POSIX}"  # It would kill and report a job that is left behind.
_FISH = "eval (cat '{0}/command' | string collect --no-trim-newlines); printf %s $status >'{0}/status'"

_DEADLINE_SECONDS = 30.0


class Expected(NamedTuple):
    """`output` is without its final newline. `cleared`: the screen was cleared."""

    exit_status: int
    output: str
    cleared: bool = False


class Result(NamedTuple):
    """What the thing under test made of a command. `output` is without its final newline."""

    outcome: str
    exit_status: int | None
    output: str
    truncated: bool = False


@dataclass(frozen=True)
class Terminal:
    """A shell and what it finds, the same in a pane and in the reference. It starts in `directory`."""

    shell: str
    environment: Mapping[str, str]
    directory: Path
    width: int
    height: int
    tabs: bool = False
    """As in `tests.render.Screen`."""

    @classmethod
    def prepare(cls, shell: str, root: Path, width: int, height: int, *, tabs: bool = False) -> Terminal:
        """Make an empty home and an empty directory below `root`."""
        home, directory = root / "home", root / "work"
        (home / ".config/fish").mkdir(parents=True)
        (home / ".local/share/fish/generated_completions").mkdir(parents=True)
        directory.mkdir()
        (home / ".config/fish/config.fish").write_text("set fish_greeting\n")
        (home / ".zshrc").touch()  # Else zsh asks whether to write one.
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "SHELL": shell,
            "LC_ALL": "C.UTF-8",
            "TERM": "screen-256color",
            "PAGER": "cat",  # fish shows a manual page for a keyword that stands alone.
        }
        return cls(shell, environment, directory, width, height, tabs)


@dataclass(frozen=True)
class Reference:
    """Runs each command in a fresh shell."""

    terminal: Terminal

    def run(self, command: str) -> Expected:
        """Raises `TimeoutError` when the command does not end."""
        shell = self.terminal.shell
        name = Path(shell).name
        # The last line of a script ends with a newline; a backslash before it joins it to nothing.
        newline = "\n" * ((len(command) - len(command.rstrip("\\"))) % 2)
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "command").write_bytes((command + newline).encode())
            script = {"fish": _FISH, "zsh": _ZSH}.get(name, _POSIX).format(directory, newline)
            # dash would go on reading from the terminal after an error, and says the same either way.
            interactive = [] if name == "dash" else ["-i"]
            try:
                code, data = self._on_terminal([shell, *interactive, "-c", script])
            except TimeoutError:
                raise TimeoutError(f"{name} did not end: {command[:200]!r}") from None
            if (status := Path(directory, "status")).exists():
                code = int(status.read_text())
        text = render(data, self.terminal.width, self.terminal.height, tabs=self.terminal.tabs)
        return Expected(
            code if code >= 0 else 128 - code,
            text.removesuffix("\n"),
            b"\x1b[2J" in data or b"\x1b[J" in data,
        )

    def _on_terminal(self, argv: list[str]) -> tuple[int, bytes]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(
            theirs, termios.TIOCSWINSZ, struct.pack("HHHH", self.terminal.height, self.terminal.width, 0, 0)
        )
        # A child without a controlling terminal would have no job control.
        process = subprocess.Popen(
            argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.terminal.directory,
            env=dict(self.terminal.environment),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        data = bytearray()
        deadline = time.monotonic() + _DEADLINE_SECONDS
        try:
            while time.monotonic() < deadline:
                if select.select([ours], [], [], 0.1)[0]:
                    try:
                        data += os.read(ours, 1 << 16)
                    except OSError:  # EIO: the last program has closed the terminal.
                        return process.wait(), bytes(data)
                elif process.poll() is not None:
                    return process.returncode, bytes(data)
            raise TimeoutError
        finally:
            process.kill()
            process.wait()
            os.close(ours)


# "bash: line 1: ", "(eval):cd:1: ", "zsh: ", "dash: 1: eval: ", "ksh: eval[1]: ", "E: mksh: "
_SPEAKER = re.compile(
    r"(?m)^(?:[EW]: )?(?:\(eval\)|(?:/[\w./]*/)?-?(?:bash|zsh|dash|ksh|mksh|sh|fish)):"
    r"(?: ?(?:command|eval(?:\[\d+\])?|line \d+|\d+|-c):)* ?"
)
_BUILTIN = re.compile(r"(?m)^(?P<name>[\w.\[]+):\d+: ")
_LINE_NUMBER = re.compile(r"(?m)(?P<before>\b(?:at )?line )\d+")
# Under job control mksh miscounts the command substitutions before it, and says so.
_JOB_STARTED = re.compile(
    r"(?m)^(?:internal warning: j_async: bad nzombie \(\d+\)\n)?(?:\[\d+\][ \t]+\d+(?:\n|\Z))"
)
_JOB_ENDED = re.compile(
    r"(?m)^\[\d+\] *[-+ ]+ *(?:\d+ )?(?:[Dd]one|[Tt]erminated|[Ee]xit|Killed)\b.*\n?"
    r"|(?:\A|\n)?\nfish: Job \d+, '.*' (?:has ended|terminated by signal .*)(?:\n|\Z)"
)
# The place of an error: a fish that is typed into leaves it out when it is the beginning of the line.
_FISH_EXCERPT = re.compile(
    r"(?m)^(?:fish: \n|.* \(line \d+\): \n)?.*\n *\^(?:~*\^)?(?:\n|\Z)"
    r"(?:in function '.*' with arguments .*(?:\n|\Z))?"
)


def normal(text: str, case: Case) -> str:
    """Take away what the shell adds on its own, as far as the case allows: names, places, lines on jobs."""
    for _ in range(case.jobs):
        text = _JOB_STARTED.sub("", text, count=1)
        text = _JOB_ENDED.sub("", text, count=1)
    if case.compare is Compare.MESSAGES:
        if case.shell == "fish":
            text = _FISH_EXCERPT.sub("", text)
        text = _BUILTIN.sub(r"\g<name>: ", _SPEAKER.sub("", text))
        text = _LINE_NUMBER.sub(r"\g<before>N", text)
    return text


def difference(case: Case, expected: Expected, result: Result, *, kept_lines: int) -> str | None:
    """Say what is wrong with a result, or None.

    `kept_lines` is how many lines the pane can hold at least: only beyond them, or when the screen was
    cleared, may the output be truncated; then it has to be an end of what was printed.
    """
    if result.outcome != "completed":
        return f"outcome {result.outcome}"
    if result.exit_status != expected.exit_status:
        return (
            f"exit status {result.exit_status}, not {expected.exit_status}; output {result.output[-300:]!r}"
        )
    if case.compare is Compare.STATUS:
        return None
    want, have = (normal(text, case).removesuffix("\n") for text in (expected.output, result.output))
    if result.truncated and not expected.cleared:
        if expected.output.count("\n") <= kept_lines:
            return f"truncated, though only {expected.output.count(chr(10))} lines were printed"
        if have.count("\n") < kept_lines:
            return f"only {have.count(chr(10))} lines are left"
        want = want[-len(have) :]
    if have == want:
        return None
    return "\n".join(difflib.unified_diff(_shown(want), _shown(have), "expected", "output", lineterm="", n=1))


def _shown(text: str) -> list[str]:
    return [
        repr(line) if len(line) < 200 else f"{line[:80]!r}...{line[-80:]!r}" for line in text.splitlines(True)
    ]
