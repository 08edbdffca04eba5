"""A standby whose pod has no Kubernetes node: commands and the operator go on as without it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from e2e_kit import manifests
from e2e_kit.api import Json, condition, restarts
from e2e_kit.backups import PODS, dialled, objects
from e2e_kit.cluster import Cluster
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

KEY = "kubernetes.io/hostname"
LONG_S = 180.0
SLOWER = 5
"""How many times as long a command may take as without a standby; unresolved names took 100."""
ALONE = """
mkdir -p /run/alone && cp -rL /etc/slurm/. /run/alone 2>/dev/null
sed -i '/^SlurmctldHost=slurm-controller-1/d' /run/alone/slurm.conf
"""
TIMED = """
for n in 1 2 3; do
  a=${EPOCHREALTIME/./}; sinfo -h >/dev/null || exit 1; b=${EPOCHREALTIME/./}; echo $((b - a))
done
"""

pytestmark = pytest.mark.timeout(900)


def fastest(cluster: Cluster, before: str = "") -> float:
    """Seconds that `sinfo` takes in slurmctld's container, the least of three."""
    said = cluster.run("bash", "-c", before + TIMED)
    return min(int(line) for line in said.split()) / 1e6


@pytest.fixture(scope="module")
def pending(clusters: Callable[[str], Cluster]) -> Cluster:
    """The standby waits for a second machine, which there is not."""
    cluster = clusters("pending")
    term = {"labelSelector": {"matchLabels": {"app": "rival"}}, "topologyKey": KEY}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template: Json = {"spec": {"affinity": affinity}}
    cluster.create(*objects(template=template), manifests.restapi(), manifests.nodeset(1))
    cluster.until_idle("compute-0", timeout=LONG_S)
    cluster.until("pods", lambda pods: PODS[1] in pods, "the standby is there", LONG_S)
    pod = cluster.get("pods", PODS[1])
    assert "nodeName" not in pod["spec"]
    return cluster


def test_a_users_own_anti_affinity_keeps_slurmctlds_apart_all_the_same(pending: Cluster) -> None:
    """D22, feature row 8: the standby has both terms, and so no Kubernetes node."""

    def refused(pods: dict[str, Json]) -> bool:
        found = condition(pods[PODS[1]], "PodScheduled")
        return found.get("status") == "False" and "anti-affinity" in found["message"]

    pending.until("pods", refused, "the scheduler says why")
    affinity = pending.get("pods", PODS[0])["spec"]["affinity"]["podAntiAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    apps = [one["labelSelector"]["matchLabels"] for one in terms]
    assert {"app": "rival"} in apps
    assert len(apps) == 2


def test_commands_do_not_wait_for_a_standby_that_has_no_kubernetes_node(
    pending: Cluster, figure: Callable[[str], None]
) -> None:
    """Feature row 8."""
    normal = fastest(pending, f"{ALONE}\nexport SLURM_CONF=/run/alone/slurm.conf\n")
    found = fastest(pending)
    figure(f"sinfo with an absent standby: {found:.3f} s, with none: {normal:.3f} s")
    assert found < SLOWER * normal


def test_a_connection_to_an_absent_standby_fails_at_once(pending: Cluster) -> None:
    assert "refused" in eventually("it is told", lambda: dialled(pending, PODS[1]), 30)


def test_the_operator_works_with_an_absent_standby(pending: Cluster) -> None:
    pending.kubectl("scale", "nodeset/compute", "--replicas=2")
    pending.until_idle("compute-0", "compute-1")
    pending.until_ready("nodesets", "compute")


def test_a_cluster_with_the_former_names_is_reconfigured_and_slurmctld_is_not_restarted(
    site: Site, pending: Cluster
) -> None:
    """Names that do not resolve while a pod is absent, as earlier releases have them."""
    space, before = pending.namespace, pending.get("pods", PODS[0])
    with site.without_operator():
        for name in ("slurm-config", "slurm-config-slurm"):
            text = pending.get("configmaps", name)["data"]["slurm.conf"]
            for pod in PODS:
                text = text.replace(
                    f"({pod}.{space})", f"({pod}.slurm-controller-internal.{space})"
                )
            pending.patch("configmap", name, {"data": {"slurm.conf": text}})
        # The kubelet brings files of a pod that changes at once.
        pending.kubectl("annotate", "pod", PODS[0], "test.penstock.dev/poke=1")
        shown = ("grep", "-c", "-e", "-internal", "/etc/slurm/slurm.conf")
        eventually("slurmctld has them", lambda: pending.run(*shown).strip() == "2", LONG_S)
        # It is done, though the answer comes too late: these names do not resolve.
        with contextlib.suppress(LocalError):
            pending.run("scontrol", "reconfigure")

    def named() -> bool:
        hosts = pending.run("scontrol", "show", "config").splitlines()
        found = [one for one in hosts if one.startswith("SlurmctldHost[")]
        return all(f"({pod}.{space})" in "".join(found) for pod in PODS)

    eventually("the names of the Services are in effect", named, LONG_S)
    after = pending.get("pods", PODS[0])
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert restarts(after) == restarts(before)
