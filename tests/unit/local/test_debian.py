from pathlib import Path

import pytest

from penstock.local import debian
from penstock.local.errors import LocalError


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(debian.MIRROR_VARIABLE, raising=False)


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_archive_of_one_line_sources_is_found(tmp_path: Path) -> None:
    lines = (
        "# deb http://old.example/debian buster main\n"
        "deb http://security.example/debian-security bookworm-security main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://near.example/debian bookworm main\n"
    )
    write(tmp_path, "sources.list", lines)
    assert debian.mirror(tmp_path) == "http://near.example/debian"


def test_the_archive_of_deb822_sources_is_found(tmp_path: Path) -> None:
    text = (
        "Types: deb\nURIs: http://off.example/debian\nSuites: sid\nEnabled: no\n\n"
        "Types: deb\n# where we are\nURIs: http://near.example/debian\nSuites: bookworm\n"
    )
    write(tmp_path, "sources.list.d/debian.sources", text)
    write(tmp_path, "sources.list.d/other.sources.disabled", "Types: deb\nURIs: http://x/debian\n")
    assert debian.mirror(tmp_path) == "http://near.example/debian"


def test_a_named_archive_goes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://told.example/debian")
    assert debian.mirror(tmp_path) == "http://told.example/debian"


def test_a_host_without_an_archive_gets_the_next_step(tmp_path: Path) -> None:
    write(tmp_path, "sources.list", "deb http://near.example/ubuntu noble main\n")
    with pytest.raises(LocalError, match=debian.MIRROR_VARIABLE):
        debian.mirror(tmp_path)
