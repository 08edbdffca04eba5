"""Where the pods of a cluster find its keys, its configuration and one another."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.render.parts.pod_template import ring_sources, secret_source
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.auth.key_files import SLURM_KEY


def slurm_key_sources(cluster: ClusterInputs) -> list[Json]:
    """The key of auth/slurm as the file `slurm.key`; none with munge."""
    if cluster.munge_key is not None:
        return []
    ref = names.slurm_key_ref(cluster.controller)
    return [secret_source(ref.name, (ref.key, SLURM_KEY, None))]


def key_sources(cluster: ClusterInputs, ring: str) -> list[Json]:
    """The key of auth/slurm, and beside it `slurm.jwks` from that entry of the key ring, if any.

    The ring is optional: without it Slurm takes slurm.key.
    """
    keys = slurm_key_sources(cluster)
    if has_ring(cluster):
        keys += ring_sources(names.key_ring(cluster.controller), ring)
    return keys


def has_ring(cluster: ClusterInputs) -> bool:
    """Whether the operator rotates keys of auth/slurm: not those of an external slurmctld."""
    return not cluster.controller.spec.external and cluster.munge_key is None


def config_server(cluster: ClusterInputs) -> str:
    """`host:port` where workers and logins fetch their configuration."""
    controller = cluster.controller
    return f"{names.slurmctld_host(controller)}:{names.slurmctld_port(controller)}"


def worker_search(cluster: ClusterInputs) -> Json:
    """DNS settings with which workers are found by their Slurm names."""
    service = names.worker_service(cluster.controller.metadata.name)
    return {"searches": [f"{service}.{cluster.namespace}.svc.{cluster.cluster_domain}"]}
