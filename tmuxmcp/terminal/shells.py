"""What a shell must be typed so that a command runs once and its output and status come back exactly.

One line is typed::

    printf <opening mark>; eval <source>; printf <closing mark with $?>

The marks carry a random nonce that is split in the typed text, so the echo of the line cannot match;
they travel in the pane's output, so the stream itself orders marks and output. `eval` in the current
shell keeps `cd` and `export`, and turns a syntax error into a status. The source is either the
command as one quoted literal, or, for a command that a line editor or a line discipline could
mangle, a reader: a shell of its own that turns the terminal's echo off, says that it is ready, and
collects the command from lines that follow.

What a person made of the shell (aliases, functions, IFS, options) must not change what the line does.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """What the typed line is written for."""

    POSIX = "posix"
    MKSH = "mksh"
    ZSH = "zsh"
    FISH = "fish"


_NAME = re.compile(r"-?r?(?P<name>[a-z]+(?:93)?)(?:-?[0-9][0-9.]*)?")

_DIALECTS = {
    "bash": Dialect.POSIX,
    "dash": Dialect.POSIX,
    "ash": Dialect.POSIX,
    "sh": Dialect.POSIX,
    "ksh": Dialect.POSIX,
    "ksh93": Dialect.POSIX,
    "mksh": Dialect.MKSH,
    "lksh": Dialect.MKSH,
    "oksh": Dialect.POSIX,
    "loksh": Dialect.POSIX,
    "yash": Dialect.POSIX,
    "busybox": Dialect.POSIX,
    "zsh": Dialect.ZSH,
    "fish": Dialect.FISH,
}

# These leave canonical mode whenever they sit at their prompt, so a canonical terminal means that
# they do something else. The other shells have no line editor, or one that can be off.
_EDITORS = frozenset({"bash", "zsh", "fish", "mksh"})

_CARRIERS = frozenset(
    """
    ssh mosh-client telnet rlogin su sudo doas login script chroot nsenter unshare machinectl
    docker podman nerdctl crictl kubectl oc lxc lxc-attach incus vagrant limactl multipass adb
    toolbox distrobox flatpak gcloud aws az tsh screen picocom minicom cu wsl.exe
    """.split()  # noqa: SIM905  (a line for each would hide that they are one list)
)


def shell(program: str) -> str | None:
    """The plain name of a shell that we can drive (`-bash` -> `bash`), or None for other programs."""
    match = _NAME.fullmatch(program)
    name = match["name"] if match else ""
    return name if name in _DIALECTS else None


def dialect(name: str) -> Dialect:
    """The grammar of a shell named by `shell`."""
    return _DIALECTS[name]


def has_editor(name: str) -> bool:
    """Whether this shell's prompt can be told from the terminal's mode alone."""
    return name in _EDITORS


def carries_shell(program: str) -> bool:
    """Whether this program usually passes the terminal on to a shell elsewhere (ssh, su, docker)."""
    return program.removeprefix("-") in _CARRIERS


@dataclass(frozen=True)
class Marks:
    """The marks of one command in a pane's output. `nonce` is 16 hex digits."""

    nonce: str

    @classmethod
    def new(cls) -> Marks:
        return cls(secrets.token_hex(8))

    @property
    def split(self) -> str:
        return f"{self.nonce[:8]} {self.nonce[8:]}"

    @property
    def ready(self) -> str:
        """What the reader prints when it waits for the command."""
        return f"{self.nonce}="

    @property
    def given_up(self) -> str:
        """What the reader prints when the command did not come, or not as it was sent."""
        return f"{self.nonce},"

    def typed(self, text: str) -> bool:
        """Whether the echo of a line that prints a mark stands here; a row's end may cut it anywhere."""
        return any(half in text.replace(self.nonce, "") for half in self.split.split())

    def opening(self, text: str) -> re.Match[str] | None:
        """The opening mark, with the shell's process id as group `pid`; output begins at its end.

        It need not stand at the start of a line: an echo that fills the last column is joined with it.
        """
        return self._search(_OPENING, text)

    def closing(self, text: str) -> re.Match[str] | None:
        """The closing mark, with groups `pid` and `status`. The newline before it is ours."""
        return self._search(_CLOSING, text)

    def dialect(self, text: str) -> Dialect | None:
        """What the shell answered to `ask_dialect`, None while it has not."""
        match = self._search(_DIALECT, text)
        if match is None:
            return None
        if match["quoted"] == "\\":
            return Dialect.FISH
        return Dialect.ZSH if match["zsh"] else Dialect.POSIX

    def _search(self, mark: re.Pattern[str], text: str) -> re.Match[str] | None:
        """The first such mark of this command. A pattern of its own would take longer to compile."""
        at = text.find(self.nonce)
        while at >= 0:
            if match := mark.match(text, at):
                return match
            at = text.find(self.nonce, at + 1)
        return None


# In insert mode, as the output of a binary can leave it, what stood in the row is pushed to the right.
_OPENING = re.compile(r"[0-9a-f]{16} (?P<pid>\d+) *(?:\n|\Z)")
_CLOSING = re.compile(r"^[0-9a-f]{16} (?P<pid>\d+) (?P<status>\d+)\. *$", re.MULTILINE)
_DIALECT = re.compile(r"[0-9a-f]{16} (?P<quoted>\\+)/(?P<zsh>[^/\n]*)/")


def any_closing(text: str, pid: str) -> re.Match[str] | None:
    """The closing mark of whatever command of ours that the shell with this process id ran."""
    return re.search(rf"^[0-9a-f]{{16}} {pid} (?P<status>\d+)\.$", text, re.MULTILINE)


def is_reading(text: str) -> bool:
    """Whether the last that stands here is that a reader of ours is ready, and what it has shown since."""
    lines = [line for line in text.split("\n") if line.strip()]
    while lines and lines[-1].startswith("> "):
        lines.pop()
    # An echo that fills its last row is joined with what the reader says.
    return bool(lines) and re.search(r"[0-9a-f]{16}= *$", lines[-1]) is not None


def is_mark(line: str) -> bool:
    """Whether a line is one of the marks of whatever command of ours."""
    return re.fullmatch(r"[0-9a-f]{16}(?:=|,| \d+| \d+ \d+\.| [^/ ]*/[^/ ]*/) *", line) is not None


@dataclass(frozen=True)
class Script:
    """What is typed for one command: a line, and for the reader the lines that follow it."""

    marks: Marks
    line: str
    payload: str = ""
    shown: tuple[str, ...] = ()
    """The lines that the reader shows to the person who watches."""


def script(command: str, dialect: Dialect, marks: Marks, *, in_history: bool) -> Script:
    """The typed form of `command`.

    A leading space keeps the line out of the history of shells that are set up for that.
    """
    command = _without_continuation(command)
    if _PLAIN.fullmatch(command) and len(command) <= _LITERAL_CHARACTERS:
        pid = "$fish_pid" if dialect is Dialect.FISH else '"$$"'
        opening = _opening(f"{_BUILTIN[dialect]} printf", marks, pid)
        body = f"{opening}; {_BUILTIN[dialect]} eval {quote(command, dialect)}"
        payload, shown = "", []
    else:
        body = f"{_BUILTIN[dialect]} eval {_reader(dialect, marks)}"
        shown = _shown(command)
        payload = _payload(command, shown)
    line = f"{'' if in_history else ' '}{body}; {ask_status(dialect, marks)}"
    return Script(marks, line, payload, tuple(shown))


def ask_status(dialect: Dialect, marks: Marks) -> str:
    """The closing mark; typed alone at a prompt, it asks for the status of what ran last."""
    pid, status = ("$fish_pid", "$status") if dialect is Dialect.FISH else ('"$$"', '"$?"')
    if dialect is Dialect.MKSH:
        # It holds back what a builtin says on standard error until it forks: here, before it prints.
        status = '"$?$(:)"'
    format = f"{_FRESH_ROW}{_DIM}%s%s %s %s.{_PLAIN_TEXT}\\n"
    told = f"{_BUILTIN[dialect]} printf '{format}' {marks.split} {pid} {status}"
    # The group keeps the line out of a trace that the command switched on.
    return f"{{ {told}; }} 2>/dev/null" if dialect in (Dialect.POSIX, Dialect.ZSH) else told


def ask_dialect(marks: Marks) -> str:
    """A line that every shell of ours runs, and whose answer tells which grammar it speaks.

    Only fish takes a backslash in single quotes for an escape.
    """
    zsh = "test '\\\\' = \\\\ || eval 'command printf %s \"${ZSH_VERSION-}\"'"
    return f" command printf '{_DIM}%s%s %s/' {marks.split} '\\\\'; {zsh}; command printf '/{_PLAIN_TEXT}\\n'"


def clear_keys(dialect: Dialect | None) -> tuple[str, ...]:
    """Keys that empty a line editor, whatever somebody left in it; to a terminal without one, C-u does.

    Escape ends a search, a menu or the first half of a key sequence. In the mode to which it takes vi,
    `0D` empties a line, and `i` leads back to typing; elsewhere these are typed, and killed with the rest.
    An editor that holds several lines takes more. No editor rings the bell for a line that is not empty.
    """
    begin = ("i", "Escape", "0")
    if dialect is Dialect.ZSH:
        return ("i", "C-u", *begin, "D", "i", "i", "C-x", "C-k", "C-u")
    if dialect is Dialect.FISH:
        # Each of these kills one line, or the break between two.
        return (*begin, *_MANY * ("d",), "i", "i", *_MANY * ("C-k",), *_MANY * ("C-u",))
    # busybox drops what comes in the same breath as an Escape that it does not know, 15 characters at most.
    return (*begin, "D", *16 * ("i",), "C-e", "C-u")


def is_unfinished(line: str) -> bool:
    """Whether this looks like what a shell asks for the rest of a command, or for a choice, with.

    A shell without an editor asks again in the same row, so there is more than one mark then.
    """
    return re.fullmatch(r"(?:\w+ ?)*>(?: .*)?|.*> > ?|.*\(y or n\) ?|--More-- ?", line) is not None


def quote(text: str, dialect: Dialect) -> str:
    """`text` as one literal word."""
    if dialect is Dialect.FISH:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


_PLAIN = re.compile(r"[ -~]+")
_LITERAL_CHARACTERS = 500
_MANY = 100
# Of four bytes at most, so that a line stays below the shortest limit of a terminal in canonical mode
# (1024 bytes on macOS, 4096 on Linux).
_PIECE_CHARACTERS = 220
# A line editor that was confused by a new width of the terminal leaves text below the cursor, which would
# show through in the output.
_CLEAN = "\\033[J"
# Ends a string that the command left open to the terminal, and leaves nothing in the row that was there.
_FRESH_ROW = "\\033\\134\\r\\n\\033[K"
_DIM = "\\033[2m"
_PLAIN_TEXT = "\\033[m"

# Reaches a builtin past aliases and functions of its name. For POSIX shells it also takes away what makes
# a syntax error inside eval end a whole line (dash) or the shell (special builtins).
_BUILTIN = {
    Dialect.POSIX: "\\command",
    Dialect.MKSH: "\\command",
    Dialect.ZSH: "\\builtin",
    Dialect.FISH: "builtin",
}


def _opening(printf: str, marks: Marks, pid: str) -> str:
    return f'{printf} "{_CLEAN}{_DIM}%s%s %s{_PLAIN_TEXT}\\n" {marks.split} {pid}'


def _without_continuation(command: str) -> str:
    """A last unpaired backslash joins with the end of a script, which a quoted literal does not have."""
    backslashes = len(command) - len(command.rstrip("\\"))
    return command[:-1] if backslashes % 2 else command


# Tags of the lines that the reader takes: + text, - text and a newline, = flush (keeps the cost of
# joining linear), # a line to show to the person who watches, . the end, : give up. Any other line means
# that somebody typed meanwhile: half of a command must not run, nor its rest be left for the shell to read.
# The kill character takes away what was typed before a line.
# printf is not a builtin of mksh, so the command must go through print there: a program's
# arguments are public. Variables of these names that are exported would hand it on to stty.
_READER = (
    "unset v w b g;v= w= b=1 g= s=$(stty -g);stty -echo icanon iexten lnext ^V kill ^U;"
    'p(){{ case ${{KSH_VERSION-}} in ?*)print -r -- "$1";;*)printf "%s\\n" "$1";;esac;}};'
    "n=$(echo;echo x);n=${{n%x}};"
    'printf "{dim}%s%s={plain}\\n" {split} >/dev/tty;'
    "while IFS= read -r l;do case $l in +*)w=$w${{l#?}};;-*)w=$w${{l#?}}$n;;[=]*)v=$v$w w=;;"
    '[#]*)p "${{l#?}}">/dev/tty;;.)b=$g;break;;:)break;;*)g=1;;esac;done;'
    'stty $s;case $b in 1)printf "{dim}%s%s,{plain}\\n" {split} >/dev/tty;;'
    '*){opening} >/dev/tty;p "$v$w";;esac'
)
KILL = "\x15"
"""What takes away the line that somebody has begun, for the reader and for a shell's editor."""
GIVE_UP = f"{KILL}:\n"
"""A line that ends the reader, and that a shell takes for one that does nothing."""


def _reader(dialect: Dialect, marks: Marks) -> str:
    """An expression whose value is the command that is sent after the reader said it is ready."""
    text = _READER.format(
        dim=_DIM, plain=_PLAIN_TEXT, split=marks.split, opening=_opening("printf", marks, "$0")
    )
    if dialect is Dialect.FISH:
        return f"(command sh -c {quote(text, dialect)} $fish_pid|string collect -N)"
    return f'"$(\\command sh -c {quote(text, dialect)} "$$")"'


# In canonical mode these would edit the line or signal a program; the terminal takes each one
# literally after ^V (VLNEXT).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FLUSH_LINES = 64
_SHOWN_LINES = 20
_SHOWN_CHARACTERS = 200


def _payload(command: str, shown: list[str]) -> str:
    """The command as the lines that the reader takes, after those that it shows."""
    out = [f"#{line}" for line in shown]
    lines = command.split("\n")
    for line in lines[:-1]:
        out += _pieces(line, "-")
    out += _pieces(lines[-1], "+")
    for at in range(len(out), 0, -_FLUSH_LINES):
        out.insert(at, "=")
    return KILL + "\n".join([*out, ".", ""])


def _pieces(line: str, tag: str) -> list[str]:
    """One line of the command as lines that are short enough; only the last one carries `tag`."""
    pieces = [line[at : at + _PIECE_CHARACTERS] for at in range(0, len(line), _PIECE_CHARACTERS)] or [""]
    tagged = [f"+{piece}" for piece in pieces[:-1]] + [tag + pieces[-1]]
    return [_CONTROL.sub(lambda control: f"\x16{control.group()}", piece) for piece in tagged]


def _shown(command: str) -> list[str]:
    """The beginning of the command, for the person who watches the pane."""
    lines = command.split("\n")
    shown = [
        "".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in lines[:_SHOWN_LINES]
    ]
    shown = [f"> {line[:_SHOWN_CHARACTERS]}{' ...' * (len(line) > _SHOWN_CHARACTERS)}" for line in shown]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"> ... {len(lines) - _SHOWN_LINES} more lines")
    return shown
