"""Fields of Slinky's kinds that this version does not serve: reported, never ignored in silence.

A row leaves its table in the commit that brings what it names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.api.kubernetes.spec_parts import (
    ConfigMapKeySelector,
    PodTemplate,
    SecretKeySelector,
    ServiceSpec,
)
from penstock.api.slinky.accounting import Accounting, AccountingSpec
from penstock.api.slinky.controller import Controller, ControllerSpec, Metrics, Persistence
from penstock.api.slinky.loginset import LoginSet, LoginSetSpec
from penstock.api.slinky.misplaced_fields import misplaced
from penstock.api.slinky.nodeset import NodeSet, NodeSetSpec
from penstock.api.slinky.restapi import RestApi, RestApiSpec
from penstock.api.slinky.token import Token, TokenSpec

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


def _has_external_ips(service: ServiceSpec) -> bool:
    return bool(service.spec.get("externalIPs"))


KEYS: tuple[Row[ControllerSpec], ...] = (
    Row("spec.slurmKeyRef.optional", lambda s: _optional(s.slurm_key_ref), _NEEDED),
    Row("spec.mungeKeyRef.optional", lambda s: _optional(s.munge_key_ref), _NEEDED),
    Row("spec.jwtHs256KeyRef.optional", lambda s: _optional(s.jwt_hs256_key_ref), _NEEDED),
    Row("spec.jwtKeyRef.optional", lambda s: _optional(s.jwt_key_ref), _NEEDED),
)
CONTROLLER: tuple[Row[ControllerSpec], ...] = (
    *KEYS,
    Row("spec.jwksKeyRef.optional", lambda s: _optional(s.jwks_key_ref), _NEEDED),
    Row("spec.sssdConfRef.optional", lambda s: _optional(s.sssd_conf_ref), _NEEDED),
    Row("spec.service.spec.externalIPs", lambda s: _has_external_ips(s.service), _NEVER),
    Row(
        "spec.metrics.serviceMonitor",
        lambda s: (
            s.metrics.service_monitor is not None
            and s.metrics.service_monitor.enabled
            and not s.metrics.enabled
        ),
        "slurmctld has no metrics while spec.metrics.enabled is false",
    ),
)

OUTSIDE: Mapping[str, Callable[[ControllerSpec], bool]] = {
    "ha": lambda s: s.ha is not None and s.ha.enabled,
    "slurmctld": lambda s: bool(s.slurmctld),
    "reconfigure": lambda s: bool(s.reconfigure),
    "logfile": lambda s: bool(s.logfile),
    "template": lambda s: s.template != PodTemplate(),
    "extraConf": lambda s: bool(s.extra_conf.strip()),
    "configFileRefs": lambda s: bool(s.config_file_refs),
    "prologScriptRefs": lambda s: bool(s.prolog_script_refs),
    "epilogScriptRefs": lambda s: bool(s.epilog_script_refs),
    "prologSlurmctldScriptRefs": lambda s: bool(s.prolog_slurmctld_script_refs),
    "epilogSlurmctldScriptRefs": lambda s: bool(s.epilog_slurmctld_script_refs),
    "jwksKeyRef": lambda s: s.jwks_key_ref is not None,
    "sssdConfRef": lambda s: s.sssd_conf_ref is not None,
    "persistence": lambda s: s.persistence is not None and s.persistence != Persistence(),
    "service": lambda s: s.service != ServiceSpec(),
    "metrics": lambda s: s.metrics != Metrics(),
}
"""Fields of an internal slurmctld: for an external one nothing is created."""

NODESET: tuple[Row[NodeSetSpec], ...] = (
    Row(
        "spec.ssh.sssdConfRef.optional",
        lambda s: s.ssh is not None and s.ssh.enabled and _optional(s.ssh.sssd_conf_ref),
        _NEEDED,
    ),
)

LOGINSET: tuple[Row[LoginSetSpec], ...] = (
    Row("spec.sssdConfRef.optional", lambda s: _optional(s.sssd_conf_ref), _NEEDED),
    Row("spec.service.spec.externalIPs", lambda s: _has_external_ips(s.service), _NEVER),
)

RESTAPI: tuple[Row[RestApiSpec], ...] = (
    Row("spec.service.spec.externalIPs", lambda s: _has_external_ips(s.service), _NEVER),
)

ACCOUNTING: tuple[Row[AccountingSpec], ...] = (
    Row("spec.slurmKeyRef.optional", lambda s: _optional(s.slurm_key_ref), _NEEDED),
    Row("spec.mungeKeyRef.optional", lambda s: _optional(s.munge_key_ref), _NEEDED),
    Row("spec.jwtHs256KeyRef.optional", lambda s: _optional(s.jwt_hs256_key_ref), _NEEDED),
    Row("spec.jwtKeyRef.optional", lambda s: _optional(s.jwt_key_ref), _NEEDED),
    Row("spec.jwksKeyRef.optional", lambda s: _optional(s.jwks_key_ref), _NEEDED),
    Row(
        "spec.storageConfig.passwordKeyRef.optional",
        lambda s: s.storage_config is not None and _optional(s.storage_config.password_key_ref),
        _NEEDED,
    ),
    Row("spec.service.spec.externalIPs", lambda s: _has_external_ips(s.service), _NEVER),
)

TOKEN: tuple[Row[TokenSpec], ...] = (
    Row("spec.jwtHs256KeyRef.optional", lambda s: _optional(s.jwt_hs256_key_ref), _NEEDED),
    Row("spec.jwtKeyRef.optional", lambda s: _optional(s.jwt_key_ref), _NEEDED),
    Row("spec.secretRef.optional", lambda s: _optional(s.secret_ref), "it is always made"),
)


def controller_fields(obj: Controller) -> list[str]:
    """Those of a Controller; of an external one, all that is about a slurmctld in pods."""
    spec = obj.spec
    if spec.external:
        return _rows(KEYS, spec) + [
            f"spec.{path}: not used, slurmctld is external (spec.external) and is configured there"
            for path, used in OUTSIDE.items()
            if used(spec)
        ]
    containers = {
        "slurmctld": spec.slurmctld,
        "reconfigure": spec.reconfigure,
        "logfile": spec.logfile,
    }
    return [*_rows(CONTROLLER, spec), *misplaced(containers, spec.template)]


def nodeset_fields(obj: NodeSet) -> list[str]:
    """Those of a NodeSet."""
    spec = obj.spec
    containers = {"slurmd": spec.slurmd, "logfile": spec.logfile}
    return [*_rows(NODESET, spec), *misplaced(containers, spec.template)]


def loginset_fields(obj: LoginSet) -> list[str]:
    """Those of a LoginSet."""
    spec = obj.spec
    containers = {"login": spec.login, "initconf": spec.initconf}
    return [*_rows(LOGINSET, spec), *misplaced(containers, spec.template)]


def restapi_fields(obj: RestApi) -> list[str]:
    """Those of a RestApi."""
    spec = obj.spec
    return [*_rows(RESTAPI, spec), *misplaced({"slurmrestd": spec.slurmrestd}, spec.template)]


def accounting_fields(obj: Accounting) -> list[str]:
    """Those of an Accounting."""
    spec = obj.spec
    return [*_rows(ACCOUNTING, spec), *misplaced({"slurmdbd": spec.slurmdbd}, spec.template)]


def token_fields(obj: Token) -> list[str]:
    """Those of a Token."""
    return _rows(TOKEN, obj.spec)


def _rows(rows: Sequence[Row[S]], spec: S) -> list[str]:
    return [f"{row.path}: not served yet, {row.words}" for row in rows if row.used(spec)]
