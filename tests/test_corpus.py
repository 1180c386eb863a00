"""The corpus of shell commands and its reference, tried by themselves; then a sample of it in real panes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SHELLS, TMUX
from tests.corpus import Case, generate
from tests.dialects import Compare
from tests.panes import Pane, pane
from tests.reference import Expected, Reference, Result, Terminal, difference, normal
from tests.render import keeps_tabs, render
from tests.trial import trial

COMMANDS = {shell: generate(shell) for shell in SHELLS}


# The generator.


@pytest.mark.parametrize("name", SHELLS)
def test_the_corpus_is_large_various_and_the_same_every_time(name: str) -> None:
    cases = COMMANDS[name]
    assert cases == generate(name)
    assert cases != generate(name, seed=2)
    assert len({case.command for case in cases}) == len(cases) >= 500
    assert len({case.name for case in cases}) == len(cases)
    sizes = [len(case.command.encode()) for case in cases]
    assert min(sizes) == 1
    assert max(sizes) >= 200_000
    assert not any("\0" in case.command for case in cases)
    assert sum(case.compare is Compare.STATUS for case in cases) < len(cases) / 10


# The renderer.


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", ""),
        ("a", "a"),
        ("a\r\n", "a\n"),
        ("a  \r\n   \r\n", "a  \n   \n"),
        ("a\tb\r\n\t\r\nc\t\r\n", "a       b\n\nc\n"),
        ("1234567890", "1234567890"),
        ("1234567890\r\nx", "1234567890\nx"),
        ("1234567890x\r\n", "1234567890x\n"),
        ("123456789日\r\n", "123456789日\n"),
        ("50%\r100%\r\n", "100%\n"),
        ("abc\b\bX\r\n", "aXc\n"),
        ("日本\rx\r\n", "x 本\n"),
        ("e\u0301\r\n", "e\u0301\n"),
        ("\x1b[31mred\x1b[0m\x1b]0;title\x07\r\n", "red\n"),
        ("long text\r\x1b[Kend\r\n", "end\n"),
        ("one\r\ntwo\r\n\x1b[A\x1b[A\r\x1b[KONE", "ONE\ntwo\n"),
        ("old\r\n\x1b[H\x1b[2J\x1b[3Jnew\r\n", "new\n"),
        ("old\r\n\x1b[H\x1b[Jnew\r\n", "old\nnew\n"),
    ],
)
def test_a_screen_ten_columns_wide_shows(data: str, text: str) -> None:
    assert render(data.encode(), 10) == text


@pytest.mark.parametrize("data", ["\x1b[5n", "\x1b[10G", "\x1b[2J", "日\bx", "\x0e", "abc\r\x1b[CK\x1b[K"])
def test_what_the_renderer_does_not_know_is_an_error(data: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|varies"):
        render(f"x{data}".encode(), 10)


class Show:
    """Shows bytes in fresh panes of a tmux server."""

    width, height = 20, 10

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shown = 0
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", self.width, "-y", self.height, "exec sleep 1000"
        )
        self.tabs = keeps_tabs(self._tmux("display-message", "-p", "#{version}"))

    def __call__(self, data: bytes) -> str:
        self._shown += 1
        end = f"end {self._shown}"
        (self._directory / "data").write_bytes(data)
        script = f"stty -onlcr; cat data; printf '\\033]2;{end}\\007'; exec sleep 1000"
        made = self._tmux("new-window", "-d", "-P", "-F", "#{pane_id}", script).strip()
        deadline = time.monotonic() + 20
        while self._tmux("display-message", "-p", "-t", made, "#{pane_title}").strip() != end:
            assert time.monotonic() < deadline
        text = self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", made)
        self._tmux("kill-window", "-t", made)
        return text

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *args: object) -> str:
        argv = [TMUX, "-u", "-S", str(self._directory / "s"), *map(str, args)]
        done = subprocess.run(
            argv, capture_output=True, check=True, stdin=subprocess.DEVNULL, cwd=self._directory
        )
        return done.stdout.decode()


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Show]:
    show = Show(tmp_path_factory.mktemp("show"))
    yield show
    show.close()


PRINTED = ["a", "bc", " ", "word", "日", "한", "😀", "e\u0301", "\t", "\r\n", "\r\n", "x" * 7]
MOVED = ["\r", "\b", "\n", "\u0301"]
CLEARED = [
    "\x1b[A\r\x1b[K",
    "\r\x1b[K",
    "\x1b[K",
    "\x1b[31mred\x1b[0m",
    "\x1b[H\x1b[2J",
    "\x1b[H\x1b[J\x1b[3J",
]


@pytest.mark.parametrize("also", [[], MOVED, CLEARED], ids=["printed", "moved", "cleared"])
@settings(max_examples=50)
@given(data=st.data())
def test_the_renderer_agrees_with_tmux(show: Show, also: list[str], data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(PRINTED + also), max_size=60)))
    try:
        expected = render(text.encode(), show.width, show.height, tabs=show.tabs)
    except ValueError:
        return
    assert show(text.encode()).rstrip("\n") == expected.rstrip("\n")


# The reference, and what counts as a difference.


@pytest.fixture
def reference(shell: str, tmp_path: Path) -> Reference:
    return Reference(Terminal.prepare(shell, tmp_path, 80, 24))


def test_the_reference_knows_output_and_status(reference: Reference) -> None:
    fish = Path(reference.terminal.shell).name == "fish"
    assert reference.run("printf 'a\\tb  \\n\\n'; false") == Expected(1, "a       b  \n")
    assert reference.run("sh -c 'exit 213'") == Expected(213, "")
    assert reference.run("echo a \\") == Expected(0, "a")
    assert reference.run("seq 1 5000") == Expected(0, "\n".join(map(str, range(1, 5001))))
    assert reference.run("echo out; echo err >&2; echo out; test -t 1") == Expected(0, "out\nerr\nout")
    assert reference.run(f"echo {'日' * 60}") == Expected(0, "日" * 60)
    assert reference.run("sh -c 'kill -9 $$'").exit_status in (137, 265), "265 is ksh93's 256 + SIGKILL"
    assert reference.run("echo (" if fish else "echo $(").exit_status != 0


def case(compare: Compare = Compare.OUTPUT, *, jobs: int = 0, shell: str = "bash") -> Case:
    return Case(shell, "test/0", "command", compare, jobs)


@pytest.mark.parametrize(
    ("shell", "told", "plain"),
    [
        ("bash", "bash: line 3: nope: command not found", "nope: command not found"),
        ("bash", "bash: eval: line 1: syntax error", "syntax error"),
        ("zsh", "(eval):1: command not found: nope", "command not found: nope"),
        ("zsh", "zsh: command not found: nope", "command not found: nope"),
        ("zsh", "(eval):cd:1: no such file", "cd: no such file"),
        ("dash", "dash: 1: eval: nope: not found", "nope: not found"),
        ("ksh", "ksh: eval[1]: nope: not found", "nope: not found"),
        ("mksh", "E: mksh: nope: not found", "nope: not found"),
        ("fish", "fish: Unknown command: nope\nfish: \nnope\n^~~^", "Unknown command: nope\n"),
    ],
)
def test_who_reports_an_error_is_taken_away_where_the_case_allows_it(
    shell: str, told: str, plain: str
) -> None:
    assert normal(told, case(Compare.MESSAGES, shell=shell)) == plain
    assert normal(told, case(shell=shell)) == told
    assert normal(f"said {told}", case(Compare.MESSAGES, shell=shell)).startswith("said ")


def test_only_as_many_lines_on_jobs_are_taken_away_as_jobs_were_started() -> None:
    text = "[1] 4242\nout\n[1]+  Done                    sleep 1\n[1] 4243\n"
    assert normal(text, case()) == text
    assert normal(text, case(jobs=1)) == "out\n[1] 4243\n"
    assert normal("[1] not a job\n[x] 12\n", case(jobs=2)) == "[1] not a job\n[x] 12\n"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (Result("completed", 0, "one\ntwo"), None),
        (Result("completed", 1, "one\ntwo"), "exit status 1, not 0"),
        (Result("timed_out", None, "one\ntwo"), "outcome timed_out"),
        (Result("completed", 0, "one"), "two"),
        (Result("completed", 0, "one\ntwo\ntwo"), "two"),
        (Result("completed", 0, "$ echo\none\ntwo"), "$ echo"),
        (Result("completed", 0, "one\ntwo "), "two "),
        (Result("completed", 0, "two", truncated=True), "truncated, though only"),
    ],
)
@pytest.mark.parametrize("compare", [Compare.OUTPUT, Compare.MESSAGES])
def test_a_difference_is_found(result: Result, words: str | None, compare: Compare) -> None:
    found = difference(case(compare), Expected(0, "one\ntwo"), result, kept_lines=100)
    if words is None:
        assert found is None
    else:
        assert words in (found or "")


def test_truncated_output_is_an_end_of_what_was_printed_and_long_enough() -> None:
    printed = [str(number) for number in range(1000)]
    expected = Expected(0, "\n".join(printed))

    def found(kept: list[str]) -> str | None:
        result = Result("completed", 0, "\n".join(kept), truncated=True)
        return difference(case(), expected, result, kept_lines=500)

    assert found(printed[300:]) is None
    assert found(printed[600:]) is not None
    assert found([*printed[300:600], *printed[601:]]) is not None


# A sample in real panes; `make test-shells` runs all of it, through the server.


class InPane:
    """A pane without the server around it, as the subject of a trial."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane

    async def run(self, command: str, timeout: float) -> Result:
        ending = await self._pane.run(command, timeout)
        return Result(
            ending.outcome, ending.status, ending.text.removesuffix("\n"), ending.reason is not None
        )

    async def renew(self) -> None:
        pytest.fail("the shell did not come back")


@pytest.mark.anyio
async def test_a_sample_is_exact(socket_path: Path, shell: str) -> None:
    async with pane(socket_path, shell, size="80x24") as made:
        tabs = keeps_tabs(made.tmux("display-message", "-p", "#{version}"))
        terminal = Terminal.prepare(shell, socket_path.parent / "reference", 80, 24, tabs=tabs)
        await made.run(f"cd {terminal.directory}")
        cases = sample(Path(shell).name)
        async for verdict in trial(InPane(made), cases, Reference(terminal), kept_lines=40_000):
            assert verdict.wrong is None, (
                f"{verdict.case.name}: {verdict.case.command[:200]!r}\n{verdict.wrong}"
            )


def sample(name: str) -> list[Case]:
    """One case of each kind."""
    kinds: dict[str, Case] = {}
    for each in COMMANDS[name]:
        kinds.setdefault(each.name.partition("/")[0], each)
    return list(kinds.values())
