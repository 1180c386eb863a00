"""What is delivered: the wheel, the source archive, the lock, and where each finds the manifest."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import tmuxmcp

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = (ROOT / "tools.toml").read_text(encoding="utf-8")


def build(source: Path, target: str, directory: Path) -> Path:
    """Build with the backend of this environment, which needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(directory)]
    subprocess.run(command, cwd=source, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    (built,) = directory.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of the unpacked source archive."""
    archive = build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))
    place = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    return place / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel, built from the source archive as an installer would."""
    archive = build(sdist, "wheel", tmp_path_factory.mktemp("wheel"))
    place = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(place)
    return place


def imported_from(place: Path, expression: str) -> str:
    """What an expression over `tmuxmcp` and `resources` is for a Python that starts in `place`."""
    code = f"import sys, tmuxmcp; from tmuxmcp import resources; sys.stdout.write({expression})"
    command = [sys.executable, "-X", "utf8", "-c", code]
    return subprocess.run(
        command, cwd=place, check=True, stdin=subprocess.DEVNULL, capture_output=True
    ).stdout.decode()


def test_the_wheel_holds_the_package_and_its_files(wheel: Path) -> None:
    for name in ("tools.toml", "py.typed", "tmux/minimal.conf", "__main__.py"):
        assert (wheel / "tmuxmcp" / name).is_file(), name
    assert (wheel / "tmuxmcp" / "tools.toml").read_text(encoding="utf-8") == MANIFEST
    (information,) = wheel.glob("*.dist-info")
    assert {each.name for each in wheel.iterdir()} == {"tmuxmcp", information.name}
    assert "tmuxmcp = tmuxmcp.__main__:main" in (information / "entry_points.txt").read_text()
    assert f"Version: {tmuxmcp.__version__}\n" in (information / "METADATA").read_text()
    assert (information / "licenses" / "LICENSE").is_file()


@pytest.mark.parametrize("place", ["wheel", "sdist", "clone", "editable"])
def test_the_manifest_is_found(place: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(place) if place in {"wheel", "sdist"} else ROOT
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
