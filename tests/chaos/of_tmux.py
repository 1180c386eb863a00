"""Faults of tmux: its server, its socket, its program."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.faults import fault
from tests.chaos.scene import Scene
from tests.chaos.world import FINE, GONE, World
from tests.conftest import TMUX


@fault(others=False)
async def kill_our_server(world: World) -> None:
    """The tmux server that we started is killed with calls of every kind in flight."""
    await _kill_server(world)


@fault()
async def kill_their_server(world: World) -> None:
    """The tmux server that others started is killed with calls of every kind in flight."""
    await _kill_server(world)


async def _kill_server(world: World) -> None:
    lasting = await world.lasting()
    waiting = [await world.wait(), await world.wait()]
    channel = await world.caller.begin("wait_for_channel", channel="killed", timeout=25)
    await world.moving(channel)
    some = await world.some(world.choice.randrange(6))
    await world.pause(0.3)
    world.scene.kill_server()
    world.faults += 1
    for each in (lasting.pending, *waiting, channel):
        await world.ends(each, {"server_gone"})
    await world.all_end(some, FINE | GONE | {"not_started"})
    await world.ends((await world.run()).pending, {"not_found"})
    await world.ends(await world.caller.begin("list_sessions"), {"ok"})
    await world.recovered()


@fault()
async def stop_server(world: World) -> None:
    """The tmux server stands still for longer than a call waits for it, and goes on."""
    await world.sink()
    lasting = await world.lasting(timeout=4)
    waiting = await world.wait(timeout=4)
    some = await world.some(world.choice.randrange(6))
    await world.pause(0.3)
    pid = world.scene.note_server()
    os.kill(pid, signal.SIGSTOP)
    world.faults += 1
    some += await world.some(2)
    # Which of the two it is depends on whether its time was up before tmux's.
    await world.ends(lasting.pending, {"timed_out", "tmux_timeout"})
    await world.ends(waiting, {"timeout", "tmux_timeout"})
    await world.all_end(some, FINE | {"tmux_timeout", "not_started"})
    os.kill(pid, signal.SIGCONT)
    await world.ends(await world.read(), {"ok"})
    await world.recovered()


@fault()
async def halt_server(world: World) -> None:
    """The tmux server stands still for a moment: nobody may notice."""
    await world.sink()
    lasting = await world.lasting()
    some = await world.some(4)
    pid = world.scene.note_server()
    for _ in range(3):
        await world.pause(0.2)
        os.kill(pid, signal.SIGSTOP)
        world.faults += 1
        some += await world.some(1)
        await world.pause(0.5)
        os.kill(pid, signal.SIGCONT)
    await world.all_end(some, FINE | {"not_started"})
    await world.must("send_keys", pane_id=world.pane, keys=["C-c"])
    await world.ends(lasting.pending, {"completed"})
    await world.recovered()


@fault()
async def restart_server(world: World) -> None:
    """The tmux server ends, and another one with the same ids is there at once."""
    pane = world.pane
    lasting = await world.lasting()
    waiting = await world.wait()
    cursor = (await world.must("capture_since", pane_id=pane))["cursor"]
    some = await world.some(world.choice.randrange(5))
    await world.pause(0.2)
    world.scene.kill_server()
    world.faults += 1
    _start(world.scene)
    await world.ends(lasting.pending, {"server_gone"})
    await world.ends(waiting, {"server_gone"})
    await world.all_end(some, FINE | GONE | {"not_started", "invalid_cursor", "pane_busy"})
    told = await world.caller.begin("capture_since", pane_id=pane, cursor=cursor)
    await world.ends(told, {"invalid_cursor"})
    told = await world.caller.begin("wait_for_text", pane_id=pane, cursor=cursor, patterns=["x"], timeout=1)
    await world.ends(told, {"invalid_cursor"})
    await world.ends((await world.run(pane)).pending, {"completed"})
    await world.recovered()


def _start(scene: Scene) -> None:
    """Start a tmux server that has given out all the ids that the one before had."""
    argv = [TMUX, "-f", "/dev/null", "-S", str(scene.place.socket), "new-session", "-d"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(scene.place.home)}
    for _ in range(4):
        # The one before may still be on its way out.
        while subprocess.run(argv, env=environment, stderr=subprocess.DEVNULL, check=False).returncode:
            pass
    scene.note_server()


@fault()
async def remove_socket(world: World) -> None:
    """The socket's file is removed under a living tmux server."""
    await world.sink()
    lasting = await world.lasting()
    waiting = await world.wait()
    some = await world.some(world.choice.randrange(5))
    pid = world.scene.note_server()
    await world.pause(0.2)
    world.scene.place.socket.unlink()
    world.faults += 1
    await world.ends(lasting.pending, {"server_gone"})
    await world.ends(waiting, {"server_gone"})
    await world.all_end(some, FINE | GONE | {"not_started"})
    await world.ends((await world.run()).pending, {"not_found"})
    if world.choice.random() < 0.5:
        world.scene.others_ended()
        await world.recovered()  # in another server, on the same path
    else:
        os.kill(pid, signal.SIGUSR1)  # makes a tmux server create its socket anew
        while not world.scene.place.socket.exists():
            await world.pause(0.02)
        await world.ends(await world.read(), {"ok"})
        await world.recovered()


@fault()
async def silence_socket(world: World) -> None:
    """On the socket's path something listens that never answers."""
    await world.sink()
    lasting = await world.lasting(timeout=3)
    waiting = await world.wait(timeout=3)
    with _mute(world.scene.place.socket):
        world.faults += 1
        some = await world.some(3)
        some.append(await world.caller.begin("create_session"))
        await world.ends(lasting.pending, {"timed_out", "tmux_timeout"})
        await world.ends(waiting, {"timeout", "tmux_timeout"})
        for each in some:
            await world.ends(each, {"tmux_timeout", "not_started", "timeout"})
    await world.ends(await world.read(), {"ok"})
    await world.recovered()


@contextmanager
def _mute(path: Path) -> Iterator[None]:
    aside = path.with_name("aside")
    path.rename(aside)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(64)
            yield
    finally:
        aside.rename(path)


def _slow(scene: Scene) -> dict[str, str]:
    """A tmux that takes its time: mostly a little, sometimes as long as a call waits."""
    program = scene.place.work / "tmux"
    program.write_text(
        "#!/bin/bash\n"
        f"[ ! -e {scene.notes}/slow ] || case $((RANDOM % 40)) in\n"
        "0) sleep 5.5;; [1-9]) sleep 0.$((RANDOM % 10));; esac\n"
        f'exec {TMUX} "$@"\n'
    )
    program.chmod(0o755)
    return {"TMUXMCP_TMUX_BIN": str(program)}


@fault(prepare=_slow)
async def slow_tmux(world: World) -> None:
    """Every tmux process takes long, and some take too long."""
    await world.sink()
    slow = world.scene.notes / "slow"
    slow.touch()
    for _ in range(4):
        some = await world.some(5)
        world.faults += len(some)
        await world.all_end(some, FINE | {"tmux_timeout", "not_started"})
    slow.unlink()
    await world.recovered()


def _own(scene: Scene) -> dict[str, str]:
    program = scene.place.work / "tmux"
    program.symlink_to(subprocess.check_output(["which", TMUX], text=True).strip())
    return {"TMUXMCP_TMUX_BIN": str(program)}


@fault(prepare=_own)
async def remove_program(world: World) -> None:
    """The tmux program is gone for a while, as when a package is upgraded."""
    await world.sink()
    program = world.scene.place.work / "tmux"
    some = await world.some(world.choice.randrange(4))
    await world.pause(0.2)
    target = program.readlink()
    program.unlink()
    world.faults += 1
    some += await world.some(3)
    await world.all_end(some, FINE | {"tmux_unusable", "not_started"})
    await world.ends(await world.read(), {"tmux_unusable"})
    program.symlink_to(target)
    await world.recovered()
