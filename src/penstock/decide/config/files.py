"""Checks of files in a user's ConfigMaps that are mounted beside slurm.conf.

They are mounted in one directory: a file of the same name would replace a generated file or a key,
and the same file of two ConfigMaps would be mounted once only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.slurm.auth.key_files import JWT_KEY, SLURM_JWKS, SLURM_KEY

_KEYS = "spec.slurmKeyRef, spec.jwtKeyRef and spec.jwksKeyRef name the keys"
_RESERVED: Mapping[str, str] = {
    "slurm.conf": "it is generated; write your lines into spec.extraConf",
    "slurmdbd.conf": "slurmctld reads none; write your lines into an Accounting's extraConf",
    SLURM_KEY: _KEYS,
    JWT_KEY: _KEYS,
    SLURM_JWKS: "it is generated while slurm.key changes",
    "jwks.json": _KEYS,
}


def rejected_files(found: Sequence[tuple[str, Mapping[str, str]]]) -> list[Finding]:
    """Return a finding for each file with a reserved name; `found` are ConfigMaps by name."""
    return [
        Finding(
            False,
            ConfigReason.FILE_REFUSED,
            f"ConfigMap {name} has a reserved file {file}: {why}",
        )
        for name, data in found
        for file, why in _RESERVED.items()
        if file in data
    ]


def hidden_files(found: Sequence[tuple[str, Mapping[str, str]]]) -> list[Finding]:
    """A remark about files that several ConfigMaps have: the last of them is mounted."""
    words = list(_hidden(found))
    return [Finding(True, ConfigReason.FILES_HIDDEN, list_some(words, "; "))] if words else []


def _hidden(found: Sequence[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    owners: dict[str, list[str]] = {}
    for name, data in found:
        for file in data:
            owners.setdefault(file, []).append(name)
    for file, names in sorted(owners.items()):
        if len(names) > 1:
            others = list_some(names[:-1], " and ")
            yield f"file {file} is that of ConfigMap {names[-1]}, not that of {others}"
