"""What is delivered: the installed package, the lock, and where the manifest is found."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tmuxmcp

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = (ROOT / "tools.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed from its source archive: by way of the wheel, as any installer would.

    The build backend is the one of this environment, so nothing is fetched.
    """
    built, place = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    run(ROOT, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(built))
    (archive,) = built.iterdir()
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    run(built, "-m", "pip", "install", *options, "--target", str(place), str(archive))
    return place


def run(directory: Path, *arguments: str) -> str:
    """The output of this Python, run in a directory."""
    command = [sys.executable, "-X", "utf8", *arguments]
    return subprocess.run(
        command, cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout


def imported_from(directory: Path, expression: str) -> str:
    """What an expression over `tmuxmcp` and `resources` is for a Python that starts in a directory."""
    code = f"import sys, tmuxmcp; from tmuxmcp import resources; sys.stdout.write({expression})"
    return run(directory, "-c", code)


def test_an_installation_holds_the_package_and_its_files(installed: Path) -> None:
    package = installed / "tmuxmcp"
    for name in ("__main__.py", "py.typed", "tmux/minimal.conf"):
        assert (package / name).is_file(), name
    assert (package / "tools.toml").read_text(encoding="utf-8") == MANIFEST
    (information,) = installed.glob("*.dist-info")
    assert {each.name for each in installed.iterdir()} == {"bin", "tmuxmcp", information.name}
    assert [each.name for each in (installed / "bin").iterdir()] == ["tmuxmcp"]
    assert f"Version: {tmuxmcp.__version__}\n" in (information / "METADATA").read_text(encoding="utf-8")
    assert (information / "licenses" / "LICENSE").is_file()


@pytest.mark.parametrize("place", ["installed", "clone", "editable"])
def test_the_manifest_is_found(place: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue("installed") if place == "installed" else ROOT
    start = request.getfixturevalue("tmp_path") if place == "editable" else root
    assert imported_from(start, "tmuxmcp.__file__") == str(root / "tmuxmcp" / "__init__.py")
    assert imported_from(start, "resources.manifest_text()") == MANIFEST
    assert Path(imported_from(start, "str(resources.minimal_configuration())")).is_file()


def test_every_locked_dependency_has_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    entries = re.split(r"\n(?! )", lock.replace("\\\n", "").strip())
    assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    locked = {entry.split("==")[0] for entry in entries}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    required = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    assert {re.split(r"[<>=]", each)[0] for each in required} <= locked
