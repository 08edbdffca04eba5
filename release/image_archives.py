"""One archive for each image, in OCI layout, and the packages in it."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

from penstock.local.images import ImageArchive
from penstock.local.oci import ANNOTATIONS, REF
from release.sbom import Package
from release.tarball import write_tar

_INDEX, _LAYOUT = "index.json", "oci-layout"
_DPKG = re.compile(r"(\./)?var/lib/dpkg/(status|status\.d/[^/]+)")
_METADATA = re.compile(r".*\.dist-info/METADATA")
_WHITEOUT = ".wh."


@dataclass(frozen=True, slots=True)
class Archive:
    """An image as a file of its own; `digest` is that of its manifest."""

    path: Path
    tag: str
    digest: str

    @property
    def name(self) -> str:
        """The file's name without what says that it is an archive."""
        return self.path.name.removesuffix(".oci.tar")


def write(folder: Path, image: ImageArchive, epoch: int) -> Archive:
    """Write the image that is in the archive of several, with no blob of the others."""
    tag = image.versioned.rpartition(":")[2]
    with tarfile.open(image.path) as tar:
        entry = next(
            one
            for one in _json(tar, _INDEX)["manifests"]
            if one["annotations"][REF] == image.versioned
        )
        blobs = dict(_blobs(tar, entry["digest"]))
        config = json.loads(_read(tar, next(iter(blobs.values()))))
        platform = {"architecture": config["architecture"], "os": config["os"]}
        name = f"{image.role}-{tag}-{platform['os']}-{platform['architecture']}.oci.tar"
        annotations = dict.fromkeys(ANNOTATIONS, image.versioned)
        own = {**entry, "platform": platform, "annotations": annotations}
        index = {"schemaVersion": 2, "manifests": [own]}
        path = folder / name
        with path.open("wb") as out:
            write_tar(
                out,
                [
                    (_LAYOUT, b'{"imageLayoutVersion": "1.0.0"}'),
                    (_INDEX, json.dumps(index, sort_keys=True).encode()),
                    *((one, _read(tar, one)) for one in sorted({_path(entry), *blobs.values()})),
                ],
                epoch,
            )
    return Archive(path, tag, entry["digest"])


def packages(path: Path) -> list[Package]:
    """Debian's packages and Python's in the image, as its last layer has them.

    Source: OCI image specification, "Image Layer Filesystem Changeset".
    """
    found: dict[str, list[Package]] = {}
    with tarfile.open(path) as tar:
        (entry,) = _json(tar, _INDEX)["manifests"]
        for layer in _json(tar, _path(entry))["layers"]:
            with _opened(tar, _path(layer)) as blob, tarfile.open(fileobj=blob) as files:
                for member in files:
                    folder, _, base = member.name.rpartition("/")
                    if base.startswith(_WHITEOUT):
                        gone = f"{folder}/{base.removeprefix(_WHITEOUT)}"
                        found = {k: v for k, v in found.items() if not _is_below(k, gone)}
                    elif (content := _content(files, member)) is not None:
                        found[member.name] = list(_parsed(member.name, content))
    return [one for every in found.values() for one in every]


def _is_below(name: str, gone: str) -> bool:
    return name == gone or name.startswith(f"{gone}/")


def _content(files: tarfile.TarFile, member: tarfile.TarInfo) -> str | None:
    if not (_DPKG.fullmatch(member.name) or _METADATA.fullmatch(member.name)):
        return None
    source = files.extractfile(member)
    return source.read().decode(errors="replace") if source is not None else None


def _parsed(name: str, text: str) -> Iterator[Package]:
    parser = HeaderParser()
    if _METADATA.fullmatch(name):
        fields = parser.parsestr(text)
        yield Package("pypi", str(fields["Name"]), str(fields["Version"]))
        return
    for stanza in text.strip().split("\n\n"):
        fields = parser.parsestr(stanza)
        if fields["Package"] and "not-installed" not in str(fields["Status"]):
            yield Package("deb", str(fields["Package"]), str(fields["Version"]), "debian")


def _blobs(tar: tarfile.TarFile, digest: str) -> Iterator[tuple[str, str]]:
    """Digest and path of the configuration, then of each layer."""
    manifest = _json(tar, f"blobs/{digest.replace(':', '/')}")
    for one in (manifest["config"], *manifest["layers"]):
        yield one["digest"], _path(one)


def _path(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def _opened(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    with _opened(tar, name) as file:
        return file.read()


def _json(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    return json.loads(_read(tar, name))
