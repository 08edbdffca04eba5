"""Which objects a changed Secret, ConfigMap or neighbour matters to: references read backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from penstock.api.kubernetes.kinds import ConfigMap, Secret
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.resource import Resource
from penstock.api.slinky import names
from penstock.api.slinky.accounting import ACCOUNTINGS, Accounting
from penstock.api.slinky.controller import CONTROLLERS, Controller
from penstock.api.slinky.loginset import LOGINSETS
from penstock.api.slinky.nodeset import NODESETS
from penstock.api.slinky.token import TOKENS, Token
from penstock.controllers.observed.members import same_namespace
from penstock.controllers.observed.watching import keys
from penstock.kube.runtime.declaration import Lookup
from penstock.render.slinky.config.config_maps import config_maps_named

T = TypeVar("T", bound=KubeObject)


class Reference(Protocol):
    """A field of a spec that names an object of the same namespace."""

    @property
    def name(self) -> str:
        """The name."""
        ...


def _using(
    obj: KubeObject, lookup: Lookup, resource: Resource[T], uses: Callable[[T], bool]
) -> list[str]:
    """Keys of the objects of a resource in an object's namespace for which this holds."""
    return keys(filter(uses, same_namespace(obj, lookup.all(resource))))


def controllers_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose keys are in this Secret."""

    def uses(one: Controller) -> bool:
        found = names.slurm_key_ref(one).name, names.jwt_key_ref(one).name, names.key_ring(one)
        return secret.metadata.name in found

    return _using(secret, lookup, CONTROLLERS, uses)


def controllers_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose sssd.conf is in this Secret."""
    return _using(secret, lookup, CONTROLLERS, lambda one: _names(one.spec.sssd_conf_ref, secret))


def loginsets_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the LoginSets whose sssd.conf is in this Secret."""
    return _using(secret, lookup, LOGINSETS, lambda one: _names(one.spec.sssd_conf_ref, secret))


def nodesets_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the NodeSets whose workers have their sssd.conf from this Secret."""
    return _using(
        secret, lookup, NODESETS, lambda one: _names(one.spec.workers_sssd_conf_ref, secret)
    )


def controllers_using_config_map(config_map: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Controllers that name this ConfigMap."""
    name = config_map.metadata.name
    return _using(config_map, lookup, CONTROLLERS, lambda one: name in config_maps_named(one))


def controllers_recording_in(config_map: ConfigMap, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose partitions this ConfigMap records; it has no owner.

    The next reconcile corrects a write that arrived late and an edit by hand. Our own writes
    need none.
    """
    if lookup.is_own_write(config_map):
        return []
    name = config_map.metadata.name
    return _using(config_map, lookup, CONTROLLERS, lambda one: name == names.partition_record(one))


def controllers_using_accounting(accounting: Accounting, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose records an Accounting keeps."""
    return _using(
        accounting, lookup, CONTROLLERS, lambda one: _names(one.spec.accounting_ref, accounting)
    )


def controllers_accepting_token(token: Token, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose slurmctld has the key that a Token is signed with."""
    ref = token.spec.effective_jwt_key_ref

    def accepts(one: Controller) -> bool:
        own = names.jwt_key_ref(one)
        return ref is not None and (own.name, own.key) == (ref.name, ref.key)

    return _using(token, lookup, CONTROLLERS, accepts)


def accountings_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Accountings that name this Secret, or that mount it as a key ring."""
    name = secret.metadata.name

    def uses(one: Accounting) -> bool:
        return name in _secrets_of(one) or any(
            name == names.key_ring(controller) for controller in sharing_key(one, lookup)
        )

    return _using(secret, lookup, ACCOUNTINGS, uses)


def accountings_using_config_map(config_map: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Accountings whose JWKS file is in this ConfigMap."""
    return _using(
        config_map, lookup, ACCOUNTINGS, lambda one: _names(one.spec.jwks_key_ref, config_map)
    )


def accountings_in_namespace(obj: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Accountings of an object's namespace."""
    return keys(same_namespace(obj, lookup.all(ACCOUNTINGS)))


def tokens_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Tokens that are signed with a key of this Secret, or stored in it."""

    def uses(one: Token) -> bool:
        stored = names.token_secret(one).name == secret.metadata.name
        return stored or _names(one.spec.effective_jwt_key_ref, secret)

    return _using(secret, lookup, TOKENS, uses)


def tokens_in_namespace(obj: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Tokens of an object's namespace."""
    return keys(same_namespace(obj, lookup.all(TOKENS)))


def is_generated_key(namespace: str, name: str, lookup: Lookup) -> bool:
    """Whether a Secret is one that a Controller of the namespace generates for itself."""
    return any(
        (
            one.spec.slurm_key_ref is None
            and one.spec.munge_key_ref is None
            and name == names.generated_slurm_key(one)
        )
        or (one.spec.effective_jwt_key_ref is None and name == names.generated_jwt_key(one))
        for one in lookup.all(CONTROLLERS)
        if one.metadata.namespace == namespace
    )


def sharing_key(accounting: Accounting, lookup: Lookup) -> list[Controller]:
    """The Controllers that share their slurm.key with a slurmdbd, by name."""
    ref = accounting.spec.slurm_key_ref
    return sorted(
        (
            one
            for one in same_namespace(accounting, lookup.all(CONTROLLERS))
            if one.spec.accounting_ref is not None
            if one.spec.accounting_ref.name == accounting.metadata.name
            if ref is not None and not one.spec.external
            if (own := names.slurm_key_ref(one)).name == ref.name and own.key == ref.key
        ),
        key=lambda one: one.metadata.name,
    )


def _names(ref: Reference | None, obj: KubeObject) -> bool:
    return ref is not None and ref.name == obj.metadata.name


def _secrets_of(accounting: Accounting) -> set[str]:
    spec = accounting.spec
    storage = names.storage_config(accounting)
    refs = (
        spec.slurm_key_ref,
        spec.munge_key_ref,
        spec.effective_jwt_key_ref,
        storage.password_key_ref if storage is not None else None,
    )
    return {ref.name for ref in refs if ref is not None}
