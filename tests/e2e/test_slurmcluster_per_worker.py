"""A SlurmCluster whose workers each have a root of their own, on a real kubelet."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import yaml

from e2e_kit.api import condition
from e2e_kit.images import give_all
from e2e_kit.release import RELEASE
from e2e_kit.site import Site, eventually
from e2e_kit.slurmcluster import SlurmClusterSite
from penstock.local.images import build_jail

EXAMPLE = Path(__file__).parents[2] / "examples/slurmcluster.yaml"
ROOTS = "WorkerRootsEqual"
OWN = {
    "volumeClaimTemplateSpec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
SUB_MOUNTS = [
    {"name": name, "mountPath": f"/data/{name}", "subPath": name, "volumeSourceName": "jail"}
    for name in ("first", "second")
]
"""Two of one PVC, which is that of /home as well."""
PACKAGE = """
set -e
folder=$(mktemp -d)
mkdir -p $folder/DEBIAN $folder/usr/bin
printf '%s\\n' 'Package: marker' 'Version: 1' 'Architecture: all' 'Maintainer: x <x@y>' \
    'Description: x' >$folder/DEBIAN/control
printf '#!/bin/sh\\necho marked\\n' >$folder/usr/bin/marker
chmod 755 $folder/usr/bin/marker
dpkg-deb --build $folder /tmp/marker.deb
dpkg -i /tmp/marker.deb
"""


@pytest.fixture(scope="module")
def cluster(site: Site) -> Generator[SlurmClusterSite]:
    images = give_all(site.node, build_jail(RELEASE).values())
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    spec = documents[-1]["spec"]
    spec["jailMode"] = "PerWorker"
    spec["slurmNodes"]["worker"]["volumes"] |= {"jail": OWN, "jailSubMounts": SUB_MOUNTS}
    text = yaml.safe_dump_all(documents)
    made = SlurmClusterSite(site, f"own-roots-{secrets.token_hex(2)}", text, images)
    try:
        made.up()
        yield made
    finally:
        made.down()


def job(cluster: SlurmClusterSite, node: str, script: str, user: str = "root") -> str:
    """Output of a shell script as a job on a node."""
    return cluster.session(shlex.join(["srun", "-Q", "-w", node, "sh", "-c", script]), user)


def has(cluster: SlurmClusterSite, node: str, path: str) -> bool:
    """Whether a job on a node sees a path."""
    return job(cluster, node, f"test -e {path} && echo yes || echo no") == "yes"


def roots(cluster: SlurmClusterSite) -> tuple[str, str]:
    """Status and message of the condition about the roots."""
    found = condition(cluster.get(), ROOTS)
    return found.get("status", ""), found.get("message", "")


def until_roots(cluster: SlurmClusterSite, status: str) -> str:
    """Wait for a status of the condition, and return its message."""
    eventually(f"{ROOTS} is {status}", lambda: roots(cluster)[0] == status, 90)
    return roots(cluster)[1]


def filling(cluster: SlurmClusterSite, pod: str) -> str:
    """Log of the container that fills a worker's root."""
    return cluster.kubectl("logs", pod, "-c", "populate-jail")


def test_each_worker_has_a_root_and_all_have_one_home_and_the_same_users(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S177; S105: a pod with three mounts of one PVC starts."""
    figure(f"from SlurmCluster to two idle workers with roots: {cluster.start_s:.1f} s")
    cluster.session("useradd -m -s /bin/bash alice && usermod -aG sudo alice")
    # Lines of two tasks come in any order.
    both = sorted(["alice", "/home/alice", "alice"] * 2)
    seen = "srun -Q -N2 sh -c 'id -un; pwd; getent group sudo | cut -d: -f4'"
    eventually(
        "alice is on both", lambda: sorted(cluster.session(seen, "alice").split()) == both, 20
    )
    job(cluster, "worker-0", "echo data >results; touch /data/first/a /data/second/b", "root")
    job(cluster, "worker-0", "echo data >results", "alice")
    assert job(cluster, "worker-1", "cat results; ls /data/*", "alice").split() == [
        *("data", "/data/first:", "a", "/data/second:", "b")
    ]
    job(cluster, "worker-0", "touch /only-here")
    assert has(cluster, "worker-0", "/only-here")
    assert not has(cluster, "worker-1", "/only-here")
    assert cluster.session("ls /").split().count("only-here") == 0
    cluster.session("sbatch -W -Q -w worker-1 -o batch.out --wrap hostname", "alice")
    assert cluster.session("cat batch.out", "alice") == "worker-1"


def test_a_root_that_differs_is_reported_until_it_is_equal_again(
    cluster: SlurmClusterSite, figure: Callable[[str], None]
) -> None:
    """S177."""
    until_roots(cluster, "True")
    assert job(cluster, "worker-1", f"({PACKAGE}) >/dev/null; marker") == "marked"
    assert not has(cluster, "worker-0", "/usr/bin/marker")
    # Users of the test before may be reported by one worker first.
    words = "Roots differ: worker-1 from worker-0 in packages (+marker=1)."
    eventually("it is reported", lambda: roots(cluster)[1].startswith(words), 120)
    figure(roots(cluster)[1])
    assert cluster.status("Ready") == "True"
    job(cluster, "worker-1", "dpkg -P marker")
    until_roots(cluster, "True")


def test_a_root_outlives_its_pod(cluster: SlurmClusterSite) -> None:
    """S177: it is not filled twice."""
    before = cluster.uid("worker-0")
    cluster.kubectl("delete", "pod", "worker-0")
    eventually("another pod", lambda: cluster.uid("worker-0") not in ("", before), 60)
    # Until its slurmd registers, the Slurm node is idle with the address of the former pod.
    eventually("its root is there", lambda: has(cluster, "worker-0", "/only-here"), 120)
    cluster.until_idle(2)
    assert "filled already" in filling(cluster, "worker-0")


def test_a_new_worker_has_a_new_root_and_a_kept_pvc_has_the_old_one(
    cluster: SlurmClusterSite,
) -> None:
    """S177, S119: PVCs of a SlurmCluster's own workers stay when they are scaled in."""
    cluster.patch({"slurmNodes": {"worker": {"size": 3}}})
    cluster.until_idle(3)
    assert job(cluster, "worker-2", "id -un; cat results", "alice").split() == ["alice", "data"]
    assert not has(cluster, "worker-2", "/only-here")
    job(cluster, "worker-2", "touch /third")
    until_roots(cluster, "True")
    cluster.patch({"slurmNodes": {"worker": {"size": 2}}})
    cluster.until_idle(2)
    assert "jail-worker-2" in cluster.kubectl("get", "pvc", "-o", "name")
    cluster.patch({"slurmNodes": {"worker": {"size": 3}}})
    cluster.until_idle(3)
    assert has(cluster, "worker-2", "/third")


def test_overwriting_the_shared_jail_overwrites_each_root(cluster: SlurmClusterSite) -> None:
    """S177: files of the image come back, those of users stay."""
    job(cluster, "worker-0", "rm /usr/bin/zip")
    cluster.patch({"maintenance": "downscaleAndOverwritePopulateJail"})
    eventually(
        "the shared jail is overwritten",
        lambda: cluster.condition("JailPopulated") == "The jail was overwritten",
        120,
    )
    cluster.patch({"maintenance": "none"})
    cluster.until_idle(3)
    for pod in ("worker-0", "worker-1", "worker-2"):
        assert "replacing files" in filling(cluster, pod)
    assert has(cluster, "worker-0", "/usr/bin/zip")
    assert has(cluster, "worker-0", "/only-here")
    assert job(cluster, "worker-0", "id -un; cat results", "alice").split() == ["alice", "data"]
