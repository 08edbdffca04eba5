"""Lists of parts, packed files and checksums of a release."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

from release import sbom
from release.checksums import SUMS, write_sums
from release.python_packages import locked
from release.sbom import Package, Subject
from release.tarball import write_tgz

EPOCH = 1_700_000_000


def test_a_list_of_parts_names_each_by_its_package_url(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    parts = [
        Package("deb", "libc6", "2.41-12+b1", "debian"),
        Package("pypi", "aiohttp", "3.14.0"),
        Package("pypi", "aiohttp", "3.14.0"),
    ]
    sbom.write(path, Subject("operator", "0.1.0", "sha256:a"), parts, EPOCH)
    found = json.loads(path.read_text())
    assert found["bomFormat"] == "CycloneDX"
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert found["metadata"]["component"]["name"] == "operator"
    assert sorted(one["purl"] for one in found["components"]) == [
        "pkg:deb/debian/libc6@2.41-12%2Bb1",
        "pkg:pypi/aiohttp@3.14.0",
    ]


def test_a_list_of_parts_is_the_same_each_time_and_another_one_for_another_build(
    tmp_path: Path,
) -> None:
    texts: list[str] = []
    for identity in ("sha256:a", "sha256:a", "sha256:b"):
        path = tmp_path / "list.json"
        parts = [Package("pypi", "a", "1"), Package("pypi", "b", "2")]
        sbom.write(path, Subject("operator", "0.1.0", identity), parts, EPOCH)
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["serialNumber"] != json.loads(texts[2])["serialNumber"]


def test_the_parts_of_the_wheel_are_those_that_are_locked() -> None:
    names = {one.name for one in locked()}
    assert {"aiohttp", "msgspec", "cryptography"} <= names
    assert "typer" not in names


def test_a_packed_file_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("content")
    members = [("a/one", b"1"), ("a/two", tmp_path / "given")]
    for name in ("first.tgz", "second.tgz"):
        write_tgz(tmp_path / name, members, EPOCH)
    assert (tmp_path / "first.tgz").read_bytes() == (tmp_path / "second.tgz").read_bytes()
    with tarfile.open(tmp_path / "first.tgz") as found:
        assert found.getnames() == ["a/one", "a/two"]


def test_checksums_are_what_sha256sum_accepts_until_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/a.tgz").write_bytes(b"a")
    (tmp_path / "b.whl").write_bytes(b"b")
    write_sums(tmp_path)
    write_sums(tmp_path)
    check = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    assert len((tmp_path / SUMS).read_text().splitlines()) == 2
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    (tmp_path / "b.whl").write_bytes(b"c")
    assert subprocess.run(check, cwd=tmp_path, check=False, capture_output=True).returncode == 1
