"""What a cluster cannot start without: its keys and the files that its user names."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.related_objects import controller_references
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.auth.jwks import finding as jwks_finding
from penstock.decide.config import files as config_files
from penstock.render.slinky.config.config_maps import config_maps_of
from penstock.render.slinky.inputs import ClusterInputs


def prerequisite_findings(
    clusters: SlinkyClusters, controller: Controller, cluster: ClusterInputs
) -> list[Finding]:
    """What the cluster cannot start without; the pod waits for it rather than restart later."""
    space, found = controller.metadata.namespace, list[Finding]()
    for path, given, ref in (
        ("slurmKeyRef", controller.spec.slurm_key_ref, names.slurm_key_ref(controller)),
        ("jwtKeyRef", controller.spec.effective_jwt_key_ref, names.jwt_key_ref(controller)),
    ):
        if clusters.secrets.hash(space, ref):
            continue
        if given is None and controller.spec.external:
            found.append(Finding(False, "SecretNotFound", _external_key_missing(path, ref, space)))
        elif given is None:
            found.append(Finding(None, "CreatingKeys", f"Secret {ref.name} is being made"))
        else:
            found.append(
                Finding(
                    False,
                    "SecretNotFound",
                    f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in "
                    f"namespace {space}. Create it, or leave the reference out to have one "
                    "generated",
                )
            )
    paths = {
        one.name: one.path for one in controller_references(controller) if one.kind == "ConfigMap"
    }
    found += [
        Finding(
            False,
            "ConfigMapNotFound",
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


def of_user(cluster: ClusterInputs) -> list[tuple[str, Mapping[str, str]]]:
    """The user's ConfigMaps in the order in which they are mounted."""
    return [(name, cluster.config_maps.get(name, {})) for name in config_maps_of(cluster)]


def _external_key_missing(path: str, ref: SecretKeySelector, space: str) -> str:
    """Return why a key is not generated: the external slurmctld has one already."""
    return (
        f"spec.{path}: there is no Secret {ref.name} with a key {ref.key} in namespace {space}. "
        "Put the key of the external slurmctld there, or name the Secret that has it"
    )
