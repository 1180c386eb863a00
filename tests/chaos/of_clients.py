"""Faults of clients, and of our own process: killed, left, ignored, interrupted."""

from __future__ import annotations

import os
import signal

import anyio

from tests.chaos.caller import Pending
from tests.chaos.faults import fault
from tests.chaos.scene import until
from tests.chaos.world import FINE, World

NO_ANSWER = frozenset({"closed"})


@fault()
async def kill_in_run(world: World) -> None:
    """Our process is killed while it types a command, or waits for one; the next one works on."""
    await _kill(world, (await world.run()).pending, 0.25)


@fault()
async def kill_in_start(world: World) -> None:
    """Our process is killed while it makes a session and its pane's shell starts."""
    await _kill(world, await world.caller.begin("create_session"), 0.1)


@fault()
async def kill_in_paste(world: World) -> None:
    """Our process is killed in the middle of a long paste."""
    await world.sink()
    await _kill(world, await world.type(2_000_000), 0.2)


@fault()
async def kill_in_slow_paste(world: World) -> None:
    """Our process is killed while tmux has only the beginning of a text: half of it must not be typed."""
    await world.sink()
    server = world.scene.note_server()
    os.kill(server, signal.SIGSTOP)
    try:
        paste = await world.type(world.choice.choice((50_000, 300_000, 3_000_000)))
        await until(lambda: any("load-buffer" in each for each in world.scene.clients()))
        await world.pause(0.3)
        world.caller.process.kill()
        await world.caller.ended()
    finally:
        os.kill(server, signal.SIGCONT)
    await _kill(world, paste, 0)


@fault()
async def kill_in_channel(world: World) -> None:
    """Our process is killed while it waits for a channel."""
    channel = await world.caller.begin("wait_for_channel", channel="again", timeout=25)
    await world.moving(channel)
    await _kill(world, channel, 0.2)


@fault()
async def kill_in_anything(world: World) -> None:
    """Our process is killed with many calls in flight."""
    await world.sink()
    some = await world.some(8)
    await _kill(world, some[-1], 0.5)


async def _kill(world: World, pending: Pending, seconds: float) -> None:
    await world.pause(seconds)
    world.caller.process.kill()
    world.faults += 1
    await world.ends(pending, FINE | NO_ANSWER)
    await world.replace()
    # What the killed process was in the middle of must not hold up its successor.
    await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


@fault()
async def leave(world: World) -> None:
    """The client goes, in one way or the other, or a signal comes, with calls in flight."""
    await world.sink()
    lasting = await world.run(lasting=True)
    some = [await world.wait(), *await world.some(5)]
    await world.seen(lasting)
    await world.pause(0.3)
    world.faults += 1
    match world.choice.randrange(5):
        case 0:
            world.caller.close_input()
        case 1:
            world.caller.close_output()
        case 2:
            world.caller.close_output()
            world.caller.close_input()
        case which:
            signals = {3: signal.SIGTERM, 4: signal.SIGINT}
            world.caller.process.send_signal(signals[which])
    if not await world.caller.ended():
        world.wrong.append("the process outlived its connection")
    closing = {"-32000", "closed", "server_gone"}
    for each in (lasting.pending, *some):
        await world.ends(each, FINE | closing | {"not_started"})
    # Nothing of ours may be left before anyone cleans up.
    world.left += await world.scene.leftovers()
    await world.replace()
    await world.must("send_keys", pane_id=world.pane, keys=["C-c"])
    await world.ends((await world.run()).pending, {"completed"})
    await world.recovered()


@fault()
async def stop_reading(world: World) -> None:
    """The client stops reading while large results come, and reads on later."""
    await world.sink()
    await world.must("run_shell_command", pane_id=world.pane, command="seq 20000", max_lines=10)
    world.caller.stop_reading()
    world.faults += 1
    large = [
        await world.caller.begin("capture_pane", pane_id=world.pane, start_line=-19000, max_lines=19000)
        for _ in range(40)
    ]
    ran = await world.run()
    await world.seen(ran)  # the calls go on
    some = await world.some(5)
    await world.pause(0.5)
    world.caller.read_on()
    await world.all_end([*large, ran.pending, *some], FINE)
    await world.recovered()


@fault()
async def cancel(world: World) -> None:
    """Calls are cancelled at any moment of theirs."""
    for _ in range(10):
        some = await world.some(3)
        some.append((await world.run(lasting=world.choice.random() < 0.3)).pending)
        some.append(await world.type(200_000))
        world.choice.shuffle(some)
        for each in some:
            await world.pause(0.06)
            await world.caller.cancel(each)
            world.faults += 1
        # A command that was typed goes on.
        await world.must("send_keys", pane_id=world.pane, keys=["C-c"])
        await world.ends((await world.run()).pending, {"completed"})
    for name in ("c0", "c1", "c2"):
        await world.channel(name)
    await world.recovered()


@fault()
async def cancel_channels(world: World) -> None:
    """Waits for one channel are cancelled and signalled at any moment: no signal may be lost."""
    for number in range(6):
        name = f"cancelled-{number}"
        waits = [
            await world.caller.begin("wait_for_channel", channel=name, timeout=20)
            for _ in range(world.choice.randrange(1, 4))
        ]
        await world.pause(0.3)
        await world.caller.cancel(waits[0])
        world.faults += 1
        await world.pause(0.1)
        await world.must("signal_channel", channel=name)
        await world.all_end(waits[1:], {"signaled"})
    await world.recovered()


@fault()
async def repeat_ids(world: World) -> None:
    """A client gives a request the id of one that is in flight."""
    for _ in range(5):
        ran = await world.run()
        seen = world.caller.nameless
        second = {"jsonrpc": "2.0", "id": ran.pending.id, "method": "tools/call"}
        await world.caller.send({**second, "params": {"name": "list_panes", "arguments": {}}})
        world.faults += 1
        await world.ends(ran.pending, {"completed"})
        with anyio.move_on_after(20):
            while world.caller.nameless == seen:
                await anyio.sleep(0.01)
        if world.caller.nameless != seen + 1:
            world.wrong.append(f"the repeated id got {world.caller.nameless - seen} refusals")
    await world.recovered()


@fault()
async def flood(world: World) -> None:
    """A client makes many more calls at once than are worked on."""
    await world.sink()
    some = []
    for _ in range(15):
        some += await world.some(10)
    world.faults += 1
    # A call waits for its turn, and its time runs meanwhile.
    await world.all_end(some, FINE | {"not_started"})
    await world.recovered()
