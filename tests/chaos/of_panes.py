"""Faults of panes: they close, their programs die, and the person at the terminal does things with them."""

from __future__ import annotations

import os
import signal

from tests.chaos.faults import fault
from tests.chaos.world import FINE, GONE, UNTYPED, World

ENDED = GONE | UNTYPED | {"shell_exited", "not_started"}
"""How calls end on a pane whose program dies."""


@fault()
async def kill_pane(world: World) -> None:
    """A pane is killed at any moment of the calls on it."""
    for _ in range(4):
        pane = world.pane
        some = [(await world.run(pane, lasting=world.choice.random() < 0.5)).pending]
        some += await world.some(3)
        await world.pause(0.3)
        world.scene.tmux("kill-pane", "-t", pane)
        world.faults += 1
        await world.all_end(some, FINE | GONE)
        await world.ends((await world.run(pane)).pending, {"not_found"})
        await world.new_pane()
    await world.recovered()


@fault()
async def kill_program(world: World) -> None:
    """The shell of a pane is killed; the pane closes, or is kept."""
    for _ in range(4):
        pane = world.pane
        kept = world.choice.random() < 0.5
        world.scene.tmux("set-option", "-p", "-t", pane, "remain-on-exit", "on" if kept else "off")
        lasting = await world.lasting(pane)
        waiting = await world.wait(pane=pane)
        some = await world.some(2)
        await world.pause(0.2)
        os.kill(int(world.scene.tmux("display-message", "-p", "-t", pane, "#{pane_pid}")), signal.SIGKILL)
        world.faults += 1
        await world.ends(lasting.pending, {"shell_exited"} if kept else {"pane_gone"})
        await world.ends(waiting, {"pane_gone"})
        await world.all_end(some, FINE | ENDED)
        after = await world.run(pane)
        await world.ends(after.pending, {"pane_dead"} if kept else {"not_found"})
        if kept:
            await world.must("respawn_pane", pane_id=pane)
            await world.ends((await world.run(pane)).pending, {"completed"})
        else:
            await world.new_pane()
    await world.recovered()


@fault()
async def kill_commands(world: World) -> None:
    """What a command started is killed under it, at any moment."""
    for _ in range(5):
        lasting = await world.lasting()
        some = [await world.read(), await world.type()]
        await world.pause(0.2)
        world.scene.tmux("send-keys", "-t", world.pane, world.choice.choice(("C-c", "C-\\")))
        world.faults += 1
        answer = await world.ends(lasting.pending, {"completed"})
        if answer.result.get("exit_status") not in (130, 131, 0, 2, 3):
            world.wrong.append(f"an interrupted command: {answer.result}")
        await world.all_end(some, FINE)
        await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


@fault()
async def respawn_pane(world: World) -> None:
    """The person gives a pane another program while a command runs in it."""
    for _ in range(3):
        lasting = await world.lasting()
        waiting = await world.wait()
        some = await world.some(2)
        await world.pause(0.2)
        world.scene.tmux("respawn-pane", "-k", "-t", world.pane)
        world.faults += 1
        await world.ends(lasting.pending, {"shell_exited"})
        await world.ends(waiting, {"pane_gone"})
        await world.all_end(some, FINE | ENDED | {"invalid_cursor"})
        await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


@fault()
async def look_back(world: World) -> None:
    """The person goes into copy mode, switches input off or synchronises panes at any moment."""
    pane = world.pane
    window = world.scene.tmux("display-message", "-p", "-t", pane, "#{window_id}").strip()
    does = {
        ("copy-mode", "-t", pane): ("send-keys", "-X", "-t", pane, "cancel"),
        ("select-pane", "-d", "-t", pane): ("select-pane", "-e", "-t", pane),
        ("set-option", "-w", "-t", window, "synchronize-panes", "on"): (
            "set-option",
            "-w",
            "-t",
            window,
            "synchronize-panes",
            "off",
        ),
        ("clear-history", "-t", pane): (),
        ("resize-window", "-t", window, "-x", "40"): ("resize-window", "-t", window, "-x", "200"),
    }
    for _ in range(8):
        some = [(await world.run()).pending, await world.read()]
        await world.pause(0.1)
        act, back = world.choice.choice(list(does.items()))
        world.scene.tmux(*act)
        world.faults += 1
        some += [(await world.run(timeout=3)).pending]
        await world.pause(0.2)
        if back:
            world.scene.tmux(*back)
        await world.all_end(some, FINE | UNTYPED | {"not_started"})
        # A line that was only begun when the fault came may still stand at the prompt.
        await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


@fault(others=False)
async def end_everything(world: World) -> None:
    """The last pane closes by a command of ours, and the tmux server with it."""
    leaving = await world.caller.begin("run_shell_command", pane_id=world.pane, command="exit 3")
    some = [await world.read() for _ in range(3)]
    world.faults += 1
    await world.ends(leaving, {"server_gone", "pane_gone"})
    await world.all_end(some, FINE | GONE)
    for _ in range(3):
        await world.recovered(name="again")
