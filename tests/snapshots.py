"""Write the schemas of every tool to tests/schemas/, where a change of what clients are told can be seen.

``make snapshots`` runs it; `tests.test_snapshots` fails while they are out of date.
"""

from __future__ import annotations

import json
from pathlib import Path

import anyio

from tests.offer import Offer

DIRECTORY = Path(__file__).with_name("schemas")


async def files() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        f"{tool['name']}.json": json.dumps(
            {key: tool[key] for key in ("inputSchema", "outputSchema")}, indent=2
        )
        + "\n"
        for tool in await Offer().tools()
    }


def main() -> None:
    wanted = anyio.run(files)
    DIRECTORY.mkdir(exist_ok=True)
    for path in DIRECTORY.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (DIRECTORY / name).write_text(text)


if __name__ == "__main__":
    main()
