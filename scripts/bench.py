"""Measure tmuxmcp beside bare tmux, the bare SDK and other tmux servers, in one run and one table.

    python -m scripts.bench [--rounds N] [--quick] [--no-peers] [--only WORDS] [--write]

Every product is asked in turn, round by round, so that what else the machine does hits all of them:
read the ratios. The others come from the package index, each into an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scripts import bench_plot
from scripts.bench_process import start, surface
from scripts.bench_products import NOOP, OURS, PEERS, Product, installed
from scripts.bench_rows import RUNS, STREAM, Bench
from scripts.bench_scene import Pane, Scene
from scripts.bench_table import Row, data, markdown, verdicts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- begin: make bench -->\n", "<!-- end: make bench -->\n"
HISTORIES = (100, 10_000, 50_000)


def main() -> int:
    options = _options()
    os.nice(options.nice)
    for name in list(os.environ):
        if name in {"TMUX", "TMUX_PANE"} or name.startswith(("TMUXMCP_", "LIBTMUX_")):
            del os.environ[name]
    products = [OURS]
    if not options.no_peers:
        products += [found for peer in PEERS if (found := installed(peer, ROOT / "build" / "bench"))]
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        scene = Scene(Path(directory).resolve())
        try:
            rows = measure(scene, products, options)
        finally:
            scene.end()
    names = [product.name for product in products]
    table = markdown(rows, names)
    print(table)
    print(
        "\n".join(verdicts(rows, OURS.name)) or "Every bar is kept, and no other product is ahead in any row."
    )
    report = {"machine": machine(), "rounds": options.rounds, "products": names, "rows": data(rows)}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.write:
        write(table, rows, products)
    return 0


def measure(scene: Scene, products: list[Product], options: argparse.Namespace) -> list[Row]:
    """All rows, the parts that `--only` names."""
    rows: list[Row] = []
    with ExitStack() as stack:
        servers = [stack.enter_context(product.start(scene)) for product in products]
        noop = stack.enter_context(NOOP.start(scene))
        bench = Bench(scene, servers, options.rounds)

        def part(name: str, work: Callable[[], list[Row] | None]) -> None:
            if not options.only or name in options.only:
                print(name, file=sys.stderr, flush=True)
                before = len(bench.rows)
                rows.extend(work() or [])
                rows.extend(bench.rows[before:])

        part("start", lambda: start(products, scene, options.starts))
        part("surface", lambda: surface(servers))
        part("noop", lambda: bench.noop(noop))
        part("reads", lambda: bench.reads(1))
        panes = {product.name: [scene.bash(), scene.bash()] for product in products}
        part("runs", lambda: bench.runs(panes))
        part("waits", lambda: bench.waits(panes))
        part("idle", lambda: bench.idle(panes, options.wait_seconds))
        for lines in HISTORIES:
            part("history", partial(bench.history, panes, lines))
        part("follow", lambda: bench.follow(options.stream))
        part("parallel", lambda: bench.parallel(more(scene, panes)))
        for count in (50, 200):
            scene.fill(count)
            part("reads", partial(bench.reads, count))
    return rows


def more(scene: Scene, panes: dict[str, list[Pane]]) -> dict[str, list[Pane]]:
    """Panes enough for every product to run a command in each of its own."""
    return {name: [*own, *(scene.bash() for _ in range(RUNS - len(own)))] for name, own in panes.items()}


def machine() -> dict[str, Any]:
    tmux = subprocess.run(["tmux", "-V"], check=True, capture_output=True, text=True).stdout.strip()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "tmux": tmux,
        "mcp": version("mcp"),
        "load": [round(each, 1) for each in os.getloadavg()],
    }


def write(table: str, rows: list[Row], products: list[Product]) -> None:
    """Put the table and the plots into the documentation."""
    before, rest = PAGE.read_text().split(BEGIN)
    facts = machine()
    said = f"{facts['system']}, {facts['cores']} cores, tmux {facts['tmux'].removeprefix('tmux ')}, "
    others = ", ".join(product.requirement.replace("==", " ") for product in products if product.requirement)
    said += f"Python {facts['python']}, mcp {facts['mcp']}; {others or 'no other server'}."
    PAGE.write_text(f"{before}{BEGIN}{said}\n\n{table}{END}{rest.split(END)[1]}")
    (PAGE.parent / "images" / "growth.svg").write_text(
        bench_plot.svg(rows, [product.name for product in products])
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure tmuxmcp beside other tmux servers.")
    add = parser.add_argument
    add("--rounds", type=int, default=30, help="samples of each product in a row (%(default)s)")
    add("--starts", type=int, default=20, help="starts of each product (%(default)s)")
    add("--wait-seconds", type=float, default=30, help="length of the quiet wait (%(default)s)")
    add("--stream", type=int, default=STREAM, help="lines of the stream to follow (%(default)s)")
    add("--quick", action="store_true", help="few samples, a short wait, a short stream")
    add("--no-peers", action="store_true", help="measure only tmuxmcp and the floors")
    add("--only", nargs="*", metavar="PART", help="start, surface, noop, reads, runs, waits, ...")
    add("--nice", type=int, default=0, help="run with this much less priority")
    add("--json", type=Path, default=ROOT / "build" / "bench.json", help="where all samples go (%(default)s)")
    add("--write", action="store_true", help="put the table and the plots into the documentation")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.starts, options.wait_seconds, options.stream = 6, 2, 5.0, 20_000
    return options


if __name__ == "__main__":
    sys.exit(main())
