"""Processes: their answers, their limits, and that none is left."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from tmuxmcp.errors import InvalidDirectory, TmuxTimeout, TmuxUnusable, TooLarge
from tmuxmcp.tmux import runner
from tmuxmcp.tmux.runner import Output, ProcessRunner

MEGABYTE = 1_000_000


@pytest.fixture(params=["pidfd", "portable"])
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProcessRunner]:
    """A runner, with and without the system's process descriptors; afterwards nothing of it is left."""
    if request.param == "portable":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    before = descriptors()
    yield ProcessRunner()
    assert descriptors() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def descriptors() -> set[int]:
    found = set()
    for fd in range(256):
        try:
            fcntl.fcntl(fd, fcntl.F_GETFD)
        except OSError:
            continue
        found.add(fd)
    return found


async def run(processes: ProcessRunner, *argv: str, stdin: bytes = b"", timeout: float = 10) -> Output:
    return await processes.run(argv, stdin=stdin, timeout=timeout, max_output=10 * MEGABYTE)


async def test_the_answer_is_whole(processes: ProcessRunner) -> None:
    answer = await run(processes, "sh", "-c", "printf 'a\\000\\377'; printf 'b\\351' >&2; exit 3")
    assert answer == Output(3, b"a\0\xff", "b\ufffd")
    assert await run(processes, "sh", "-c", "kill -9 $$") == Output(-9, b"", "")


async def test_large_input_and_output(processes: ProcessRunner) -> None:
    text = os.urandom(4 * MEGABYTE)
    assert (await run(processes, "cat", stdin=text)).stdout == text


async def test_both_streams_are_drained(processes: ProcessRunner) -> None:
    script = "import sys; sys.stderr.write('e' * 1000000); print('o' * 1000000, end='')"
    answer = await run(processes, sys.executable, "-c", script)
    assert (len(answer.stdout), len(answer.stderr)) == (MEGABYTE, MEGABYTE)


async def test_input_that_nobody_reads(processes: ProcessRunner) -> None:
    assert await run(processes, "true", stdin=bytes(4 * MEGABYTE)) == Output(0, b"", "")
    closing = "exec <&-; sleep 0.05; echo done"
    assert await run(processes, "sh", "-c", closing, stdin=bytes(4 * MEGABYTE)) == Output(0, b"done\n", "")


@pytest.mark.parametrize("memory", [True, False])
async def test_input_is_whole_when_we_are_killed(tmp_path: Path, memory: bool) -> None:
    """A reader that begins when we have gone still gets all of it, and no file is left."""
    begun, read, size = tmp_path / "begun", tmp_path / "read", 4 * MEGABYTE
    patience = f": > {begun}; while kill -0 $0 2>/dev/null; do sleep 0.01; done; wc -c > {read}."
    script = (
        "import anyio, os, sys; from tmuxmcp.tmux.runner import ProcessRunner\n"
        f"{'' if memory else 'del os.memfd_create'}\n"
        "async def main():\n"
        "    pid = str(os.getpid())\n"
        "    async with anyio.create_task_group() as tasks:\n"
        "        tasks.start_soon(lambda: ProcessRunner().run(['sh', '-c', sys.argv[1], pid],"
        f" stdin=bytes({size}), timeout=60, max_output=99))\n"
        f"        while not os.path.exists('{begun}'):\n"
        "            await anyio.sleep(0.01)\n"
        "        os.kill(os.getpid(), 9)\n"
        "anyio.run(main)\n"
    )
    spool = tmp_path / "spool"
    spool.mkdir()
    environ = {**os.environ, "TMPDIR": str(spool)}
    argv = [sys.executable, "-c", script, f"{patience}; mv {read}. {read}"]
    assert subprocess.run(argv, env=environ, check=False, timeout=30).returncode == -9
    with anyio.fail_after(20):
        while not read.exists():
            await anyio.sleep(0.01)
    assert int(read.read_text()) == size
    assert list(spool.iterdir()) == []


async def test_stdin_is_empty_and_not_ours(processes: ProcessRunner) -> None:
    assert (await run(processes, "cat")).stdout == b""


async def test_a_process_that_outlives_its_streams_is_waited_for(processes: ProcessRunner) -> None:
    answer = await run(processes, "sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 5")
    assert answer.returncode == 5


async def test_a_process_whose_streams_outlive_it_has_ended(processes: ProcessRunner) -> None:
    """Something that it left running holds them."""
    began = time.monotonic()
    answer = await run(processes, "sh", "-c", "echo done; sleep 4 & exit 5", timeout=3)
    assert answer == Output(5, b"done\n", "")
    assert time.monotonic() - began < 3


async def test_too_late(processes: ProcessRunner) -> None:
    began = time.monotonic()
    with pytest.raises(TmuxTimeout) as caught:
        await run(processes, "sleep", "60", timeout=0.1)
    assert time.monotonic() - began < 2
    assert caught.value.details == {"timeout": 0.1}


async def test_too_much(processes: ProcessRunner) -> None:
    with pytest.raises(TooLarge):
        await processes.run(["yes"], timeout=10, max_output=MEGABYTE)
    exact = await processes.run(["printf", "12345"], timeout=10, max_output=5)
    assert exact.stdout == b"12345"
    with pytest.raises(TooLarge):
        await processes.run(["printf", "123456"], timeout=10, max_output=5)


async def test_cancelled(processes: ProcessRunner, tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, processes, "sh", "-c", f"echo $$ >{tmp_path}/pid; exec sleep 60")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_what_cannot_be_started(processes: ProcessRunner, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for program in [str(tmp_path / "missing"), str(tmp_path / "text"), str(tmp_path), ""]:
        with pytest.raises(TmuxUnusable, match="cannot be started"):
            await run(processes, program)
    with pytest.raises(TooLarge):
        await run(processes, "true", "x" * 10 * MEGABYTE)


async def test_the_working_directory_is_literal(processes: ProcessRunner, tmp_path: Path) -> None:
    odd = tmp_path / "#(x) $HOME ~"
    odd.mkdir()
    answer = await processes.run(["pwd"], cwd=str(odd), timeout=5, max_output=MEGABYTE)
    assert answer.stdout.decode() == f"{odd.resolve()}\n"
    (tmp_path / "file").touch()
    for wrong in ["missing", "file"]:
        with pytest.raises(InvalidDirectory):
            await processes.run(["pwd"], cwd=str(tmp_path / wrong), timeout=5, max_output=MEGABYTE)


async def test_a_few_at_once_and_waiting_ones_step_aside(processes: ProcessRunner, tmp_path: Path) -> None:
    log = tmp_path / "log"
    working = f"echo + >>{log}; sleep 0.2; echo - >>{log}"
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(run, processes, "sh", "-c", working)
    now = most = 0
    for line in log.read_text().splitlines():
        now += 1 if line == "+" else -1
        most = max(most, now)
    assert 2 <= most <= runner.MAX_PROCESSES

    async with anyio.create_task_group() as tasks:
        for _ in range(2 * runner.MAX_PROCESSES):
            tasks.start_soon(run, processes, "sleep", "60")
        assert (await run(processes, "echo", "through")).stdout == b"through\n"
        tasks.cancel_scope.cancel()


async def test_the_deadline_counts_while_it_waits_for_its_turn(processes: ProcessRunner) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(runner.MAX_PROCESSES):
            tasks.start_soon(run, processes, "sleep", "60")
        await anyio.sleep(0.05)
        with pytest.raises(TmuxTimeout):
            await run(processes, "true", timeout=0.05)
        tasks.cancel_scope.cancel()


async def test_the_environment_is_scrubbed() -> None:
    environ = {
        **dict.fromkeys(("TMUX", "TMUX_PANE", "TMUXMCP_SOCKET", "TMUXMCP_X", "LIBTMUX_SOCKET"), "x"),
        "PATH": os.environ["PATH"],
        "TMUX_TMPDIR": "/tmp",
        "KEPT": "é",
    }
    for given in (None, environ):
        processes = ProcessRunner(environ if given is None else {})
        answer = await processes.run(["env"], env=given, timeout=5, max_output=MEGABYTE)
        names = {line.partition("=")[0] for line in answer.stdout.decode().splitlines()}
        assert (
            {"PATH", "TMUX_TMPDIR", "KEPT"} <= names <= {"PATH", "TMUX_TMPDIR", "KEPT", "PWD", "_", "SHLVL"}
        )


async def test_an_empty_environment_is_enough() -> None:
    assert (await ProcessRunner({}).run(["/bin/echo", "x"], timeout=5, max_output=9)).stdout == b"x\n"


async def test_no_descriptor_of_ours_is_passed_on(processes: ProcessRunner) -> None:
    reading, writing = os.pipe()
    try:
        os.set_inheritable(writing, True)
        script = f"import os; os.fstat({writing})"
        answer = await run(processes, sys.executable, "-c", script)
        assert "Bad file descriptor" in answer.stderr
    finally:
        os.close(reading)
        os.close(writing)


async def test_it_is_out_of_reach_of_the_terminals_signals(processes: ProcessRunner) -> None:
    answer = await run(processes, sys.executable, "-c", "import os; print(os.getpgid(0) == os.getpid())")
    assert answer.stdout == b"True\n"


def test_a_broken_pipe_kills_a_child_and_not_us() -> None:
    """Children get SIGPIPE back as the system has it; Python itself ignores it."""
    script = (
        "import anyio; from tmuxmcp.tmux.runner import ProcessRunner\n"
        "async def main():\n"
        "    answer = await ProcessRunner().run(['sh', '-c', 'yes | head -1'], stdin=b'x' * 1000000,"
        " timeout=5, max_output=99)\n"
        "    print(answer)\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "Output(returncode=0, stdout=b'y\\n', stderr='')\n"
