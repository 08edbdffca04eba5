"""How the configuration of a cluster is put into its jail, so that a reader recognizes the whole.

Each file is renamed into place, slurm.conf after the files that it includes. Then files that left
the configuration are removed, and the manifest is renamed into place last. It has the lines that
`sha256sum -- *` prints for these files, so `sha256sum -c` fails for a folder between two states.
The SHA-256 of the manifest is the hash of the configuration.

Only files that a manifest names are ever removed. So names that it lacks are announced in it before
the first of these files is there: whoever continues after a killed process knows them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.model.jail_file import JailFile
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF
from penstock.slurm.conf.manifest import MANIFEST, is_listed, manifest

MANIFEST_PATH: Final = f"{FOLDER}/{MANIFEST}"
LARGEST_MANIFEST: Final = 2**20
"""Bytes of a manifest that is read: more than all names that fit into a ConfigMap."""
_NO_HASH: Final = "0" * 64
_LINE: Final = re.compile(r"[0-9a-f]{64} [ *]([-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252})")
"""A line of sha256sum for a key of a ConfigMap. Source: sha256sum(1); API reference, ConfigMap."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The announcement, files in the order of their renames, paths to remove, the manifest."""

    announcement: JailFile | None
    files: tuple[JailFile, ...]
    removed: tuple[str, ...]
    manifest: JailFile


def named(text: str) -> frozenset[str]:
    """Names of files in a manifest. Lines that no ConfigMap can lead to are ignored."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return frozenset(match[1] for match in found if match is not None)


def delivery(files: Mapping[str, bytes], last_manifest: str) -> Delivery:
    """The way from a folder with the last manifest to one with these files.

    A file that is not listed is not delivered: it is in no hash of a configuration, so no reader
    would notice that it changed.
    """
    names = sorted(filter(is_listed, files), key=lambda name: (name == SLURM_CONF, name))
    known = named(last_manifest)
    gone, new = sorted(known.difference(names)), sorted(set(names) - known)
    # No file has this hash, so the announcement fails every check.
    announced = "".join(f"{_NO_HASH}  {name}\n" for name in sorted({*known, *names}))
    return Delivery(
        announcement=JailFile(MANIFEST_PATH, announced.encode()) if new else None,
        files=tuple(JailFile(f"{FOLDER}/{name}", files[name]) for name in names),
        removed=tuple(f"{FOLDER}/{name}" for name in gone),
        manifest=JailFile(MANIFEST_PATH, manifest(files).encode()),
    )
