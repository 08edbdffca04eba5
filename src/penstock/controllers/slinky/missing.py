"""What a cluster cannot start without: its keys and the files that its user names."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.related_objects import controller_references
from penstock.catalog.reasons.keys import KeyReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.auth.jwks import finding as jwks_finding
from penstock.decide.auth.key_length import empty_key_problem, munge_key_problem
from penstock.decide.auth.key_owner import CONTROLLER, foreign_key
from penstock.decide.config import files as config_files
from penstock.render.slinky.config.config_maps import config_maps_of
from penstock.render.slinky.inputs import ClusterInputs


def prerequisite_findings(
    clusters: SlinkyClusters, controller: Controller, cluster: ClusterInputs
) -> list[Finding]:
    """What the cluster cannot start without; the pod waits for it rather than restart later."""
    space, found = controller.metadata.namespace, list[Finding]()
    munge = controller.spec.munge_key_ref
    path_of_own = "slurmKeyRef" if munge is None else "mungeKeyRef"
    for path, given, ref in (
        (path_of_own, munge or controller.spec.slurm_key_ref, names.slurm_key_ref(controller)),
        ("jwtKeyRef", controller.spec.effective_jwt_key_ref, names.jwt_key_ref(controller)),
    ):
        if clusters.secrets.hash(space, ref):
            wrong = _wrong_key(clusters, controller, path, ref, is_generated=given is None)
            found += [wrong] if wrong is not None else []
            continue
        if given is None and controller.spec.external:
            found.append(
                Finding(
                    False, ObjectReason.SECRET_NOT_FOUND, _external_key_missing(path, ref, space)
                )
            )
        elif given is None:
            found.append(Finding(None, KeyReason.CREATING, f"Secret {ref.name} is being created"))
        else:
            found.append(
                Finding(
                    False,
                    ObjectReason.SECRET_NOT_FOUND,
                    f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in "
                    f"namespace {space}. Create it, or leave the reference out "
                    + ("for auth/slurm" if path == "mungeKeyRef" else "to have one generated"),
                )
            )
    if munge is not None and (value := clusters.secrets.value(space, munge)) is not None:
        wrong = munge_key_problem("spec.mungeKeyRef: ", munge, len(value))
        found += [wrong] if wrong is not None else []
    wrong = _other_auth_type(cluster) or _other_slurm_key(clusters, controller, cluster)
    found += [wrong] if wrong is not None else []
    paths = {
        one.name: one.path for one in controller_references(controller) if one.kind == "ConfigMap"
    }
    found += [
        Finding(
            False,
            ObjectReason.CONFIG_MAP_NOT_FOUND,
            f"{paths[name]}: there is no ConfigMap {name} in namespace {space}. Create it or "
            "remove the reference",
        )
        for name in config_maps_of(cluster)
        if name not in cluster.config_maps
    ]
    jwks = None if controller.spec.external else controller.spec.jwks_key_ref
    if jwks and (wrong := jwks_finding(jwks, space, clusters.caches.file(space, jwks))):
        found.append(wrong)
    return found + config_files.rejected_files(of_user(cluster))


def _wrong_key(
    clusters: SlinkyClusters,
    controller: Controller,
    path: str,
    ref: SecretKeySelector,
    *,
    is_generated: bool,
) -> Finding | None:
    """Why slurmctld cannot use a key that is there; `path` is the field that names it, if any.

    A key that was emptied after the first start is rejected by the rotation, which keeps the former
    one.
    """
    if controller.spec.external:
        return None
    if is_generated and (found := _foreign(clusters, controller, path, ref)):
        return found
    space = controller.metadata.namespace
    if path == "mungeKeyRef" or (path == "slurmKeyRef" and clusters.ring(controller)):
        return None
    value = clusters.secrets.value(space, ref)
    where = "" if is_generated else f"spec.{path}: "
    return empty_key_problem(where, ref, len(value)) if value is not None else None


def foreign_keys(clusters: SlinkyClusters, controller: Controller) -> list[str]:
    """Names of Secrets for generated keys that are another cluster's: no daemon begins with one."""
    spec, wanted = controller.spec, list[tuple[str, SecretKeySelector]]()
    if spec.external:
        return []
    if spec.munge_key_ref is None and spec.slurm_key_ref is None:
        wanted.append(("slurmKeyRef", names.slurm_key_ref(controller)))
    if spec.effective_jwt_key_ref is None:
        wanted.append(("jwtKeyRef", names.jwt_key_ref(controller)))
    return [ref.name for path, ref in wanted if _foreign(clusters, controller, path, ref)]


def _foreign(
    clusters: SlinkyClusters, controller: Controller, path: str, ref: SecretKeySelector
) -> Finding | None:
    """That a generated key is another cluster's, before slurmctld has worked with it."""
    secret = clusters.caches.secrets.get(f"{controller.metadata.namespace}/{ref.name}")
    if secret is None or clusters.served(controller):
        return None
    advice = f"Name a Secret of your own in spec.{path}, or choose another name"
    return foreign_key(secret.metadata, CONTROLLER, controller.metadata, advice)


def _other_auth_type(cluster: ClusterInputs) -> Finding | None:
    """That slurmctld and its slurmdbd sign messages by another plug-in."""
    books = cluster.accounting
    if books is None or books.spec.external or books.spec.munge_key_ref == cluster.munge_key:
        return None
    name, ref = books.metadata.name, cluster.munge_key
    if ref is None:
        message = (
            f"Accounting {name} has munge, and this Controller auth/slurm: name the same Secret in "
            "spec.mungeKeyRef of both, or in spec.slurmKeyRef of both"
        )
    else:
        message = (
            f"spec.mungeKeyRef: slurmctld has the key {ref.key} of Secret {ref.name}, and "
            f"Accounting {name} another or none: give its spec.mungeKeyRef the same reference"
        )
    return Finding(False, KeyReason.AUTH_TYPES_DIFFER, message)


def _other_slurm_key(
    clusters: SlinkyClusters, controller: Controller, cluster: ClusterInputs
) -> Finding | None:
    """That slurmctld, before its first start, has another slurm.key than its slurmdbd.

    Two Secrets may have the same key. Later they may differ while it is changed in both.
    """
    books, own = cluster.accounting, names.slurm_key_ref(controller)
    theirs = books.spec.slurm_key_ref if books is not None and not books.spec.external else None
    if books is None or theirs is None:
        return None
    if controller.spec.external or clusters.served(controller):
        return None
    keys = [clusters.secrets.value(cluster.namespace, ref) for ref in (own, theirs)]
    if None in keys or keys[0] == keys[1]:
        return None
    message = (
        f"Accounting {books.metadata.name} has another slurm.key (Secret {theirs.name}, key "
        f"{theirs.key}) than this Controller (Secret {own.name}, key {own.key}): name the same "
        "Secret in spec.slurmKeyRef of both"
    )
    return Finding(False, KeyReason.AUTH_TYPES_DIFFER, message)


def of_user(cluster: ClusterInputs) -> list[tuple[str, Mapping[str, str]]]:
    """The user's ConfigMaps in the order in which they are mounted."""
    return [(name, cluster.config_maps.get(name, {})) for name in config_maps_of(cluster)]


def _external_key_missing(path: str, ref: SecretKeySelector, space: str) -> str:
    """Return why a key is not generated: the external slurmctld has one already."""
    return (
        f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in namespace {space}. "
        "Put the key of the external slurmctld there, or name the Secret that has it"
    )
