"""Rows of measurements, as a table that people read and as data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Row:
    """One line of the table. `at` places it on an axis of a plot of its `family`."""

    title: str
    unit: str = "ms"
    bar: float | None = None
    """What we have to stay within: spawns where there is a floor, else `unit`."""
    ranked: bool = True
    """Whether less is better."""
    family: str = ""
    at: int = 0
    floor: list[float] = field(default_factory=list)
    """Bare tmux spawns in the same rounds, in `unit`."""
    samples: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """Why a product has no samples, or what else there is to say of them."""

    def add(self, name: str, value: float) -> None:
        self.samples.setdefault(name, []).append(value)

    def wrong(self, name: str, why: str) -> None:
        self.notes[name] = why
        self.samples.pop(name, None)

    def median(self, name: str) -> float | None:
        return statistics.median(self.samples[name]) if name in self.samples else None

    def ratio(self, name: str) -> float | None:
        """To the floor: medians of the same rounds."""
        middle = self.median(name)
        return middle / statistics.median(self.floor) if middle is not None and self.floor else None


def markdown(rows: Sequence[Row], names: Sequence[str]) -> str:
    """A table with a column for each product, `names[0]` being ours."""
    head = ["", "bar", "bare spawn", *names]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        floor = _spread(row.floor) if row.floor else ""
        lines.append([_title(row), _bar(row), floor, *(_cell(row, name, names) for name in names)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def data(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Every sample, for other programs."""
    return [asdict(row) for row in rows]


def verdicts(rows: Sequence[Row], ours: str) -> list[str]:
    """What is not as it should be: a bar that is not kept, a peer that is better."""
    said = []
    for row in rows:
        value = row.ratio(ours) if row.floor else row.median(ours)
        if value is None:
            said.append(f"{row.title}: {row.notes.get(ours, 'not measured')}")
            continue
        if row.bar is not None and value > row.bar:
            said.append(f"{row.title}: {_number(value)} where the bar is {_number(row.bar)}")
        mine = row.median(ours)
        for name in row.samples:
            theirs = row.median(name)
            if name != ours and row.ranked and mine is not None and theirs is not None and theirs < mine:
                said.append(f"{row.title}: {name} has {_number(theirs)}, and we {_number(mine)} {row.unit}")
    return said


def _title(row: Row) -> str:
    return f"{row.title}, {row.unit}" if row.unit else row.title


def _bar(row: Row) -> str:
    if row.bar is None:
        return ""
    return f"≤ {_number(row.bar)}{' x' if row.floor else ''}"


def _cell(row: Row, name: str, names: Sequence[str]) -> str:
    middle = row.median(name)
    if middle is None:
        return f"✗ {row.notes.get(name, 'not measured')}"
    ratio = row.ratio(name)
    said = _spread(row.samples[name]) + (f" = {ratio:.2f} x" if ratio is not None else "")
    best = min(value for each in names if (value := row.median(each)) is not None)
    return f"**{said}**" if row.ranked and middle == best else said


def _spread(samples: Sequence[float]) -> str:
    """The median, and the middle half of the samples."""
    middle = _number(statistics.median(samples))
    if len(samples) < 4:
        return middle
    low, _, high = statistics.quantiles(samples, n=4)
    return f"{middle} ({_number(low)}..{_number(high)})"


def _number(value: float) -> str:
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
