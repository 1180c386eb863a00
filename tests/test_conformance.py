"""docs/conformance.md answers every clause, and what it names to hold one exists."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/conformance.md"
CLAUSES = {
    f"{section}.{number}": text
    for section, texts in tomllib.loads((ROOT / "tests/clauses.toml").read_text()).items()
    for number, text in enumerate(texts, 1)
}
SUPERSEDED = {"Limit.3": "superseded by ADR CM-4", "Absent.10": "superseded by ADR CM-3"}
"""The only clauses of the capability model that the decision record overrules."""


class Answer(NamedTuple):
    requirement: str
    tests: list[str]
    pages: list[str]
    said: str


def answers() -> dict[str, Answer]:
    found = {}
    for clause, requirement, held in re.findall(
        r"^\| (\S+\.\d+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.M
    ):
        tests = re.findall(r"`(tests/[\w/.]+::\w+)`", held)
        pages = re.findall(r"\]\(([\w/.-]+\.md(?:#[\w-]+)?)\)", held)
        assert clause not in found, f"{clause} stands twice"
        found[clause] = Answer(requirement, tests, pages, held)
    return found


@cache
def functions_of(file: str) -> set[str]:
    """The test functions of a file that nothing keeps from running."""
    tree = ast.parse((ROOT / file).read_text())
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not any(
            "skip" in ast.unparse(each) or "xfail" in ast.unparse(each) for each in node.decorator_list
        )
    }


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them, and those that it names itself."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r"^\((\S+)\)=$", text, re.MULTILINE))


def test_no_clause_is_missing_and_each_stands_as_it_is() -> None:
    assert {clause: answer.requirement for clause, answer in answers().items()} == CLAUSES


@pytest.mark.parametrize("clause", CLAUSES)
def test_what_holds_a_clause_exists(clause: str) -> None:
    answer = answers()[clause]
    if clause in SUPERSEDED:
        assert answer.said == SUPERSEDED[clause]
        return
    assert "superseded" not in answer.said
    assert answer.tests
    for test in answer.tests:
        file, _, name = test.partition("::")
        assert name in functions_of(file), test
    for link in answer.pages:
        page, _, anchor = link.partition("#")
        assert not anchor or anchor in anchors(PAGE.parent / page), link


def test_nothing_else_is_said_to_hold_a_clause() -> None:
    for clause, answer in answers().items():
        named = [f"`{test}`" for test in answer.tests] + re.findall(r"\[[^]]+\]\([^)]+\)", answer.said)
        assert answer.said in (", ".join(named), SUPERSEDED.get(clause))


def test_the_page_counts_the_clauses_that_are_overruled() -> None:
    assert "That is so in two places, and no other" in " ".join(PAGE.read_text().split())
