"""A small chart: some series over the same axis, each in a panel of its own, from zero up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, GAP = 640, 70, 190, 14


def svg(x: Sequence[float], series: Mapping[str, Sequence[float]]) -> str:
    """The chart, as an SVG document."""
    total = len(series) * (HEIGHT + GAP) + 2 * GAP
    size = f'viewBox="0 0 {LEFT + WIDTH + GAP} {total}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for row, (name, values) in enumerate(series.items()):
        lines += _panel(name, x, values, GAP + row * (HEIGHT + GAP))
    lines.append(f'<text x="{LEFT + WIDTH}" y="{total - 6}" text-anchor="end">{x[-1]:,} calls</text>')
    return "\n".join([*lines, "</svg>", ""])


def _panel(name: str, x: Sequence[float], values: Sequence[float], top: float) -> Iterator[str]:
    most = max(*values, 0.001) * 1.1
    points = " ".join(
        f"{LEFT + WIDTH * at / x[-1]:.1f},{top + HEIGHT * (1 - value / most):.1f}"
        for at, value in zip(x, values, strict=True)
    )
    yield f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="#f4f4f4"/>'
    yield f'<polyline points="{points}" fill="none" stroke="#2563eb" stroke-width="1.5"/>'
    yield f'<text x="{LEFT - 8}" y="{top + 16}" text-anchor="end">{escape(name)}</text>'
    ends = f"{values[0]:.4g} to {values[-1]:.4g}"
    yield f'<text x="{LEFT - 8}" y="{top + 34}" text-anchor="end" fill="#555">{ends}</text>'
