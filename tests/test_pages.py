"""Long lists: rows beyond the page are counted, and not filled in."""

from __future__ import annotations

from typing import Any

from tests.bench import Bench


def fill(bench: Bench, windows: int, first: int = 1) -> None:
    """Give session `a` this many windows more, numbered from `first` on."""
    each = [["new-window", "-d", "-t", f"a:{first + at}", "exec cat", ";"] for at in range(windows)]
    bench.tmux(*(word for words in each for word in words))


async def pages(bench: Bench, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """The rows of all pages."""
    rows: list[dict[str, Any]] = []
    offset = 0
    while True:
        page = await bench.tools(tool, offset=offset, **arguments)
        rows += page[tool.removeprefix("list_")]
        if "next_offset" not in page:
            return rows
        assert page["next_offset"] == len(rows) > offset
        offset = page["next_offset"]


async def right(bench: Bench, **arguments: Any) -> None:
    """Check that the pages together are all rows, in tmux's order."""
    windows = await pages(bench, "list_windows", **arguments)
    listed = bench.tmux("list-windows", "-a", "-F", "#{session_id} #{window_index} #{window_id}").splitlines()
    assert [f"{row['session_id']} {row['index']} {row['window_id']}" for row in windows] == listed
    panes = await pages(bench, "list_panes", **arguments)
    assert [row["pane_id"] for row in panes] == bench.tmux("list-panes", "-a", "-F", "#{pane_id}").split()
    assert all(row["pid"] and row["tty"] for row in panes)


async def test_a_page_of_many_windows_takes_one_process(bench: Bench) -> None:
    fill(bench, 140)
    bench.tmux("new-session", "-d", "-s", "b", "exec cat")
    bench.tmux("split-window", "-d", "-t", "b:", "exec cat")
    await bench.tools("list_panes")
    before = bench.processes
    page = await bench.tools("list_panes")
    assert bench.processes - before == 1
    assert (len(page["panes"]), page["next_offset"]) == (100, 100)
    await right(bench)
    await right(bench, limit=70)


async def test_a_long_list_is_filled_in_once(bench: Bench) -> None:
    """Of a list that was long at the last call, and no longer than that, tmux tells the first rows."""

    async def terminals() -> int:
        assert len((await bench.tools("list_panes"))["panes"]) <= 100
        return bench.counting.printed.count(b"/dev/")

    fill(bench, 140)
    all_of_them = len(bench.tmux("list-panes", "-a").splitlines())
    assert await terminals() == all_of_them > 140
    assert await terminals() < all_of_them
    for _ in range(100):
        bench.tmux("kill-window", "-t", "a:{end}")
    assert await terminals() < all_of_them  # short by now, and known to be from here on
    fill(bench, 3, first=5000)
    assert await terminals() == all_of_them - 97


async def test_windows_with_high_numbers_are_on_their_page(bench: Bench) -> None:
    fill(bench, 3, first=3000)
    await right(bench)
    fill(bench, 140, first=1000)
    await right(bench)
