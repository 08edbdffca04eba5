"""Faults of the files that sssd beside daemons is to read: a Secret and a ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.reasons.keys import KeyReason
from penstock.catalog.reasons.object import ObjectReason

_WORKS_WITHOUT: Final = re.compile(
    rb"^[ \t]*+(?:\[(?:domain|application)/|enable_files_domain[ \t]*+=[ \t]*+true)",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SssdSecret:
    """A Secret as the cache has it, and the fields that name it."""

    name: str
    namespace: str
    fields: Sequence[str]
    exists: bool
    key: str
    conf: bytes | None
    """sssd.conf; None while the Secret has no such key."""
    is_generated: bool
    """Whether the operator creates it while it does not exist."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """A ConfigMap with certificates that does not exist, and the fields that name it."""

    name: str
    namespace: str
    fields: Sequence[str]


def absent(secret: SssdSecret) -> Finding | None:
    """That there is no sssd.conf, if so."""
    named = f"{list_some(secret.fields)}: Secret {secret.name} of namespace {secret.namespace}"
    if not secret.exists:
        if secret.is_generated:
            return None
        return _fault(
            ObjectReason.SECRET_NOT_FOUND,
            f"{named} does not exist. Create it with the key {secret.key}",
        )
    if not secret.conf:
        words = "has no key" if secret.conf is None else "is empty in key"
        return _fault(
            ObjectReason.SECRET_NOT_FOUND, f"{named} {words} {secret.key}. Add an sssd.conf"
        )
    return None


def without_certificates(found: Certificates) -> Finding:
    """That there is no ConfigMap with certificates."""
    return _fault(
        ObjectReason.CONFIG_MAP_NOT_FOUND,
        f"{list_some(found.fields)}: ConfigMap {found.name} of namespace {found.namespace} does "
        "not exist. Create it with the certificates of the directory",
    )


def faults(secret: SssdSecret) -> Iterator[Finding]:
    """What sssd does not start with, as far as the file itself shows it."""
    if secret.conf and not _WORKS_WITHOUT.search(secret.conf):
        yield _fault(
            KeyReason.SSSD_CONF_INVALID,
            f"{list_some(secret.fields)}: {secret.key} of Secret {secret.name} has no section "
            "[domain/NAME]. sssd does not start with it: add the domain of the directory",
        )


def _fault(reason: ConditionReason, words: str) -> Finding:
    return Finding(False, reason, f"{words}; users of the directory are unknown until then")
