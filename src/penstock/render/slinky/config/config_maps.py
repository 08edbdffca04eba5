"""The ConfigMaps with a cluster's configuration, and the hash that names one state of it.

The one that is mounted at /etc/slurm has what slurmctld starts with. The alias has what slurmctld
was seen to run with, the candidate what is declared.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import ConfigMapKeySelector
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.render.config.content import Contents, content_hash, rejection
from penstock.render.config.sections import extra_conf_of
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import names_of, object_metadata
from penstock.render.slinky.config.cgroup_conf import CGROUP_CONF
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth.key_files import SLURM_JWKS
from penstock.slurm.conf.includes import SLURM_CONF
from penstock.slurm.partition.retention import records_of

_PARTITION = "partitionname"


def files(cluster: ClusterInputs) -> dict[str, str]:
    """The generated files by name. A file that a configFileRef has is the user's."""
    if cluster.controller.spec.external:
        return {"slurm.conf": slurm_conf(cluster)}
    own = names_of(cluster.controller.spec.config_file_refs)
    given = {file for name in own for file in cluster.config_maps.get(name, {})}
    generated = {"cgroup.conf": CGROUP_CONF, "slurm.conf": slurm_conf(cluster)}
    return {k: v for k, v in generated.items() if k == "slurm.conf" or k not in given}


def cgroup_conf(cluster: ClusterInputs) -> str:
    """The cgroup.conf that slurmctld gives to whoever fetches it."""
    own = (cluster.config_maps.get(name, {}) for name in config_maps_of(cluster))
    given = [files["cgroup.conf"] for files in own if "cgroup.conf" in files]
    return given[-1] if given else CGROUP_CONF


def declared(cluster: ClusterInputs) -> Contents:
    """What is declared, in all of them."""
    data = files(cluster)
    return Contents(data, data, None if cluster.controller.spec.external else data)


def config_map(
    cluster: ClusterInputs,
    name: str,
    data: Mapping[str, str],
    refused: Mapping[str, str] | None = None,
) -> Json:
    """One of the ConfigMaps, with the mark that shows whether its data is ours.

    `refused` is that of `Contents`: the verdict is written with the files, never without them.
    """
    controller = cluster.controller
    metadata = object_metadata(
        name,
        cluster.namespace,
        app_labels.labels("slurmctld", controller.metadata.name),
        owner(controller),
    )
    metadata["annotations"] = {marks.CONTENT_HASH: content_hash(data)}
    if refused:
        metadata["annotations"][marks.CONFIG_REFUSED] = rejection(refused)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def own_hash(cluster: ClusterInputs, data: Mapping[str, str]) -> str:
    """The hash of what a Controller itself brings to /etc/slurm: its lines and its users' files.

    Partitions are left out, and so is what comes of NodeSets: they change while its lines are
    refused.
    """
    own = extra_conf_of(data.get("slurm.conf", "")).split("\n")
    lines = [one for one in own if not one.strip().lower().startswith(_PARTITION)]
    found = {**mounted(cluster, data), "slurm.conf": "\n".join(lines)}
    found.pop(SLURM_JWKS, None)
    return content_hash(found)


def partition_record(cluster: ClusterInputs, data: Mapping[str, str]) -> Json:
    """The ConfigMap that says of these files which partitions slurmctld has.

    It is nobody's, so that the state of slurmctld, which outlives its Controller, has it beside it.
    """
    controller = cluster.controller
    labels = app_labels.labels("slurmctld", controller.metadata.name)
    metadata = object_metadata(names.partition_record(controller), cluster.namespace, labels)
    found = records_of(data.get(SLURM_CONF, ""))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {SLURM_CONF: found},
    }


def config_maps_of(cluster: ClusterInputs) -> list[str]:
    """Names of the user's ConfigMaps that are mounted beside ours, sorted; none outside."""
    return _mounted_names(cluster.controller)


def _mounted_names(controller: Controller) -> list[str]:
    spec = controller.spec
    if spec.external:
        return []
    return sorted(
        names_of(
            spec.config_file_refs,
            spec.prolog_script_refs,
            spec.epilog_script_refs,
            spec.prolog_slurmctld_script_refs,
            spec.epilog_slurmctld_script_refs,
        )
    )


def config_maps_named(controller: Controller) -> list[str]:
    """Names of all ConfigMaps of the user that the configuration depends on."""
    jwks = _jwks(controller)
    mounted_ = _mounted_names(controller)
    return sorted({*mounted_, *([jwks.name] if jwks and jwks.name else [])})


def mounted(cluster: ClusterInputs, data: Mapping[str, str]) -> dict[str, str]:
    """All files at /etc/slurm but single keys when our ConfigMap has `data`; users' come last."""
    out = dict(data)
    for name in config_maps_of(cluster):
        out.update(cluster.config_maps.get(name, {}))
    if cluster.ring is not None and (keys := cluster.ring.slurmctld) is not None:
        out[SLURM_JWKS] = keys
    if jwks := _jwks(cluster.controller):
        found = cluster.config_maps.get(jwks.name, {}).get(jwks.key)
        out.update({"jwks.json": found} if found is not None else {})
    return out


def _jwks(controller: Controller) -> ConfigMapKeySelector | None:
    spec = controller.spec
    return None if spec.external else spec.jwks_key_ref


def config_hash(cluster: ClusterInputs) -> str:
    """The hash of the declared configuration: of everything at /etc/slurm, except the keys."""
    return content_hash(mounted(cluster, files(cluster)))
