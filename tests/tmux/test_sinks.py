"""The sink table: every position against a real tmux, and what never reaches one."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxmcp.errors import InternalError, InvalidArgument
from tmuxmcp.tmux import sinks
from tmuxmcp.tmux.client import Client
from tmuxmcp.tmux.command import Arg, argv, command, target
from tmuxmcp.tmux.records import Template

from .conftest import IDS

NASTY = [
    *(
        "#(touch HIT)",
        "#{pid}",
        "#S",
        "##",
        "#",
        "a#",
        "###x",
        "#[fg=red]",
        "##[x]",
        "#(unclosed",
        "#{unclosed",
    ),
    *("#,", "#}", "a;", ";", ";;", r"a\;", "%H:%M", "%%", "$HOME x", "~", "`id`", "$(id)", "'\"", "-x", "--"),
    *("#{l:x}", "#{E:@x}", "#{?1,a,b}", " a ", "日本語", "é"),
]
FORMAT_POSITIONS = [
    ("new-session", "-s"),
    ("new-session", "-n"),
    ("new-window", "-n"),
    ("rename-session", "NAME"),
    ("rename-window", "NAME"),
    ("select-pane", "-T"),
]


async def usages(client: Client) -> dict[str, str]:
    said = await client.call(command("list-commands", "-F", "#{command_list_name} #{command_list_usage}"))
    return dict(line.split(" ", 1) for line in said.splitlines())


async def test_every_row_names_a_command_and_a_flag_of_tmux(client: Client, ids: dict[str, str]) -> None:
    known = await usages(client)
    for name, position in sinks.SINKS:
        assert name in known
        if position.startswith("-"):
            assert re.search(rf"{position} |\[-[A-Za-z]*{position[1:]}", known[name]), (name, position)


@pytest.mark.parametrize("value", ["\0", "a\0b", "\ud800", "a\udfffb"], ids=ascii)
@pytest.mark.parametrize("where", sinks.SINKS, ids=" ".join)
def test_nul_and_lone_surrogates_are_refused_everywhere(where: tuple[str, str], value: str) -> None:
    with pytest.raises(InvalidArgument):
        sinks.render(*where, value)


@pytest.mark.parametrize(
    "where",
    [
        ("new-session", "-c"),
        ("new-window", "-c"),
        ("split-window", "-c"),
        ("new-session", "-F"),
        ("list-panes", "-f"),
        ("display-message", "text"),
        ("set-option", "NAME"),
        ("load-buffer", "PATH"),
        ("run-shell", "COMMAND"),
        ("pipe-pane", "COMMAND"),
        ("source-file", "PATH"),
    ],
    ids=" ".join,
)
def test_a_position_without_a_row_is_a_defect(where: tuple[str, str]) -> None:
    with pytest.raises(InternalError):
        sinks.render(*where, "x")


@pytest.mark.parametrize(
    ("name", "position", "values"),
    [
        ("kill-session", "-t", "|:|.|=|=:|@|$|%|+|-|!|{last}|base|b*|~|0|-1|%1 |%-1|%+1|%|1"),
        ("kill-session", "-t", "=$0|=$0:|=%|=@|=@:|=@1|=a.b|=a:b:|=\n"),
        ("kill-session", "-t", "=/dev/pts/3|=pts/3:|=ttys001|=client-77|=console"),
        ("new-window", "-t", "$1|=a|:1|=a:x|=a:-1|=a:1.2|@1:{end}|=a:99999999999"),
        ("send-keys", "-N", "0|-1|10001|2147483647|#(x)|1;"),
        ("resize-pane", "-x", "0|-5|10001|1e3|50%|;||+1|99999999999999"),
        ("split-window", "-l", "0|0%|100%|-1|5x|#(x)|%|"),
        ("capture-pane", "-S", "-|abc|#(x)|1.5||99999999999"),
        ("select-layout", "LAYOUT", "zzz|#x| ||tile|TILED|c3f0,80x24,0,0,0|-o|even-horizontal;"),
        ("show-options", "NAME", "|#(x)|a b|status;|mouse |-g|@|a[x]|a[1]x"),
        ("display-message", "VARIABLE", "|1a|pane_id}|a:b|#(x)|pane-id|@x"),
        ("show-environment", "NAME", "|-g|A=B|A\nB|-"),
        ("respawn-pane", "-c", "|.|a|../x|~|#(x)"),
        ("send-keys", "HEX", "|0|zz|041|0x41|G1"),
        ("delete-buffer", "-b", "|a b|#(x)|a;|a\n"),
        ("set-option", "FLAG", "|1|toggle|On"),
        ("rename-window", "NAME", "|\x07|a\nb|\x9b|\x7f|a\tb"),
        ("select-pane", "-T", "\x07|a\nb|\x1b]0;x\x07"),
        ("wait-for", "CHANNEL", "|-S|--|a\nb"),
    ],
)
def test_what_cannot_stand_there_is_refused(name: str, position: str, values: str) -> None:
    for value in values.split("|"):
        with pytest.raises(InvalidArgument):
            pytest.fail(f"{value!r} was taken as {sinks.render(name, position, value)!r}")


@pytest.mark.parametrize(
    ("name", "position", "value", "rendered"),
    [
        ("kill-session", "-t", "$12", "$12"),
        ("kill-session", "-t", "=b*", "=b*"),
        ("capture-pane", "-t", "=a b:", "=a b:"),
        ("new-window", "-t", "=a:", "=a:"),
        ("move-window", "-t", "$3:007", "$3:007"),
        ("capture-pane", "-S", "-0050", "-50"),
        ("split-window", "-l", "30%", "30%"),
        ("split-window", "-l", "12", "12"),
        ("display-message", "VARIABLE", "pane_id", "#{pane_id}"),
        ("respawn-pane", "-c", "/a#b", "/a##b"),
        ("show-options", "NAME", "command-alias[3]", "command-alias[3]"),
        ("send-keys", "KEY", "^C", "C-c"),
        ("send-keys", "TEXT", "#(x) ~ $HOME", "#(x) ~ $HOME"),
    ],
)
def test_what_is_rendered(name: str, position: str, value: str, rendered: str) -> None:
    assert sinks.render(name, position, value) == rendered


def test_layouts_that_a_version_lacks_are_not_named() -> None:
    assert "main-horizontal-mirrored" not in sinks.layouts((3, 4, ""))
    assert set(sinks.layouts((3, 5, "a"))) - set(sinks.layouts((3, 3, "a"))) == set(sinks.MIRRORED_LAYOUTS)


async def test_every_layout_of_the_version_is_taken(client: Client, ids: dict[str, str]) -> None:
    await client.call(command("split-window", "-d", "-t", target(ids["pane"]), "exec cat"))
    for layout in sinks.layouts(await client.version()):
        await client.call(command("select-layout", "-t", target(ids["window"]), Arg("LAYOUT", layout)))


@given(st.text("#[]{}(),:;S'~=@|x ", max_size=12))
def test_escaping_a_format_leaves_no_format(value: str) -> None:
    escaped = sinks.escape_format(value)
    assert expand(escaped) == value


def expand(text: str) -> str:
    """tmux's reading of a text without formats: ``##`` is `#`, but a run of `#` before `[` stays."""
    out = ""
    while text:
        run = re.match("#*", text)
        assert run is not None
        hashes, text = run.group(), text[run.end() :]
        if not text.startswith("["):
            assert len(hashes) % 2 == 0
            hashes = hashes[: len(hashes) // 2]
        out, text = out + hashes + text[:1], text[1:]
    return out


async def test_the_escape_is_exact_in_tmux(client: Client, ids: dict[str, str]) -> None:
    for value in NASTY:
        await client.call(command("set-option", "-gF", "@v", sinks.escape_format(value)))
        (row,) = await client.rows(listing=command("display-message"), template=Template(v="#{@v}"))
        assert row["v"].replace(r"\$", "$") == value  # 3.4 writes \$ for $


@pytest.mark.parametrize(("name", "position"), FORMAT_POSITIONS, ids=lambda text: text)
async def test_formats_are_literal_and_run_nothing(
    client: Client, ids: dict[str, str], tmp_path: Path, name: str, position: str
) -> None:
    hit = tmp_path / "hit"
    for value in [f"#(touch {hit})", f"a#(touch {hit})b", "#{pid}", "#W#S", "a;"]:
        arg = Arg(position, value)
        act = {
            "new-session": command(name, "-d", position, arg, "exec cat"),
            "new-window": command(
                name, "-d", "-t", Arg("-t", f"{ids['session']}:"), position, arg, "exec cat"
            ),
            "rename-session": command(name, "-t", target(ids["session"]), "--", arg),
            "rename-window": command(name, "-t", target(ids["window"]), "--", arg),
            "select-pane": command(name, "-t", target(ids["pane"]), position, arg),
        }[name]
        for _ in range(3):  # a job is killed with its client, so that one try proves little
            before = {row["all"] for row in await everything(client)}
            try:
                await client.call(act)
            except InvalidArgument:
                continue
            after = {row["all"] for row in await everything(client)}
            assert any(value in text for text in after), (value, after)
            assert before <= after or name.startswith(("rename", "select"))
            if name == "new-session":
                await client.call(command("kill-session", "-t", target(newest(after - before))))
    assert not hit.exists()


async def everything(client: Client) -> list[dict[str, str]]:
    text = "#{session_id}\t#{session_name}\t#{window_id}\t#{window_name}\t#{pane_title}"
    return await client.rows(listing=command("list-panes", "-a"), template=Template(all=text))


def newest(texts: set[str]) -> str:
    return max((text.split("\t")[0] for text in texts), key=lambda id: int(id[1:]))


async def test_a_directory_is_literal(client: Client, ids: dict[str, str], tmp_path: Path) -> None:
    directory = tmp_path / "#(touch hit) #{pid};"
    directory.mkdir()
    made = await client.rows(
        listing=command("new-window", "-d", "-t", Arg("-t", f"{ids['session']}:"), "exec cat"), template=IDS
    )
    await client.call(
        command(
            "respawn-pane", "-k", "-t", target(made[0]["pane"]), "-c", Arg("-c", str(directory)), "exec cat"
        )
    )
    asked = command("display-message", "-t", target(made[0]["pane"]))
    row = {"path": ""}
    with anyio.fail_after(20):
        while not row["path"]:  # the pane's process is on its way
            (row,) = await client.rows(listing=asked, template=Template(path="#{pane_current_path}"))
    assert row["path"] == str(directory)
    assert not (directory / "hit").exists()


@pytest.mark.parametrize("value", ["a;", ";", ";;", r"a\;", "a ;", r"\\;", "x;y", "-l", "--", "-x;"])
def test_a_final_semicolon_is_escaped_once(value: str) -> None:
    rendered = argv([command("send-keys", "-l", "--", Arg("TEXT", value)), command("list-sessions")])
    assert rendered[4] == ";"
    expected = f"{value[:-1]}\\;" if value.endswith(";") else value
    assert rendered[3] == expected


async def test_typed_text_is_exact(client: Client, ids: dict[str, str]) -> None:
    for value in NASTY:
        await client.call(
            command("send-keys", "-t", target(ids["pane"]), "-l", "--", Arg("TEXT", value)),
            command("send-keys", "-t", target(ids["pane"]), Arg("KEY", "Enter")),
            command("wait-for", "-S", "x"),
        )
    said = ""
    for _ in range(200):
        said = await client.call(command("capture-pane", "-p", "-J", "-S", "-", "-t", target(ids["pane"])))
        if said.count("é") >= 2:
            break
    lines = said.splitlines()
    for value in NASTY:
        assert value.rstrip() in [line.rstrip() for line in lines], value
