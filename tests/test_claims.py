"""The claims lint, tried on sentences; the words it looks for are spelled in parts here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import claims as lint

BOX = "sand" + "box"
TIER = "safety" + " tier"
LEVEL = "safety" + " level"
MODE = "secure" + " mode"
SAFE_COMMAND = "safe" + " command"
NO_SHELL = "no" + " shell"
BOUNDARY = "security" + " boundary"
CONTAIN = "contain" + "ment"
SAFE = "are" + " safe"


@pytest.mark.parametrize(
    "text",
    [
        f"Commands run in a {BOX}.",
        f"Every pane is {BOX}ed.",
        f"{BOX.capitalize()}ing keeps the agent away from your files.",
        f"Choose a {TIER} for the agent.",
        f"The {LEVEL} is inspect.",
        f"Turn on {MODE} with a flag.",
        f"list_sessions is a {SAFE_COMMAND}.",
        f"It starts tmux with {NO_SHELL} in between.",
        f"The dedicated socket is a {BOUNDARY}.",
        f"The socket gives {CONTAIN} of the agent.",
        f"Inspect tools {SAFE} to call.",
        f"Inspect tools {SAFE}.",
        f"It is not only {BOX}ed but fast.",
        f"This is not slow, and it is {BOX}ed.",
        f"It does not read your files and is {BOX}ed.",
        f"The socket is not shared, which makes it a {BOUNDARY}.",
        f"It does not touch your tmux. Commands are {BOX}ed.",
        f"It does not touch your tmux; commands are {BOX}ed.",
        f"When not disabled, commands are {BOX}ed.",
        f"Commands do not run as root, in a {BOX}.",
        f"Nothing leaves the {BOX}.",
        f"A command cannot escape the {BOX}.",
        f"A {BOX}, not a toy.",
        f"| inspect | not a change | {BOX}ed |",
        f"It is not\n\na {BOX}.",
        f"- not enabled\n- {BOX}ed",
        f"# It does not check.\nmode = '{BOX}'",
        f'x = not y\n"""Run {BOX}ed."""',
    ],
)
def test_promises_are_found(text: str) -> None:
    assert lint.claims(text)


@pytest.mark.parametrize(
    "text",
    [
        f"Tool filtering is not an OS {BOX}.",
        f"This isn't a {BOX}, and it never will be a {BOX}.",
        f"There is no {LEVEL}, no read-only switch.",
        f"A server MUST NOT describe a socket, tool surface, filter, or annotation as a {BOX} or {BOUNDARY}.",
        f"We do not build a {BOX} because nobody could keep the promise.",
        f"Toolsets are inventory, never a {TIER}.",
        f"The lint rejects new affirmative {BOX} claims.",
        f"This is not a claim that {NO_SHELL} runs.",
        f"Annotations are disclosure for client consent machinery, not {CONTAIN}.",
        f"OS accounts, containers, and tmux configuration are the {'isolation' + ' boundaries'}.",
        f"The client owns consent; the OS owns {CONTAIN}.",
        f"It is neither a {BOX} nor a {BOUNDARY}.",
        f"It is not\na {BOX}.",
        f"# It is not\n# a {BOX}.",
        f"> Nothing here is\n> a {BOX}.",
        f'"tool filtering is not an "\n"OS {BOX}"',
        "A shell that receives it runs it with your permissions.",
        "Close the container, then the terminal.",
    ],
)
def test_denials_and_other_text_pass(text: str) -> None:
    assert not lint.claims(text)


def test_a_claim_names_its_line_and_words() -> None:
    (claim,) = lint.claims(f"First line.\nThe socket is\na {BOX} for agents.\n")
    assert (claim.line, claim.phrase) == (3, BOX)


def test_only_the_migration_page_and_the_changelog_are_exempt() -> None:
    assert sorted(lint.EXEMPT) == ["CHANGELOG.md", "docs/migration.md"]


def test_the_program_fails_on_a_promise_and_says_where(tmp_path: Path) -> None:
    bad, good, binary = tmp_path / "bad.md", tmp_path / "good.md", tmp_path / "data.bin"
    bad.write_text(f"Fine.\n\nIt is {BOX}ed.\n")
    good.write_text(f"It is not {BOX}ed.\n")
    binary.write_bytes(b"\0" + f"It is {BOX}ed.".encode())
    program = [sys.executable, lint.__file__]
    failed = subprocess.run([*program, bad, good, binary], capture_output=True, text=True)
    assert failed.returncode == 1
    assert f"{bad}:3:" in failed.stdout
    assert subprocess.run([*program, good, binary]).returncode == 0


def test_the_repository_holds_no_promise() -> None:
    assert subprocess.run([sys.executable, lint.__file__], capture_output=True, text=True).stdout == ""
