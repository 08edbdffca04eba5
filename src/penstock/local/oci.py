"""OCI image layouts as one tar file that containerd, podman and docker can load."""

import json
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# containerd names an image by its own annotation; others read the standard one.
ANNOTATIONS = ("org.opencontainers.image.ref.name", "io.containerd.image.name")
REF = ANNOTATIONS[0]


def archive(layout: Path, path: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Write `layout` to the tar file `path`; `names` gives each image of it its references."""
    index: dict[str, Any] = json.loads((layout / "index.json").read_text())
    built = {entry["annotations"][REF]: entry for entry in index["manifests"]}
    index["manifests"] = [
        {**built[image], "annotations": dict.fromkeys(ANNOTATIONS, name)}
        for image, references in names.items()
        for name in references
    ]
    (layout / "index.json").write_text(json.dumps(index))
    with tarfile.open(path, "w") as tar:
        for file in sorted(p for p in layout.rglob("*") if p.is_file()):
            tar.add(file, file.relative_to(layout).as_posix())


def names(path: Path) -> list[str]:
    """The references in an archive."""
    with tarfile.open(path) as tar:
        member = tar.extractfile("index.json")
        index: dict[str, Any] = json.load(member) if member else {}
    return [entry["annotations"][REF] for entry in index.get("manifests", [])]


def config_digest(path: Path, name: str) -> str:
    """The digest of the configuration of an image in an archive. Raises KeyError without it."""
    with tarfile.open(path) as tar:
        index = _read(tar, "index.json")
        found = {entry["annotations"][REF]: entry["digest"] for entry in index["manifests"]}
        return str(_read(tar, f"blobs/{found[name].replace(':', '/')}")["config"]["digest"])


def unpack(path: Path, folder: Path) -> None:
    """The layout of an archive as a folder."""
    with tarfile.open(path) as tar:
        for member in tar:
            source = tar.extractfile(member)
            if source is not None:
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(source, file)


def _read(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    member = tar.extractfile(name)
    return json.load(member) if member else {}
