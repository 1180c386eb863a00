"""What counts as the prompt that came back, and what as a program's question."""

from __future__ import annotations

import pytest

from tmuxmcp.terminal import prompts


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        ("$ ", "$ "),
        ("/usr/lib # ", "/root # "),
        ("~/src/a (main) $ ", "/ (main) $ "),
        ("[1] user@host:~ $ ", "user@host:~ $ "),
        ("12:00:01 user@host ~ % ", "12:00:00 user@host ~ % "),
        ("user@host:/tmp$ ", "user@host:~/some/where/else$ "),
        ("^C$ ", "$ "),
    ],
)
def test_a_prompt_that_came_back(line: str, prompt: str) -> None:
    assert prompts.alike(line, prompt)


@pytest.mark.parametrize(
    ("line", "prompt"),
    [
        ("", ""),
        ("/etc/hosts", "/usr"),
        ("/etc/hosts ", "~ "),
        ("user@host:~ password: ", "user@host:~ $ "),
        ("Overwrite /etc/hosts? ", "/usr $ "),
        ("Delete ~/x? $ ", "/usr/lib $ "),
        ("> ", "$ "),
    ],
)
def test_what_a_program_asks(line: str, prompt: str) -> None:
    assert not prompts.alike(line, prompt)
