"""The documentation: the site builds, needs no network to be read, and its examples are what tools answer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import examples, generate
from tests.conftest import TMUX

DOCS = generate.ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, where a broken link is an error."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(DOCS), str(target)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    return target


def test_every_page_is_built(site: Path) -> None:
    sources = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert sources <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_nothing_is_loaded_from_the_network(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*")
    for page in site.rglob("*.html"):
        assert not loaded.findall(page.read_text()), page.name


def test_there_is_an_example_of_every_tool() -> None:
    assert examples.stored()["examples"].keys() == generate.load().keys()


def test_tools_answer_as_their_examples_show() -> None:
    new, old = examples.record(TMUX), examples.stored()
    if new["tmux"] != old["tmux"]:
        pytest.skip(f"the examples are of {old['tmux']}; {new['tmux']} has other fields")
    assert list(examples.differences(new, old)) == []
