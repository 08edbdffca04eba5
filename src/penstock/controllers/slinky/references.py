"""Who names whom: the objects that a changed Secret, ConfigMap or neighbour matters to."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.kinds import ConfigMap, Secret
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.accounting import Accounting
from penstock.controllers.runtime.caches import World, keys, same_namespace
from penstock.render.config.content import config_maps_read
from penstock.render.slinky.inputs import ClusterInputs


class References:
    """References of a World, read backwards: each answers with keys of objects."""

    def __init__(self, world: World) -> None:
        self._world = world

    def controllers_using_secret(self, secret: Secret) -> list[str]:
        """Keys of the Controllers whose keys are in this Secret."""
        return [
            one.metadata.key
            for one in same_namespace(secret, self._world.controllers)
            if secret.metadata.name
            in (names.slurm_key_ref(one).name, names.jwt_key_ref(one).name, names.key_ring(one))
        ]

    def users_of_sssd_conf(self, secret: Secret) -> Mapping[str, list[str]]:
        """By kind the keys of the objects that name this Secret as that with sssd.conf."""
        refs: list[tuple[KubeObject, SecretKeySelector | None]] = [
            *(
                (one, one.spec.sssd_conf_ref)
                for one in same_namespace(secret, self._world.controllers)
            ),
            *(
                (one, one.spec.sssd_conf_ref)
                for one in same_namespace(secret, self._world.loginsets)
            ),
            *(
                (one, one.spec.workers_sssd_conf_ref)
                for one in same_namespace(secret, self._world.nodesets)
            ),
        ]
        found: dict[str, list[str]] = {}
        for one, ref in refs:
            if ref is not None and ref.name == secret.metadata.name:
                found.setdefault(type(one).__name__, []).append(one.metadata.key)
        return found

    def controllers_using_config_map(self, config_map: KubeObject) -> list[str]:
        """Keys of the Controllers that name this ConfigMap."""
        return [
            one.metadata.key
            for one in same_namespace(config_map, self._world.controllers)
            if config_map.metadata.name
            in config_maps_read(ClusterInputs(one, self._world.settings.images))
        ]

    def controllers_recording_in(self, config_map: ConfigMap) -> list[str]:
        """Keys of the Controllers whose partitions this ConfigMap records; it has no owner.

        The next reconcile corrects a write that arrived late and an edit by hand. Our own writes
        need none.
        """
        if self._world.own_config_maps.is_own(config_map):
            return []
        return [
            one.metadata.key
            for one in same_namespace(config_map, self._world.controllers)
            if config_map.metadata.name == names.partition_record(one)
        ]

    def controllers_using_accounting(self, accounting: Accounting) -> list[str]:
        """Keys of the Controllers whose records an Accounting keeps."""
        return [
            one.metadata.key
            for one in same_namespace(accounting, self._world.controllers)
            if (ref := one.spec.accounting_ref) is not None and ref.name == accounting.metadata.name
        ]

    def accountings_of_secret(self, secret: Secret) -> list[str]:
        """Keys of the Accountings that name this Secret, or that show it as a key ring."""
        return [
            one.metadata.key
            for one in same_namespace(secret, self._world.accountings)
            if secret.metadata.name in _secrets_of(one)
            or any(secret.metadata.name == names.key_ring(c) for c in self._world.rings_of(one))
        ]

    def accountings_of_config_map(self, config_map: KubeObject) -> list[str]:
        """Keys of the Accountings whose JWKS file is in this ConfigMap."""
        return [
            one.metadata.key
            for one in same_namespace(config_map, self._world.accountings)
            if (ref := one.spec.jwks_key_ref) is not None and ref.name == config_map.metadata.name
        ]

    def accountings_in_namespace(self, obj: KubeObject) -> list[str]:
        """Keys of the Accountings of an object's namespace."""
        return keys(same_namespace(obj, self._world.accountings))

    def tokens_of_secret(self, secret: Secret) -> list[str]:
        """Keys of the Tokens that are signed with a key of this Secret, or put into it."""
        name = secret.metadata.name
        return [
            one.metadata.key
            for one in same_namespace(secret, self._world.tokens)
            if names.token_secret(one).name == name
            or ((ref := one.spec.effective_jwt_key_ref) is not None and ref.name == name)
        ]

    def tokens_in_namespace(self, obj: KubeObject) -> list[str]:
        """Keys of the Tokens of an object's namespace."""
        return keys(same_namespace(obj, self._world.tokens))


def _secrets_of(accounting: Accounting) -> set[str]:
    spec = accounting.spec
    storage = spec.storage_config
    refs = (
        spec.slurm_key_ref,
        spec.effective_jwt_key_ref,
        storage.password_key_ref if storage is not None else None,
    )
    return {ref.name for ref in refs if ref is not None}
