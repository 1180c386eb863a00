"""Invariants 10 and 11 of the capability model: what is written down, for readers and for machines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from scripts import claims, generate
from tests import offer
from tests.inventory import ALL, BY_TOOLSET
from tests.offer import Offer
from tmuxmcp import surface
from tmuxmcp.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent
few = hypothesis_settings(max_examples=25)

# 10. The README's inventory and the tool pages match the manifest; tmux://capabilities is the surface.
# (CM-5, CM-7)


def test_invariant_10_what_is_generated_is_up_to_date() -> None:
    stale = [str(path) for path, text in generate.files().items() if path.read_text() != text]
    assert stale == []


def test_invariant_10_the_readme_lists_every_tool_with_its_properties() -> None:
    text = (ROOT / "README.md").read_text()
    rows = offer.rows()
    for toolset, names in BY_TOOLSET.items():
        section = text.partition(f"### {toolset} ({len(names)})")[2].partition("\n### ")[0]
        found = re.findall(r"^\| \[?`(\w+)`\S* \| (.+) \| (.+) \| (.+) \| (.+) \|$", section, re.MULTILINE)
        assert found == [
            (
                name,
                rows[name].title,
                rows[name].reach,
                ", ".join(rows[name].effect),
                ", ".join(rows[name].output),
            )
            for name in names
        ]


async def test_invariant_10_every_tool_has_a_page_that_says_what_clients_are_told() -> None:
    pages = ROOT / "docs/tools"
    assert {path.stem for path in pages.glob("*.md")} == {*ALL, "index"}
    for tool in await Offer().tools():
        page = (pages / f"{tool['name']}.md").read_text()
        assert page.startswith(f"# {tool['name']}\n")
        assert tool["description"] in page
        for parameter in tool["inputSchema"]["properties"]:
            assert f"`{parameter}" in page, (tool["name"], parameter)


@given(offer.settings, offer.server_states)
@few
async def test_invariant_10_the_capabilities_are_the_surface(
    chosen: Settings, state: surface.ServerState
) -> None:
    for ambient in ("quiet", "active"):
        offered = Offer(chosen, server_state=state, ambient=ambient)
        document = offered.capabilities()
        listed = await offered.tools()
        assert document["tool_count"] == len(listed)
        assert document["command_capable"] == any(
            tool["_meta"]["io.github.tmuxmcp/process-reach"] in ("pane-input", "pane-command")
            for tool in listed
        )
        assert [tool["name"] for tool in document["tools"]] == [tool["name"] for tool in listed]
        for told, tool in zip(document["tools"], listed, strict=True):
            assert told["title"] == tool["title"]
            assert told["hints"]["advertised"] == tool["annotations"]
            public = {key.rpartition("/")[2].replace("-", "_"): value for key, value in tool["_meta"].items()}
            assert public == {key: told[key] for key in public}
            assert not {"sinks", "amplifies_future_input", "may_trigger_configured_hooks"} & told.keys()
            if "nested" in told:
                assert set(told["nested"]) <= {each["name"] for each in listed}


# 11. The lint rejects promises and permits denials. (CM-1, CM-7)

# Spelled in parts, because the lint reads this file too.
PROMISES = ["safety" + " tier", "safety" + " level", "secure" + " mode", "safe" + " command"]
PROMISES += ["sand" + "boxed", "no" + " shell"]


@pytest.mark.parametrize("promise", PROMISES)
def test_invariant_11_a_promise_is_rejected_and_its_denial_is_not(promise: str) -> None:
    for sentence in (f"It has a {promise}.", f"Tools run as {promise}.", f"# The {promise.title()}\n"):
        assert claims.claims(sentence), sentence
    for sentence in (f"It is not {promise}.", f"There is never a {promise} here."):
        assert not claims.claims(sentence), sentence


def test_invariant_11_boundaries_may_be_denied() -> None:
    box, boundary = "sand" + "box", "security" + " boundary"
    assert not claims.claims(f"This is not an OS {box}.")
    assert not claims.claims(f"The socket is no {boundary}.")
    assert claims.claims(f"The socket is a {boundary}.")


def test_invariant_11_every_file_is_read_but_those_that_name_what_they_replace() -> None:
    read = {path.relative_to(ROOT).as_posix() for path in claims.repository_files()}
    assert {"README.md", "tools.toml", "tmuxmcp/disclosure.py", "tests/inventory.py"} <= read
    assert frozenset({"CHANGELOG.md", "docs/migration.md"}) == claims.EXEMPT
    assert not claims.EXEMPT & read


async def test_invariant_11_nothing_that_clients_are_told_promises_anything() -> None:
    for tool in await Offer().tools():
        assert not claims.claims(tool["description"]), tool["name"]
    assert claims.main([]) == 0
