"""Contents of the ConfigMaps with a cluster's configuration, and the hash of one state of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.base.recent_results import RecentResults
from penstock.render.parts.digest import digest
from penstock.slurm.conf.manifest import manifest as file_manifest


@dataclass(frozen=True, slots=True)
class Contents:
    """Files by name for each of the ConfigMaps; one that is None is left as it is.

    `rejected` has slurmctld's words by each hash of a configuration with which it did not start:
    that of all files, and that of the cluster's own lines when these are the cause. `startup_at`
    is the resourceVersion of the startup ConfigMap that the decision is about, if there was one.
    """

    startup: Mapping[str, str] | None
    last_known_good: Mapping[str, str] | None
    candidate: Mapping[str, str] | None
    rejected: Mapping[str, str] = field(default_factory=dict[str, str])
    startup_at: str = ""


def observed_at(manifest: Json, version: str) -> Json:
    """A manifest that the API server only takes while the object has this resourceVersion.

    Source: Kubernetes API reference, ObjectMeta v1, resourceVersion. Without a version it takes it
    as it is.
    """
    if not version:
        return manifest
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}


def rejections_in(annotations: Mapping[str, str]) -> dict[str, str]:
    """The hashes and words of `Contents` that the annotation of a ConfigMap records."""
    hashes, _, words = annotations.get(marks.CONFIG_REFUSED, "").partition(" ")
    return dict.fromkeys(filter(None, hashes.split(",")), words)


def rejection(rejected: Mapping[str, str]) -> str:
    """The value of the annotation that records `Contents.rejected`, which is not empty."""
    return f"{','.join(rejected)} {next(iter(rejected.values()))}"


def manifest(found: Mapping[str, str]) -> str:
    """The manifest of files by their texts (`penstock.slurm.conf.manifest`)."""
    return file_manifest({name: _bytes(text) for name, text in found.items()})


def content_hash(found: Mapping[str, str]) -> str:
    """SHA-256 of the manifest of files, as the reconfigure container computes it."""
    return _recent_hash(tuple(found.items()))


def _hash(found: tuple[tuple[str, str], ...]) -> str:
    return digest(manifest(dict(found)))


_recent_hash: Final = RecentResults(_hash, 16)


def _bytes(text: str) -> bytes:
    """What is not UTF-8 in a file of the user's comes as surrogates."""
    return text.encode(errors="surrogateescape")
