"""The ConfigMap with a cluster's configuration, which is mounted at /etc/slurm."""

from __future__ import annotations

from penstock.api.meta import Json
from penstock.api.slinky import names, wellknown
from penstock.render.canonical import config_digest
from penstock.render.cgroup_conf import CGROUP_CONF
from penstock.render.context import Cluster, owner
from penstock.render.pod import names_of, object_metadata
from penstock.render.slurm_conf import slurm_conf


def files(cluster: Cluster) -> dict[str, str]:
    """The generated files by name. A file that a configFileRef has is the user's."""
    if cluster.controller.spec.external:
        return {"slurm.conf": slurm_conf(cluster)}
    own = names_of(cluster.controller.spec.config_file_refs)
    given = {file for name in own for file in cluster.config_maps.get(name, {})}
    generated = {"cgroup.conf": CGROUP_CONF, "slurm.conf": slurm_conf(cluster)}
    return {k: v for k, v in generated.items() if k == "slurm.conf" or k not in given}


def config_map(cluster: Cluster, name: str | None = None) -> Json:
    """The ConfigMap, under its own or another name."""
    controller = cluster.controller
    metadata = object_metadata(
        name or names.config_map(controller),
        cluster.namespace,
        wellknown.labels("slurmctld", controller.metadata.name),
        owner(controller),
    )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files(cluster)}


def config_maps_of(cluster: Cluster) -> list[str]:
    """Names of the user's ConfigMaps that are mounted beside ours, sorted."""
    spec = cluster.controller.spec
    return sorted(
        names_of(
            spec.config_file_refs,
            spec.prolog_script_refs,
            spec.epilog_script_refs,
            spec.prolog_slurmctld_script_refs,
            spec.epilog_slurmctld_script_refs,
        )
    )


def config_maps_read(cluster: Cluster) -> list[str]:
    """Names of all ConfigMaps of the user that the configuration depends on."""
    jwks = cluster.controller.spec.jwks_key_ref
    return sorted({*config_maps_of(cluster), *([jwks.name] if jwks and jwks.name else [])})


def config_hash(cluster: Cluster) -> str:
    """SHA-256 over everything that is mounted at /etc/slurm, except the keys.

    Written to an annotation of the running pod it makes the kubelet refresh the mounted files at
    once instead of at its next full pass.
    """
    contents = {
        name: config_digest(cluster.config_maps.get(name)) for name in config_maps_of(cluster)
    }
    if jwks := cluster.controller.spec.jwks_key_ref:
        found = cluster.config_maps.get(jwks.name, {}).get(jwks.key, "")
        contents["jwks.json"] = config_digest({jwks.key: found})
    return config_digest(contents | files(cluster))
