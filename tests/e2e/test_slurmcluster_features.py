"""`workerFeatures` of a SlurmCluster with workers of its own, and a partition by them."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit.images import give_all
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.images import build_jail

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
FEATURES = [{"name": "fast", "hostlistExpr": "worker-[1-3]", "nodesetName": "fastset"}]
PARTITIONS = {
    "configType": "custom",
    "rawConfig": [
        "PartitionName=main Nodes=ALL Default=YES",
        "PartitionName=fast Nodes=fastset",
    ],
}


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail().values())
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    documents[-1]["spec"] |= {"workerFeatures": FEATURES, "partitionConfiguration": PARTITIONS}
    text = yaml.safe_dump_all(documents)
    made = SlurmClusterSite(site, f"features-{secrets.token_hex(2)}", text, images)
    try:
        made.up()
        yield made
    finally:
        made.down()


def features(cluster: SlurmClusterSite, node: str) -> set[str]:
    """The active features of a Slurm node."""
    found = cluster.scontrol("show", "node", node, "-o")
    value = found.partition("ActiveFeatures=")[2].split()[0]
    return set(value.split(","))


def test_workers_of_a_host_list_have_the_feature_and_its_partition(
    cluster: SlurmClusterSite,
) -> None:
    """S085."""
    assert features(cluster, "worker-0") == {"worker"}
    assert features(cluster, "worker-1") == {"worker", "fast"}
    where = "chroot /mnt/jail srun {} hostname"
    assert cluster.run("login-0", "sshd", where.format("-p fast")).split() == ["worker-1"]
    assert cluster.run("login-0", "sshd", where.format("-C fast")).split() == ["worker-1"]


def test_a_feature_of_other_workers_reaches_them_and_the_partition(
    cluster: SlurmClusterSite,
) -> None:
    """S085: workers get new pods, as each has the host list in its environment."""
    cluster.patch({"workerFeatures": [{**FEATURES[0], "hostlistExpr": "worker-[0-3]"}]})
    eventually("worker-0 has it", lambda: "fast" in features(cluster, "worker-0"), 120)
    cluster.until_idle(2)

    def partition() -> str:
        return cluster.scontrol("show", "partition", "fast", "-o")

    eventually("both are in it", lambda: "TotalNodes=2 " in partition(), 60)
