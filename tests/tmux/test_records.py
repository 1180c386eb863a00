"""Rows: any byte may be in a value."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp.errors import TmuxFailed
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, command, target
from tmuxmcp.tmux.records import Template, new_nonce

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
THREE = Template(a="#{a}", b="#{b}", c="#{c}")


def said(template: Template, nonce: str, row: dict[str, str]) -> str:
    """What tmux prints for a row: its format, with the values in their places."""
    return Template(**{name: row[name] for name in template.fields}).format(nonce)


@given(st.lists(st.fixed_dictionaries({"a": TEXT, "b": TEXT, "c": TEXT})), st.lists(TEXT, min_size=1))
def test_rows_come_back_whatever_is_in_and_around_them(rows: list[dict[str, str]], noise: list[str]) -> None:
    nonce = new_nonce()
    text = noise[0]
    for at, row in enumerate(rows):
        text += said(THREE, nonce, row) + "\n" + noise[at % len(noise)]
    assert THREE.parse(text, nonce) == rows


@given(st.text("<|>\nabc"))
def test_the_marks_alone_mean_nothing(value: str) -> None:
    nonce = new_nonce()
    assert Template(a="x").parse(said(Template(a="x"), nonce, {"a": value}), nonce) == [{"a": value}]


def test_a_damaged_row_is_an_error() -> None:
    nonce = new_nonce()
    for text in [
        f"{nonce}<1{nonce}|2{nonce}>",
        f"{nonce}>",
        f"{nonce}<1{nonce}|2{nonce}|3{nonce}|4{nonce}>",
        nonce,
    ]:
        with pytest.raises(TmuxFailed):
            THREE.parse(text, nonce)


def test_nonces_differ_and_are_inert_in_formats() -> None:
    nonces = {new_nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all((nonce.isalnum() and nonce.islower()) or nonce.isdigit() for nonce in nonces)


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        (command("list-panes", "-a"), ("-F", "FORMAT", "-a")),
        (command("display-message", "-t", "%1"), ("-t", "%1", "-p", "FORMAT")),
        (command("new-window", "-d", "--", "cat"), ("-P", "-F", "FORMAT", "-d", "--", "cat")),
    ],
)
def test_where_the_format_goes(listing: object, expected: tuple[str, ...]) -> None:
    template = Template(a="#{a}")
    asked = template.ask(listing, "n")  # type: ignore[arg-type]
    assert asked.args == tuple(template.format("n") if word == "FORMAT" else word for word in expected)


HOSTILE = ["a\nb\n\nc", "a\tb", "n<|>", "x\x01y", "é😀", " "]


async def test_values_with_newlines_in_tmux(client: Client, ids: dict[str, str]) -> None:
    template = Template(before="#{pane_id}", value="#{@v}", after="#{window_id}")
    for value in HOSTILE:
        await client.call(command("set-option", "-g", "@v", value))
        for listing in [command("list-panes", "-a"), command("display-message", "-t", target(ids["pane"]))]:
            (row,) = await client.rows(listing=listing, template=template)
            assert (row["before"], row["after"]) == (ids["pane"], ids["window"])
            assert row["value"].replace(r"\001", "\x01") == value  # 3.4 and 3.5a write control characters so


async def test_a_title_that_a_program_sets(client: Client, ids: dict[str, str], tmp_path: Path) -> None:
    script = tmp_path / "title.py"
    script.write_text(
        "print('\\033]2;#{pid} %H <|> $HOME #(touch hit) \\033\\\\', flush=True)\nwhile True: input()"
    )
    pane = target(ids["pane"])
    title = Arg("COMMAND", f"cd {tmp_path} && exec {sys.executable} {script}")
    await client.call(command("respawn-pane", "-k", "-t", pane, title))
    with anyio.fail_after(10):
        while True:
            (row,) = await client.rows(
                command("has-session", "-t", pane),
                listing=command("display-message", "-t", pane),
                template=Template(title="#{pane_title}", id="#{pane_id}"),
            )
            if row["title"].startswith("#"):
                break
            await anyio.sleep(0.02)
    # 3.4 writes \$ for $; 3.7 and later keep no #( in a title.
    said = row["title"].replace(r"\$", "$").replace("_(", "#(").strip()
    assert said == "#{pid} %H <|> $HOME #(touch hit)"
    assert row["id"] == ids["pane"]
    assert not (tmp_path / "hit").exists()


async def test_what_hooks_print_falls_through(client: Client, ids: dict[str, str]) -> None:
    await client.call(command("set-hook", "-g", "after-list-panes", "display-message -p 'noise <|>'"))
    rows = await client.rows(listing=command("list-panes", "-a"), template=Template(id="#{pane_id}"))
    assert rows == [{"id": ids["pane"]}]
