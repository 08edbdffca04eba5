"""Images that only tests need: servers of Debian's packages, and images of ours with more."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.local import buildah, oci
from penstock.local.cache import digest, keyed
from penstock.local.images import ImageArchive, key_of, stored
from penstock.local.node import Node
from penstock.local.recipes import IMAGES

FIXTURES = Path(__file__).parents[1] / "fixtures"


@dataclass(frozen=True)
class Archive:
    """Images in a file, by the names that pods give them; `exact` names change with the content."""

    path: Path
    exact: Mapping[str, str]


def build(fixture: str, images: Mapping[str, str]) -> Archive:
    """Build the Containerfile of a folder of the fixtures on each of several images.

    `images` are names, `localhost/penstock-test/NAME:TAG`, and the role of ours that each is built
    on; empty for Debian alone. The folder's files and `images/install` are what it can copy.
    """
    sources = sorted(path for path in (FIXTURES / fixture).rglob("*") if path.is_file())
    parts: list[str | bytes] = [buildah.BASE_KEY, (IMAGES / "install").read_bytes()]
    for path in sources:
        parts += [path.name, path.read_bytes()]
    keys = {name: digest(*parts, key_of(role) if role else "") for name, role in images.items()}
    exact = {name: f"{name}-{key}" for name, key in keys.items()}

    def build(folder: Path) -> None:
        layout, context = folder / "layout", Path(tempfile.mkdtemp())
        shutil.copytree(FIXTURES / fixture, context, dirs_exist_ok=True)
        shutil.copy2(IMAGES / "install", context)
        with buildah.store() as store:
            for name, role in images.items():
                base = stored(store, role) if role else buildah.BASE
                if not store.has(exact[name]):
                    bases = {"BASE": base, "TOOLS": buildah.BASE}
                    store.build(context / "Containerfile", context, exact[name], bases)
                store.copy_to(exact[name], layout)
        oci.archive(layout, folder / "image.tar", {one: (n, one) for n, one in exact.items()})
        shutil.rmtree(layout)
        shutil.rmtree(context)

    folder = keyed(f"test-{fixture}", digest(*keys.values()), build)
    return Archive(folder / "image.tar", exact)


def files_of(archive: Archive, image: str, paths: Collection[str]) -> dict[str, bytes]:
    """Files that the upper layers of an image have, by their paths in it."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive.path) as tar:
        index = json.loads(_content(tar, "index.json"))
        (digest_,) = {
            one["digest"]
            for one in index["manifests"]
            if one["annotations"][oci.REF] == archive.exact[image]
        }
        manifest = json.loads(_content(tar, _blob(digest_)))
        for layer in reversed(manifest["layers"]):
            if found.keys() >= set(paths):
                return found
            with tarfile.open(fileobj=tar.extractfile(_blob(layer["digest"]))) as files:
                for member in files:
                    name = "/" + member.name.lstrip("./")
                    if name in paths and member.isfile():
                        content = files.extractfile(member)
                        found.setdefault(name, content.read() if content else b"")
    raise LookupError(f"{image} lacks {sorted(set(paths) - found.keys())}")


def _blob(digest_: str) -> str:
    return f"blobs/{digest_.replace(':', '/')}"


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None, name
    return member.read()


def load(node: Node, image: str) -> None:
    """Give the node an image of Debian's packages, built when the cache has none of its sources.

    `image` is `localhost/penstock-test/NAME:TAG`, and its Containerfile in the fixtures' NAME.
    """
    name = image.rpartition("/")[2].partition(":")[0]
    give(node, build(name, {image: ""}))


def give(node: Node, archive: Archive) -> None:
    """Import images that the node lacks."""
    if not set(archive.exact.values()) <= set(node.images()):
        node.import_image(archive.path)


def give_all(node: Node, images: Iterable[ImageArchive]) -> dict[str, str]:
    """Import images of ours that the node lacks; their exact references by role."""
    found, there = list(images), node.images()
    for path in sorted({image.path for image in found if image.exact not in there}):
        node.import_image(path)
    return {image.role: image.exact for image in found}
