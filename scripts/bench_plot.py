"""How what a call costs grows, as one SVG picture: a panel for each family of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from scripts.bench_table import Row

COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b")
FLOOR = "#999999"
AXES = {
    "list panes": "panes on the server",
    "capture": "panes on the server",
    "run true": "lines of history in the pane",
    "read on": "lines of history in the pane",
    "captures at once": "calls at once (time for all)",
    "runs at once": "commands at once (time for all)",
}
WIDTH, HEIGHT, COLUMNS = 300, 220, 3
LEFT, RIGHT, TOP, BOTTOM = 52, 26, 30, 42


def svg(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Panels with a line for each product, in milliseconds on a logarithmic scale."""
    families = {family: [row for row in rows if row.family == family] for family in AXES}
    drawn = {family: sorted(each, key=lambda row: row.at) for family, each in families.items() if each}
    height = math.ceil(len(drawn) / COLUMNS) * HEIGHT + 30
    size = f'viewBox="0 0 {COLUMNS * WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect width="{COLUMNS * WIDTH}" height="{height}" fill="white"/>',
        *_legend([*names, "bare tmux spawn"], height - 12),
    ]
    for index, (family, each) in enumerate(drawn.items()):
        x, y = index % COLUMNS * WIDTH, index // COLUMNS * HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_panel(family, each, names), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(family: str, rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    curves = {name: [row.median(name) for row in rows] for name in names}
    floors = [sum(row.floor) / len(row.floor) for row in rows]
    values = [value for curve in curves.values() for value in curve if value is not None] + floors
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    xs = [LEFT + (WIDTH - LEFT - RIGHT) * at / max(1, len(rows) - 1) for at in range(len(rows))]

    def height(value: float) -> float:
        part = math.log10(value / low) / math.log10(high / low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    yield _text(WIDTH / 2, 18, f"{family}, ms", "middle", bold=True)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, AXES[family], "middle")
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = height(10**exponent)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e0e0e0"/>'
        yield _text(LEFT - 6, y + 4, f"{10**exponent:g}", "end")
    for x, row in zip(xs, rows, strict=True):
        yield _text(x, HEIGHT - BOTTOM + 15, f"{row.at:,}", "middle")
    drawn: list[Sequence[float | None]] = [floors, *curves.values()]
    for curve, colour in zip(drawn, (FLOOR, *COLOURS), strict=False):
        points = [(x, height(value)) for x, value in zip(xs, curve, strict=True) if value is not None]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="4 3"' if colour == FLOOR else ""
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)


def _legend(names: Sequence[str], y: float) -> Iterator[str]:
    colours = [*COLOURS[: len(names) - 1], FLOOR]
    for at, (name, colour) in enumerate(zip(names, colours, strict=True)):
        x = 20 + at * 170
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        yield _text(x + 15, y, name, "start")


def _text(x: float, y: float, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
