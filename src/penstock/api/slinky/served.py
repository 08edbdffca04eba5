"""What the API has and this version does not serve: said in a condition, never left out in silence.

A row leaves its table in the commit that brings what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.api.meta import KubeObject
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.controller import Controller, ControllerSpec
from penstock.api.slinky.loginset import LoginSet, LoginSetSpec
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.api.slinky.restapi import RestApi, RestApiSpec
from penstock.api.slinky.shared import ConfigMapKeySelector, SecretKeySelector, ServiceSpec
from penstock.api.slinky.token import Token

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """A field, whether a spec uses it, and what happens instead."""

    path: str
    used: Callable[[S], bool]
    words: str


_NEEDED = "what it names must be there"
_NEVER = "left out for good: they can take over other people's traffic (CVE-2020-8554)"


def _optional(ref: SecretKeySelector | ConfigMapKeySelector | None) -> bool:
    return ref is not None and bool(ref.optional)


def _outside(service: ServiceSpec) -> bool:
    return bool(service.spec.get("externalIPs"))


CONTROLLER: tuple[Row[ControllerSpec], ...] = (
    Row("spec.external", lambda s: s.external, "no outside slurmctld is used"),
    Row("spec.slurmKeyRef.optional", lambda s: _optional(s.slurm_key_ref), _NEEDED),
    Row("spec.jwtHs256KeyRef.optional", lambda s: _optional(s.jwt_hs256_key_ref), _NEEDED),
    Row("spec.jwtKeyRef.optional", lambda s: _optional(s.jwt_key_ref), _NEEDED),
    Row("spec.jwksKeyRef.optional", lambda s: _optional(s.jwks_key_ref), _NEEDED),
    Row("spec.service.spec.externalIPs", lambda s: _outside(s.service), _NEVER),
    Row("spec.jwksKeyRef", lambda s: s.jwks_key_ref is not None, "outside tokens are refused"),
    Row("spec.ha", lambda s: s.ha is not None and s.ha.enabled, "one slurmctld runs, no backup"),
    Row(
        "spec.metrics.serviceMonitor",
        lambda s: s.metrics.service_monitor is not None and s.metrics.service_monitor.enabled,
        "no ServiceMonitor is made",
    ),
)

NODESET: tuple[Row[NodeSetSpec], ...] = (
    Row("spec.ssh", lambda s: s.ssh is not None and s.ssh.enabled, "nobody can log in to workers"),
    Row(
        "spec.updateStrategy.type",
        lambda s: s.update_strategy.type == "ScheduledUpdate",
        "pods keep their revision until they are deleted",
    ),
)

LOGINSET: tuple[Row[LoginSetSpec], ...] = (
    Row("spec.sssdConfRef.optional", lambda s: _optional(s.sssd_conf_ref), _NEEDED),
    Row("spec.service.spec.externalIPs", lambda s: _outside(s.service), _NEVER),
)

RESTAPI: tuple[Row[RestApiSpec], ...] = (
    Row("spec.service.spec.externalIPs", lambda s: _outside(s.service), _NEVER),
)

ACCOUNTING: tuple[Row[AccountingSpec], ...] = (
    Row("spec.slurmKeyRef.optional", lambda s: _optional(s.slurm_key_ref), _NEEDED),
    Row("spec.jwtHs256KeyRef.optional", lambda s: _optional(s.jwt_hs256_key_ref), _NEEDED),
    Row("spec.jwtKeyRef.optional", lambda s: _optional(s.jwt_key_ref), _NEEDED),
    Row("spec.jwksKeyRef.optional", lambda s: _optional(s.jwks_key_ref), _NEEDED),
    Row(
        "spec.storageConfig.passwordKeyRef.optional",
        lambda s: s.storage_config is not None and _optional(s.storage_config.password_key_ref),
        _NEEDED,
    ),
    Row("spec.service.spec.externalIPs", lambda s: _outside(s.service), _NEVER),
)

KINDS: tuple[type[KubeObject], ...] = (Token,)


def not_served(obj: KubeObject) -> list[str]:
    """`path: what happens instead` for each field in use that this version does not serve."""
    match obj:
        case Controller():
            return _rows(CONTROLLER, obj.spec)
        case NodeSet():
            return _rows(NODESET, obj.spec)
        case LoginSet():
            return _rows(LOGINSET, obj.spec)
        case Accounting():
            return _rows(ACCOUNTING, obj.spec)
        case RestApi():
            return _rows(RESTAPI, obj.spec)
        case _ if isinstance(obj, KINDS):
            return [f"{type(obj).__name__}: not served yet by this version"]
        case _:
            return []


def _rows(rows: Sequence[Row[S]], spec: S) -> list[str]:
    return [f"{row.path}: not served yet, {row.words}" for row in rows if row.used(spec)]
