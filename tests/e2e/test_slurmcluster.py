"""A SlurmCluster with its jail on a real kubelet, led by the operator from its YAML."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from e2e_kit.images import give_all
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import NAME, SlurmClusterSite
from penstock.local.images import build_jail

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail().values())
    made = SlurmClusterSite(site, f"jailed-{secrets.token_hex(2)}", EXAMPLE.read_text(), images)
    try:
        made.up()
        yield made
    finally:
        made.down()


def test_the_example_comes_up_and_runs_jobs_in_the_jail(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S084, S088: by the names of pods and containers that scripts use."""
    figure(f"from SlurmCluster to two idle workers: {cluster.start_s:.1f} s")
    said = cluster.run("login-0", "sshd", "chroot /mnt/jail srun -N2 -l cat /etc/os-release")
    assert said.count("trixie") >= 2


def test_a_key_of_slurm_conf_is_active_in_seconds_without_a_restart(
    cluster: SlurmClusterSite,
) -> None:
    before = cluster.uid("controller-0")
    cluster.patch({"customSlurmConfig": cluster.custom + "KillWait=77\n"})
    eventually("it is active", lambda: "= 77 sec" in cluster.scontrol("show", "config"), 60)
    assert cluster.uid("controller-0") == before


def test_a_bad_line_is_rejected_in_slurmctlds_words_and_a_good_one_recovers(
    cluster: SlurmClusterSite,
) -> None:
    cluster.patch({"customSlurmConfig": cluster.custom + "NoSuchKey=1\n"})
    eventually("it is rejected", lambda: "NoSuchKey" in cluster.condition("ConfigValid"), 60)
    cluster.patch({"customSlurmConfig": cluster.custom})
    eventually("it recovers", lambda: cluster.status("ConfigApplied") == "True", 60)


def test_workers_are_scaled_out_and_in(cluster: SlurmClusterSite) -> None:
    """S119, D66: the highest ordinals go, with their Slurm nodes."""
    cluster.patch({"slurmNodes": {"worker": {"size": 3}}})
    cluster.until_idle(3)
    cluster.patch({"slurmNodes": {"worker": {"size": 1}}})
    eventually("they are gone", lambda: cluster.nodes() == {"worker-0": "idle"}, 120)
    cluster.patch({"slurmNodes": {"worker": {"size": 2}}})
    cluster.until_idle(2)


def test_a_deleted_cluster_is_gone_once_its_workers_are_drained(cluster: SlurmClusterSite) -> None:
    cluster.kubectl("delete", "slurmcluster", NAME, "--timeout=120s")

    def pods() -> str:
        return cluster.kubectl("get", "pods", "-o", "name", "--field-selector=status.phase=Running")

    eventually("its pods are gone", lambda: not pods().split(), 120)
    assert "jail" in cluster.kubectl("get", "pvc", "-o", "name")
