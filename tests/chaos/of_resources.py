"""Faults of the system: full disks, few descriptors, a directory that is gone."""

from __future__ import annotations

import os
import resource
import shutil
import sys

from tests.chaos.faults import fault
from tests.chaos.scene import Scene
from tests.chaos.world import FINE, World, descriptors


def limited(resource: str, limit: int) -> tuple[str, ...]:
    """The beginning of an argv that runs the rest of it with a limit."""
    script = (
        f"import os, resource as r, sys; r.setrlimit(r.{resource}, ({limit}, {limit}));"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    return sys.executable, "-c", script


@fault(TMUXMCP_AUDIT="path:/dev/full")
async def full_device(world: World) -> None:
    """The audit record goes to a device that is full."""
    await _calls_go_on(world)


LARGEST = 64 << 20


def _full(scene: Scene) -> dict[str, str]:
    """An audit record that is as large as a file may be."""
    scene.place.audit.touch()
    os.truncate(scene.place.audit, LARGEST)
    return {}


@fault(*limited("RLIMIT_FSIZE", LARGEST), prepare=_full)
async def full_file(world: World) -> None:
    """The audit record's file cannot grow."""
    await _calls_go_on(world)


async def _calls_go_on(world: World) -> None:
    world.faults += 1
    for _ in range(3):
        await world.all_end(await world.some(5), FINE)
    said = [line for line in world.scene.place.errors.read_text().splitlines() if "no audit event" in line]
    if len(said) != 1:
        world.wrong.append(f"{len(said)} lines say that there is no audit record")
    await world.recovered()


@fault()
async def few_descriptors(world: World) -> None:
    """Our process may open hardly more files than it has."""
    await world.sink()
    pid = world.caller.process.pid
    for _ in range(4):
        if sys.platform == "linux":  # where the limit of another process can be changed
            most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            few = descriptors(pid) + world.choice.randrange(12)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, most[1]))
        some = await world.some(8)
        world.faults += 1
        await world.all_end(some, FINE | {"tmux_failed", "not_started"})
        if sys.platform == "linux":
            resource.prlimit(pid, resource.RLIMIT_NOFILE, most)
        await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


def _own_temporary(scene: Scene) -> dict[str, str]:
    lost = scene.place.work / "lost"
    lost.mkdir()
    return {"TMPDIR": str(lost)}


@fault(prepare=_own_temporary)
async def remove_directory(world: World) -> None:
    """The directory in which our process was started goes, with its temporary one."""
    some = await world.some(3)
    shutil.rmtree(world.scene.place.work / "lost")
    moved = world.scene.place.work.rename(world.scene.place.directory / "tmp" / "moved")
    world.faults += 1
    try:
        await world.all_end(some, FINE)
        await world.all_end([await world.read() for _ in range(5)], FINE)
    finally:
        moved.rename(world.scene.place.work)
    await world.recovered()
