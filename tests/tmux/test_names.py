"""Names that tmux keeps, keys that a terminal can send."""

from __future__ import annotations

import ctypes
import os
import pty
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import anyio
import pytest

from tmuxmcp.errors import InvalidArgument, InvalidName
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.names import NameKind, check_key, check_name
from tmuxmcp.tmux.records import Template

_C = ctypes.CDLL(None)
KINDS: tuple[NameKind, ...] = ("session", "window", "title")

REFUSED = [
    *("", "a\n", "a\tb", "\x1b[31m", "\x07", "a\x7f", "a\x9bb", "\ud800", "a\u2028b", "a\u0378b"),
    *("a#b", "#(touch x)", "#{pid}", "#S", "a\\b", "$HOME", "a${b", "x$_", "n" * 1001),
]
REFUSED_AS_TARGETS = ["$0", "$", "@1", "@", "%2", "=x", "-x", "--", "+", "+1", "!", "{last}", "{"]
REFUSED_FOR_SESSIONS = ["a:b", "a.b", "app_3.1.9", ":", ".", "/dev/pts/0", "pts/12", "ttys004", "client-99"]
ACCEPTED = [
    *("a", "build-e2e", "b*", "a b", " a ", "0", "a;", ";", "x'y", 'x"y', "a$", "a$ b", "5$", "(a)", "a/b"),
    *(
        "日本語 😀",
        "é",
        "👩‍👩‍👧",
        "\u200bx",
        "~",
        "^",
        "*",
        "a%b",
        "%H%%",
        "a[b]",
        "a{b}",
        "`id`",
        "n" * 1000,
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", REFUSED, ids=lambda text: ascii(text[:12]))
def test_refused_everywhere(kind: NameKind, value: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_name(kind, value)
    assert caught.value.details["reason"] in caught.value.message


@pytest.mark.parametrize("value", REFUSED_AS_TARGETS)
def test_what_looks_like_a_target_is_no_name(value: str) -> None:
    for kind in KINDS[:2]:
        with pytest.raises(InvalidName):
            check_name(kind, value)
    assert value.startswith("$") or check_name("title", value) == value


@pytest.mark.parametrize("value", REFUSED_FOR_SESSIONS)
def test_refused_for_sessions_only(value: str) -> None:
    with pytest.raises(InvalidName):
        check_name("session", value)
    assert check_name("window", value) == value


def samples(kind: NameKind) -> list[str]:
    """Fixed names, and random ones of every category of characters that is let through."""
    dice = random.Random(4)
    letters = [chr(code) for code in range(0x20, 0x3000)] + [
        chr(dice.randrange(0x3000, 0x20000)) for _ in range(4000)
    ]
    letters = [letter for letter in letters if unicodedata.category(letter) not in {"Cn", "Cs"}]
    # The C library, and with it tmux, can be older than Python: it shows what it does not know in octal.
    letters = [letter for letter in letters if not letter.isprintable() or _C.wcwidth(ord(letter)) >= 0]
    made = ["".join(dice.choices(letters, k=40)) for _ in range(60)]
    made += ["".join(dice.choices("ab$;'\"%*?[]{}()~^&|<>,!@=+- /\\#:.", k=8)) for _ in range(150)]
    return [value for value in [*ACCEPTED, *made] if is_accepted(kind, value)]


def is_accepted(kind: NameKind, value: str) -> bool:
    try:
        return check_name(kind, value) == value
    except InvalidName:
        return False


@pytest.mark.parametrize("kind", KINDS)
async def test_accepted_names_read_back_equal(client: Client, ids: dict[str, str], kind: NameKind) -> None:
    position = "-T" if kind == "title" else "NAME"
    act = {
        "session": command("rename-session", "-t", target(ids["session"]), "--"),
        "window": command("rename-window", "-t", target(ids["window"]), "--"),
        "title": command("select-pane", "-t", target(ids["pane"]), "-T"),
    }[kind]
    field = {"session": "session_name", "window": "window_name", "title": "pane_title"}[kind]
    listing = command("display-message", "-t", target(ids["pane"]))
    accepted = samples(kind)
    assert len(accepted) > 50
    for value in accepted:
        (row,) = await client.rows(
            command(act.name, *act.args, Arg(position, value)),
            listing=listing,
            template=Template(name=f"#{{{field}}}"),
        )
        assert row["name"] == value


async def test_a_new_session_and_window_keep_their_names(client: Client, ids: dict[str, str]) -> None:
    template = Template(session="#{session_name}", window="#{window_name}")
    for value in (name for name in ACCEPTED if is_accepted("session", name)):
        new = command("new-session", "-d", "-s", Arg("-s", value), "-n", Arg("-n", value), "exec cat")
        started = await client.start(new, template=template)
        assert started.row == {"session": value, "window": value}
        (row,) = await client.rows(
            listing=command("display-message", "-t", target(f"={value}:")), template=template
        )
        assert row["session"] == value


async def test_what_tmux_takes_for_a_client_is_no_session_name(client: Client, ids: dict[str, str]) -> None:
    """`=` makes a name exact, and yet tmux looks a client up by it."""
    ours, theirs = pty.openpty()
    attach = [client.binary, "-u", "-N", "-S", client.socket.path, "attach"]
    environ = {"TERM": "xterm", "PATH": os.environ["PATH"]}
    process = subprocess.Popen(attach, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
    try:
        names: list[dict[str, str]] = []
        with anyio.fail_after(10):
            while not names:
                names = await client.rows(
                    listing=command("list-clients"),
                    template=Template(tty="#{client_tty}", name="#{client_name}"),
                )
        tty = names[0]["tty"]
        for name in [*names[0].values(), tty.removeprefix("/dev/")]:
            await client.call(command("has-session", "-t", f"={name}:"))
            with pytest.raises(InvalidName):
                check_name("session", name)
            with pytest.raises(InvalidArgument):
                await client.call(command("has-session", "-t", target(f"={name}:")))
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


# fmt: off
KEYS = {
    "a": "a", ";": ";", "-": "-", "é": "é", "😀": "😀",
    "Enter": "\r", "enter": "\r", "Escape": "\x1b", "Tab": "\t", "BTab": "\x1b[Z",
    "Space": " ", "BSpace": "\x7f",
    "C-c": "\x03", "^C": "\x03", "c-c": "\x03", "C-@": "\0", "C-Space": "\0", "C-[": "\x1b", "C-\\": "\x1c",
    "C-]": "\x1d", "C-^": "\x1e", "C-_": "\x1f", "C-?": "\x7f", "C-/": "\x1f",
    "M-x": "\x1bx", "M-X": "\x1bX", "M-é": "\x1bé", "M-Enter": "\x1b\r", "C-M-x": "\x1b\x18",
    "M-C-x": "\x1b\x18",
    "Up": "\x1b[A", "PageDown": "\x1b[6~", "NPage": "\x1b[6~", "Home": "\x1b[1~", "End": "\x1b[4~",
    "Delete": "\x1b[3~", "IC": "\x1b[2~", "F1": "\x1bOP", "F5": "\x1b[15~", "F12": "\x1b[24~",
    "S-Up": "\x1b[1;2A", "C-Left": "\x1b[1;5D", "M-Right": "\x1b[1;3C", "C-M-S-Down": "\x1b[1;8B",
    "S-F5": "\x1b[15;2~", "KP1": "1", "KPEnter": "\n",
}
# fmt: on

NO_KEYS = [
    *(
        "",
        "ab",
        "Return",
        "esc",
        "0x41",
        "User0",
        "Any",
        "None",
        "MouseDown1Pane",
        "WheelUpPane",
        "C-",
        "M-",
        "C-M-",
    ),
    *(
        "C-C-c",
        "C-c-C",
        "M-M-x",
        " ",
        "\t",
        "\x03",
        "\n",
        "e\u0301",
        "F13",
        "F0",
        "S-a",
        "S-Tab",
        "S-Enter",
        "C-Enter",
    ),
    *(
        "C-Tab",
        "C-BSpace",
        "C-Escape",
        "C-1",
        "C-;",
        "C-$",
        "C-é",
        "C-M-/",
        "M-BTab",
        "C-KP1",
        "Up Down",
        "\ud800",
    ),
]


@pytest.mark.parametrize("value", NO_KEYS, ids=ascii)
def test_what_is_no_key_is_refused(value: str) -> None:
    with pytest.raises(InvalidArgument, match="cannot be sent"):
        check_key(value)


def test_a_near_miss_is_told() -> None:
    with pytest.raises(InvalidArgument, match="Did you mean Escape"):
        check_key("ESC")


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("^x", "C-x"),
        ("C-X", "C-x"),
        ("m-X", "M-X"),
        ("s-m-c-up", "C-M-S-Up"),
        ("pagedown", "PageDown"),
        ("^", "^"),
    ],
)
def test_the_spelling_is_tmuxs(value: str, canonical: str) -> None:
    assert check_key(value) == canonical


RAW_READER = """
import os, sys, tty
tty.setraw(0)
print("ready", flush=True)
with open(sys.argv[1], "ab", buffering=0) as heard:
    while data := os.read(0, 4096):
        heard.write(data)
"""


async def test_every_key_sends_its_own_bytes(client: Client, ids: dict[str, str], tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    (tmp_path / "reader.py").write_text(RAW_READER)
    pane = target(ids["pane"])
    reader = f"exec '{sys.executable}' '{tmp_path}/reader.py' '{heard}'"
    await client.call(command("respawn-pane", "-k", "-t", pane, Arg("COMMAND", reader)))
    with anyio.fail_after(20):
        while "ready" not in await client.call(command("capture-pane", "-p", "-t", pane)):
            await anyio.sleep(0.02)
        for key, expected in KEYS.items():
            before = len(heard.read_bytes())
            await client.call(
                command("send-keys", "-t", pane, "--", Arg("KEY", key)),
                command("send-keys", "-t", pane, "-l", "END"),
            )
            while not (said := heard.read_bytes()[before:]).endswith(b"END"):
                await anyio.sleep(0.005)
            assert said == f"{expected}END".encode(), key
