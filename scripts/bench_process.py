"""What a server costs before its first call: time, memory, and the size of what it says of itself."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.bench_products import Product, Server
from scripts.bench_scene import Scene
from scripts.bench_table import Row

_IMPORT = "import mcp.server.lowlevel, mcp.server.stdio; print(flush=True); input()"


class Cost(NamedTuple):
    seconds: float
    cpu: float
    """Seconds."""
    memory: float
    """Resident, in MB."""


def start(products: Sequence[Product], scene: Scene, count: int) -> list[Row]:
    """From the start of the process to the answers, and its memory then."""
    beyond = "beyond importing its SDK"
    sdk_row = Row(title="importing its SDK alone", ranked=False)
    initialize = Row(title="start → initialize")
    listed = Row(title="start → tools/list")
    listed_beyond = Row(title=f"start → tools/list, {beyond}", bar=150)
    processor = Row(title=f"start → tools/list, CPU {beyond}")
    memory = Row(title="resident memory after tools/list", unit="MB")
    memory_beyond = Row(title=f"resident memory, {beyond}", unit="MB", bar=15)
    for _ in range(count):
        for product in random.sample(products, len(products)):
            sdk = _importing(product)
            began = time.perf_counter()
            with product.start(scene) as server:
                opened = time.perf_counter()
                server.result(server.request("tools/list"))
                ready = _cost(server.process.pid, began)
            name = product.name
            sdk_row.add(name, sdk.seconds * 1000)
            initialize.add(name, (opened - began) * 1000)
            listed.add(name, ready.seconds * 1000)
            listed_beyond.add(name, (ready.seconds - sdk.seconds) * 1000)
            processor.add(name, (ready.cpu - sdk.cpu) * 1000)
            memory.add(name, ready.memory)
            memory_beyond.add(name, ready.memory - sdk.memory)
    return [sdk_row, initialize, listed, listed_beyond, processor, memory, memory_beyond]


def surface(servers: Sequence[Server]) -> list[Row]:
    """What the list of tools costs a client, and the model behind it."""
    tools = Row(title="tools offered", unit="", ranked=False)
    read = Row(title="tools/list, what a model reads", unit="kB", bar=26, ranked=False)
    whole = Row(title="tools/list, whole answer", unit="kB", bar=60, ranked=False)
    read_each = Row(title="tools/list, what a model reads of one tool", unit="bytes")
    whole_each = Row(title="tools/list, whole answer for one tool", unit="bytes")
    for server in servers:
        answer = server.result(server.request("tools/list"))
        offered = answer["tools"]
        facing = [
            {key: tool.get(key, "") for key in ("name", "description", "inputSchema")} for tool in offered
        ]
        tools.add(server.name, len(offered))
        read.add(server.name, _size(facing) / 1000)
        whole.add(server.name, _size(answer) / 1000)
        read_each.add(server.name, _size(facing) / len(offered))
        whole_each.add(server.name, _size(answer) / len(offered))
    return [tools, read, whole, read_each, whole_each]


def cpu(pid: int) -> float:
    """Processor seconds of a process and of the children that it has reaped; 0 where /proc cannot tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _importing(product: Product) -> Cost:
    """What a process costs that only imports the SDK that the product uses."""
    began = time.perf_counter()
    argv = [product.python, "-c", _IMPORT]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        cost = _cost(process.pid, began)
        process.communicate(b"\n")
    return cost


def _cost(pid: int, began: float) -> Cost:
    seconds = time.perf_counter() - began
    said = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], check=True, capture_output=True, text=True)
    return Cost(seconds, cpu(pid), int(said.stdout) / 1024)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
