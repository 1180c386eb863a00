"""search_panes: what is found, where, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench import Bench
from tests.calls import Tools
from tmuxmcp.errors import InvalidPattern
from tmuxmcp.terminal.search import TEXT_CHARACTERS


async def shows(bench: Bench, text: str, *, pane_id: str = "%0") -> None:
    """Have a pane show a text, as its only output."""
    file = bench.path.parent / f"text{pane_id}"
    file.write_text(text)
    bench.tmux("respawn-pane", "-k", "-t", pane_id, f"cat {file}; printf '\\nEND'; exec cat")
    await bench.until(lambda: "END" in bench.tmux("capture-pane", "-p", "-t", pane_id))


def lines(result: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(match["pane_id"], match["line"], match["text"]) for match in result["matches"]]


async def check_lines(tools: Tools, result: dict[str, Any]) -> None:
    """Assert that capture_pane, asked for the line of each match, begins with that match."""
    for match in result["matches"]:
        read = await tools("capture_pane", pane_id=match["pane_id"], start_line=match["line"])
        assert read["content"].split("\n")[0] == match["text"]


async def test_lines_are_found_where_capture_pane_reads_them(bench: Bench) -> None:
    await shows(bench, "".join(f"number {number}\n" for number in range(60)))
    result = await bench.tools("search_panes", pattern="number 5", history_lines=100)
    assert [text for _, _, text in lines(result)] == ["number 5", *(f"number 5{n}" for n in range(10))]
    assert result["matches"][0]["line"] < 0 < result["matches"][-1]["line"]
    assert result["panes_searched"] == 1
    await check_lines(bench.tools, result)


async def test_without_history_lines_only_the_screen_is_searched(bench: Bench) -> None:
    await shows(bench, "".join(f"number {number}\n" for number in range(60)))
    assert lines(await bench.tools("search_panes", pattern="number 5")) != []
    assert lines(await bench.tools("search_panes", pattern="number 7")) == []
    assert lines(await bench.tools("search_panes", pattern="number 37", history_lines=1)) == [
        ("%0", -1, "number 37")
    ]


async def test_a_wrapped_line_is_searched_whole(bench: Bench) -> None:
    await shows(bench, f"first\n{'x' * 78}needle{'y' * 200}\nlast\n")
    result = await bench.tools("search_panes", pattern="needle")
    assert lines(result) == [("%0", 1, f"{'x' * 78}needle{'y' * 200}")]
    await check_lines(bench.tools, await bench.tools("search_panes", pattern="last"))
    assert lines(await bench.tools("search_panes", pattern="last")) == [("%0", 5, "last")]


async def test_wrapped_wide_characters_and_blanks(bench: Bench) -> None:
    await shows(bench, f"{'日本' * 30}\n{' ' * 100}in\n{'a ' * 100}\n\n\nlast é😀 \n")
    for pattern in ("日本", "in", "a a", "é😀"):
        result = await bench.tools("search_panes", pattern=pattern)
        assert len(result["matches"]) == 1
        await check_lines(bench.tools, result)


async def test_literals_and_expressions(bench: Bench) -> None:
    await shows(bench, "a.b\naxb\nA.B\n#(touch x)\n-x;\n")
    assert [line for _, line, _ in lines(await bench.tools("search_panes", pattern="a.b"))] == [0, 2]
    assert [
        line for _, line, _ in lines(await bench.tools("search_panes", pattern="a.b", match_case=True))
    ] == [0]
    found = await bench.tools("search_panes", pattern="^a.b$", regex=True, match_case=True)
    assert [line for _, line, _ in lines(found)] == [0, 1]
    assert [line for _, line, _ in lines(await bench.tools("search_panes", pattern="#(touch x)"))] == [3]
    assert [line for _, line, _ in lines(await bench.tools("search_panes", pattern="-x;"))] == [4]
    with pytest.raises(InvalidPattern, match="RE2"):
        await bench.tools("search_panes", pattern="(?=a)", regex=True)


async def test_rows_below_the_text_are_no_lines(bench: Bench) -> None:
    await shows(bench, "one\n\ntwo\n")
    assert [line for _, line, _ in lines(await bench.tools("search_panes", pattern="^$", regex=True))] == [
        1,
        3,
    ]


async def test_context(bench: Bench) -> None:
    await shows(bench, "one\ntwo\nthree\nfour\n")
    (match,) = (await bench.tools("search_panes", pattern="two", context_lines=2))["matches"]
    assert match == {
        "pane_id": "%0",
        "line": 1,
        "text": "two",
        "before": ["one"],
        "after": ["three", "four"],
    }
    (match,) = (await bench.tools("search_panes", pattern="two"))["matches"]
    assert match == {"pane_id": "%0", "line": 1, "text": "two"}


async def test_which_panes_are_searched(bench: Bench) -> None:
    bench.tmux("split-window", "-d", "-t", "%0", "exec cat", ";", "new-session", "-d", "-s", "b", "exec cat")
    for pane_id in ("%0", "%1", "%2"):
        await shows(bench, "here\n", pane_id=pane_id)
    everywhere = await bench.tools("search_panes", pattern="here")
    assert [pane for pane, _, _ in lines(everywhere)] == ["%0", "%1", "%2"]
    assert everywhere["panes_searched"] == 3
    assert [pane for pane, _, _ in lines(await bench.tools("search_panes", pattern="here", session="b"))] == [
        "%2"
    ]
    inside = await bench.tools("search_panes", pattern="here", window_id="@0")
    assert [pane for pane, _, _ in lines(inside)] == ["%0", "%1"]
    bench.tmux("link-window", "-s", "=b:0", "-t", "=a:7")
    assert (await bench.tools("search_panes", pattern="here"))["panes_searched"] == 3


async def test_pages_of_matches(bench: Bench) -> None:
    bench.tmux("split-window", "-d", "-t", "%0", "exec cat")
    for pane_id in ("%0", "%1"):
        await shows(bench, "".join(f"match {number}\n" for number in range(5)), pane_id=pane_id)
    whole = await bench.tools("search_panes", pattern="match")
    assert len(whole["matches"]) == 10
    assert "truncated" not in whole
    seen: list[Any] = []
    offset = 0
    while True:
        page = await bench.tools("search_panes", pattern="match", max_matches=4, offset=offset)
        seen += page["matches"]
        if "next_offset" not in page:
            break
        assert page["truncated"]
        offset = page["next_offset"]
    assert seen == whole["matches"]
    assert (await bench.tools("search_panes", pattern="match", max_matches=10)) == whole


async def test_a_result_holds_48_kilobytes_and_one_line_2000_characters(bench: Bench) -> None:
    await shows(bench, "".join(f"{number} {'x' * 3000} needle {'y' * 3000}\n" for number in range(60)))
    result = await bench.tools("search_panes", pattern="needle", history_lines=10_000)
    assert result["truncated"]
    assert 20 <= len(result["matches"]) <= 24
    assert result["next_offset"] == len(result["matches"])
    for match in result["matches"]:
        assert match["cut"]
        assert len(match["text"]) == TEXT_CHARACTERS
        assert " needle " in match["text"]


async def test_the_alternate_screen_is_what_is_searched(bench: Bench) -> None:
    await shows(bench, "main screen\n\033[?1049halternate screen\n")
    found = await bench.tools("search_panes", pattern="screen")
    assert [text for _, _, text in lines(found)] == ["alternate screen"]


async def test_a_pane_that_ends_meanwhile_is_passed_over(bench: Bench) -> None:
    bench.tmux(
        "split-window", "-d", "-t", "%0", "exec cat", ";", "split-window", "-d", "-t", "%0", "exec cat"
    )
    for pane_id in ("%0", "%1", "%2"):
        await shows(bench, "here\n", pane_id=pane_id)
    # The hook ends the pane between the listing and the reading.
    bench.tmux(
        "set-hook", "-g", "after-list-panes", "if-shell -F '#{==:#{window_panes},3}' 'kill-pane -t %1'"
    )
    found = await bench.tools("search_panes", pattern="here")
    assert [pane for pane, _, _ in lines(found)] == ["%0", "%2"]
    assert found["panes_searched"] == 2


async def test_chunks_of_panes(bench: Bench) -> None:
    for start in range(0, 65, 13):
        bench.tmux(*(("new-window", "-d", "-t", "=a:", f"echo here {start}; exec cat", ";") * 13)[:-1])
    await bench.until(lambda: "here 52" in bench.tmux("capture-pane", "-p", "-t", "%65"))
    await bench.client.version()
    before = bench.processes
    found = await bench.tools("search_panes", pattern="here 52")
    assert found["panes_searched"] == 66
    assert [pane for pane, _, _ in lines(found)] == [f"%{number}" for number in range(53, 66)]
    assert bench.processes - before == 4
