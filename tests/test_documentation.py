"""What the README and the trust model have to say, wherever else it is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
INSTALL = """
This server gives an agent a terminal. By default it targets a dedicated tmux server named tmuxmcp, started
with a minimal configuration, separate from the tmux server your ordinary shell uses. Once the agent has
created its first session, attach to watch; the server prints the exact command at startup.

Execute tools send input and run commands with your user's authority. The socket separates tmux sessions,
windows, and panes; it does not restrict filesystem, process, or network access, and a command run through a
pane can open any other tmux socket by hand.

To target the tmux server you are sitting in, configure that deliberately. Dropping the teardown toolset
removes the direct deletion tools; it does not prevent an execute tool from typing an equivalent command.
Toolset filtering shapes this server's advertised interface, not the authority of tmux or of the pane program.

Annotations and descriptions are disclosure for client consent machinery, not containment. OS accounts,
containers, socket selection, and tmux configuration are the isolation boundaries.
"""
INSPECT = """
inspect tools do not interpret client-supplied values as commands, keystrokes, process-launch strings,
environment assignments, option values, or free-form tmux formats. Client input is used only for targeting,
filtering, bounded matching, and selecting validated variable identifiers. This is a tested property of these
implementations, not a claim that no process can run: tmux hooks and configuration act independently, and
inspect results can contain secrets visible to the tmux server.
"""


def text(page: str) -> str:
    """A page as one line, without quotation marks and marks of emphasis."""
    return " ".join(re.sub(r"^> ?|[*`]", "", (ROOT / page).read_text(), flags=re.MULTILINE).split())


def one_line(paragraphs: str) -> str:
    return " ".join(paragraphs.split())


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/trust-model.md"])
def test_the_install_statement(page: str) -> None:
    assert one_line(INSTALL) in text(page)


def test_the_inspect_claim() -> None:
    assert one_line(INSPECT) in text("docs/trust-model.md")


TRUST = {
    "the socket selects objects": "This separates tmux objects. It is not a security boundary",
    "the operating system limits programs": """
        What a program may touch is decided by the OS account or the container it runs in, and by nothing in
        this server.""",
    "filtering is not authorization": """
        It does not bound what an enabled tool can make a pane's program do.""",
    "hints are for consent": "Hints are for consent dialogs. They enforce nothing.",
    "the socket is shared": "Nor does it mean sole ownership.",
    "processes run without a call": """
        A hook can run a program after nearly every tmux command, also after one that only reads. No setting
        here changes that""",
    "inspect is not harmless": "inspect does not mean safe.",
    "what the guard covers": """
        Nothing else is guarded: not the same command typed into a pane, not another client.""",
    "what redaction covers": """
        That redaction covers the audit record and nothing else. The same text still stands in the pane, in
        its scrollback, in your client's transcript, and wherever the program put it.""",
    "what history suppression is": "It is hygiene for the history list.",
    "input is not inspected": "What is typed is not inspected.",
    "aggregates carry other authority": """
        call_read_tools_batch may call every tool in its enum. Allowing it allows those.""",
    "no consent in the server": "There is no consent prompt, role, rank or runtime switch in here.",
}


@pytest.mark.parametrize("subject", TRUST)
def test_the_trust_model_says(subject: str) -> None:
    assert one_line(TRUST[subject]) in text("docs/trust-model.md")
