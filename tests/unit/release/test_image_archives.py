"""An image of a release: a file of its own, and the packages that its last layer has."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from penstock.local import oci
from penstock.local.images import ImageArchive
from release.image_archives import packages, write
from release.sbom import Package

EPOCH = 1_700_000_000
STATUS = "Package: libc6\nStatus: install ok installed\nVersion: 2.41-12\n\n"
GONE = "Package: old\nStatus: deinstall ok not-installed\nVersion: 1\n\n"
METADATA = "Metadata-Version: 2.4\nName: aiohttp\nVersion: 3.14.0\n\nWords: of the body\n"
SITE = "usr/lib/python3/dist-packages"


def tar(**files: str) -> bytes:
    """A layer; names have `__` for a slash."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            made.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


LAYERS = {
    "operator": (
        tar(
            **{"var/lib/dpkg/status": STATUS + GONE, f"{SITE}/gone-1.dist-info/METADATA": METADATA}
        ),
        tar(
            **{
                "var/lib/dpkg/status": f"{STATUS}Package: python3\nVersion: 3.13\n\n",
                f"{SITE}/.wh.gone-1.dist-info": "",
                f"{SITE}/aiohttp-3.14.0.dist-info/METADATA": METADATA,
            }
        ),
    ),
    "munge": (tar(**{"var/lib/dpkg/status": STATUS}),),
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with two images that share a layer, as the cache has them."""
    layout = tmp_path / "layout"
    (layout / "blobs/sha256").mkdir(parents=True)

    def blob(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (layout / "blobs/sha256" / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    entries: list[dict[str, Any]] = []
    for role, layers in LAYERS.items():
        config = blob(json.dumps({"architecture": "amd64", "os": "linux", "role": role}).encode())
        body = {"schemaVersion": 2, "config": config, "layers": [blob(one) for one in layers]}
        entry = blob(json.dumps(body).encode())
        entries.append({**entry, "annotations": {oci.REF: role}})
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    path = tmp_path / "images.tar"
    oci.archive(layout, path, {role: (image(role, path).versioned,) for role in LAYERS})
    return path


def image(role: str, path: Path) -> ImageArchive:
    return ImageArchive(role, f"localhost/{role}:26.05", f"localhost/{role}:26.05-0123", path)


def test_it_has_its_own_blobs_and_name_and_no_others(archive: Path, tmp_path: Path) -> None:
    made = write(tmp_path, image("munge", archive), EPOCH)
    assert made.path.name.startswith("munge-26.05-")
    assert made.path.name.endswith("-linux-amd64.oci.tar")
    assert oci.names(made.path) == [image("munge", archive).versioned]
    with tarfile.open(made.path) as found:
        names = found.getnames()
        assert {one.mtime for one in found} == {EPOCH}
        for name in names:
            if name.startswith("blobs/"):
                content = found.extractfile(name)
                assert content is not None
                assert hashlib.sha256(content.read()).hexdigest() == name.rpartition("/")[2]
    assert names[:2] == ["oci-layout", "index.json"]
    assert len(names) == 2 + 3, "manifest, configuration and one layer"


def test_two_runs_write_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    found = set[bytes]()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        found.add(write(tmp_path / name, image("operator", archive), EPOCH).path.read_bytes())
    assert len(found) == 1


def test_packages_are_those_of_the_last_layer(archive: Path, tmp_path: Path) -> None:
    made = write(tmp_path, image("operator", archive), EPOCH)
    assert sorted(packages(made.path)) == [
        Package("deb", "libc6", "2.41-12", "debian"),
        Package("deb", "python3", "3.13", "debian"),
        Package("pypi", "aiohttp", "3.14.0"),
    ]
