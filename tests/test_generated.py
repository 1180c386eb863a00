"""Generated text matches what it is generated from."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import generate
from tmuxmcp import manifest
from tmuxmcp.tools import registry

ROWS = generate.load()


def test_nothing_generated_is_out_of_date() -> None:
    command = [sys.executable, "-m", "scripts.generate", "--check"]
    run = subprocess.run(command, cwd=generate.ROOT, capture_output=True, text=True)
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)


def test_there_is_a_page_for_every_tool_and_no_other() -> None:
    assert {page.stem for page in generate.PAGES.glob("*.md")} == {"index", *ROWS}


def test_the_inventory_names_every_tool_once_below_its_toolset() -> None:
    found = []
    toolset = ""
    for line in "".join(generate.inventory(ROWS)).splitlines():
        if heading := re.fullmatch(r"### (\w+) \((\d+)\)", line):
            toolset = heading[1]
            assert int(heading[2]) == sum(row.toolset == toolset for row in ROWS.values())
        elif tool := re.match(r"\| \[`(\w+)`\]\(docs/tools/(\w+)\.md\) \|", line):
            assert tool[1] == tool[2]
            found.append((toolset, tool[1]))
    assert found == [(row.toolset, name) for name, row in ROWS.items()]


def test_only_the_part_between_the_markers_changes() -> None:
    old = f"before\n{generate.BEGIN}\nstale\n{generate.END}\nafter\n"
    new = generate.readme(old, ROWS)
    assert new.startswith(f"before\n{generate.BEGIN}\n")
    assert new.endswith(f"\n{generate.END}\nafter\n")
    assert "stale" not in new
    assert "`kill_session`" in new
    assert generate.readme(new, ROWS) == new


def test_a_page_says_what_clients_are_told_and_every_argument() -> None:
    pages = generate.files()
    for name, function in registry(ROWS).items():
        text = pages[generate.PAGES / f"{name}.md"]
        assert manifest.description(ROWS[name], function.doc) in text
        for parameter in ROWS[name].sinks:
            assert f"| `{parameter}`" in text
    batch = pages[generate.PAGES / "call_read_tools_batch.md"]
    assert "[show_environment](show_environment.md) (only where `TMUXMCP_TOOLS` names it)" in batch
    assert "[list_panes](list_panes.md), " in batch


@pytest.mark.parametrize("text", ["", generate.BEGIN, generate.END, f"{generate.END}{generate.BEGIN}"])
def test_missing_markers_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="markers"):
        generate.readme(text, ROWS)


def test_the_readme_carries_the_install_statement() -> None:
    text = Path(generate.ROOT / "README.md").read_text().replace("\n> ", " ").replace("\n>", " ")
    for sentence in (
        "By default it targets a dedicated tmux server named tmuxmcp, started with a minimal configuration",
        "Execute tools send input and run commands with your user's authority.",
        "it does not restrict filesystem, process, or network access",
        "not the authority of tmux or of the pane program",
        "Annotations and descriptions are disclosure for client consent machinery",
    ):
        assert sentence in text
