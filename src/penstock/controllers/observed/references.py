"""Which objects a changed Secret, ConfigMap or neighbour matters to: references read backwards."""

from __future__ import annotations

from penstock.api.kubernetes.kinds import ConfigMap, Secret
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import SecretKeySelector
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


def controllers_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose keys are in this Secret."""
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(CONTROLLERS))
        if secret.metadata.name
        in (names.slurm_key_ref(one).name, names.jwt_key_ref(one).name, names.key_ring(one))
    ]


def controllers_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose sssd.conf is in this Secret."""
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(CONTROLLERS))
        if _names(one.spec.sssd_conf_ref, secret)
    ]


def loginsets_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the LoginSets whose sssd.conf is in this Secret."""
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(LOGINSETS))
        if _names(one.spec.sssd_conf_ref, secret)
    ]


def nodesets_using_sssd_conf(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the NodeSets whose workers have their sssd.conf from this Secret."""
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(NODESETS))
        if _names(one.spec.workers_sssd_conf_ref, secret)
    ]


def controllers_using_config_map(config_map: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Controllers that name this ConfigMap."""
    return [
        one.metadata.key
        for one in same_namespace(config_map, lookup.all(CONTROLLERS))
        if config_map.metadata.name in config_maps_named(one)
    ]


def controllers_recording_in(config_map: ConfigMap, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose partitions this ConfigMap records; it has no owner.

    The next reconcile corrects a write that arrived late and an edit by hand. Our own writes
    need none.
    """
    if lookup.is_own_write(config_map):
        return []
    return [
        one.metadata.key
        for one in same_namespace(config_map, lookup.all(CONTROLLERS))
        if config_map.metadata.name == names.partition_record(one)
    ]


def controllers_using_accounting(accounting: Accounting, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose records an Accounting keeps."""
    return [
        one.metadata.key
        for one in same_namespace(accounting, lookup.all(CONTROLLERS))
        if (ref := one.spec.accounting_ref) is not None and ref.name == accounting.metadata.name
    ]


def controllers_accepting_token(token: Token, lookup: Lookup) -> list[str]:
    """Keys of the Controllers whose slurmctld has the key that a Token is signed with."""
    ref = token.spec.effective_jwt_key_ref
    return [
        one.metadata.key
        for one in same_namespace(token, lookup.all(CONTROLLERS))
        if ref is not None
        and (found := names.jwt_key_ref(one)).name == ref.name
        and found.key == ref.key
    ]


def accountings_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Accountings that name this Secret, or that mount it as a key ring."""
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(ACCOUNTINGS))
        if secret.metadata.name in _secrets_of(one)
        or any(secret.metadata.name == names.key_ring(c) for c in sharing_key(one, lookup))
    ]


def accountings_using_config_map(config_map: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Accountings whose JWKS file is in this ConfigMap."""
    return [
        one.metadata.key
        for one in same_namespace(config_map, lookup.all(ACCOUNTINGS))
        if (ref := one.spec.jwks_key_ref) is not None and ref.name == config_map.metadata.name
    ]


def accountings_in_namespace(obj: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Accountings of an object's namespace."""
    return keys(same_namespace(obj, lookup.all(ACCOUNTINGS)))


def tokens_using_secret(secret: Secret, lookup: Lookup) -> list[str]:
    """Keys of the Tokens that are signed with a key of this Secret, or stored in it."""
    name = secret.metadata.name
    return [
        one.metadata.key
        for one in same_namespace(secret, lookup.all(TOKENS))
        if names.token_secret(one).name == name
        or ((ref := one.spec.effective_jwt_key_ref) is not None and ref.name == name)
    ]


def tokens_in_namespace(obj: KubeObject, lookup: Lookup) -> list[str]:
    """Keys of the Tokens of an object's namespace."""
    return keys(same_namespace(obj, lookup.all(TOKENS)))


def is_generated_key(namespace: str, name: str, lookup: Lookup) -> bool:
    """Whether a Secret is one that a Controller of the namespace generates for itself."""
    return any(
        (one.spec.slurm_key_ref is None and name == names.generated_slurm_key(one))
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


def _names(ref: SecretKeySelector | None, secret: Secret) -> bool:
    return ref is not None and ref.name == secret.metadata.name


def _secrets_of(accounting: Accounting) -> set[str]:
    spec = accounting.spec
    storage = spec.storage_config
    refs = (
        spec.slurm_key_ref,
        spec.effective_jwt_key_ref,
        storage.password_key_ref if storage is not None else None,
    )
    return {ref.name for ref in refs if ref is not None}
