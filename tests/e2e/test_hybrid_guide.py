"""The guide's values file beside daemons outside, and what becomes of it there.

Scenarios S077, S078, S081; fixture F19: slurmctld, slurmdbd and a slurmd on hosts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from e2e_kit import manifests, mariadb
from e2e_kit.api import Json
from e2e_kit.cluster import Cluster
from e2e_kit.dns import known
from e2e_kit.external_hosts import SLURM_UID, Host, external_hosts
from e2e_kit.hybrid import (
    BATCH,
    CGROUP_CONF,
    JWT_KEY,
    JWT_SECRET,
    LONG_S,
    SLURM_KEY,
    Slurmctld,
    accounted,
    create_secrets,
    idle,
    network,
    reported,
    shares,
    start_slurmdbd,
    storage_lines,
    until_served,
    write_files,
)
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError
from support.release import Release

VALUES = Path(__file__).parents[1] / "fixtures" / "charts" / "f19-hybrid.yaml"
CONTROLLER, ACCOUNTING = "slurm-controller.example.com", "slurm-accounting.example.com"
PASSWORD = "secret"
WORKERS = tuple(f"slinky-{number}" for number in range(5))
LOGIN = ("exec", "deployment/slurm-login-slinky", "--")

# Helm may have to be compiled.
pytestmark = pytest.mark.timeout(1800)


@dataclass
class Guide:
    """The release, its database, and the hosts."""

    guide: Cluster
    release: Release
    records: Cluster
    metal: Host
    slurmctld: Slurmctld
    dbd: Host

    def spans_both(self, database: str) -> None:
        """A job over a worker and the machine outside is in a database."""
        words = self.guide.kubectl(*LOGIN, *BATCH, "--nodelist=slinky-0,metal-1")
        job = int(words)
        accounted(lambda *command: self.guide.kubectl(*LOGIN, *command), job)
        rows = mariadb.sql(self.records, f"SELECT id_job FROM {database}.hybrid_job_table")
        assert str(job) in rows.split()


@pytest.fixture(scope="module")
def there(
    site: Site,
    clusters: Callable[[str], Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Guide]:
    mariadb.load(site.node)
    guide, records = clusters("guide"), clusters("records")
    records.create(*mariadb.objects(records, {"outside": PASSWORD, "moved": PASSWORD}))
    folder = tmp_path_factory.mktemp("guide")
    with external_hosts(site.node, folder) as hosts:
        found = Guide(
            guide,
            Release(site.node, "slurm", guide.namespace),
            records,
            metal=hosts.host("slurmd", "metal-1"),
            slurmctld=Slurmctld(hosts.host("slurmctld", "metal-ctl")),
            dbd=hosts.host("slurmdbd", "metal-dbd"),
        )
        guide.jwt_secret = JWT_SECRET
        guide.apply(manifests.namespace(guide.namespace))
        create_secrets(guide, folder)
        address = records.get("services", mariadb.NAME)["spec"]["clusterIP"]
        start_slurmdbd(found.dbd, address, "outside", PASSWORD)
        ctl, dbd = found.slurmctld.host, found.dbd.address
        conf = found.slurmctld.conf("hybrid", *storage_lines(ACCOUNTING))
        write_files(ctl, SLURM_UID, conf, {ACCOUNTING: dbd})
        ctl.keys(SLURM_UID, jwt_key=JWT_KEY)
        found.slurmctld.start()
        until_served(ctl, 6817)
        found.metal.hosts({"metal-ctl": ctl.address})
        found.metal.keys(0, slurm_key=SLURM_KEY)
        found.metal.start("/usr/sbin/slurmd", "-D", "-Z", "--conf-server", f"{ctl.address}:6817")
        with known(site, {CONTROLLER: ctl.address, ACCOUNTING: dbd}):
            yield found
            with contextlib.suppress(LocalError):
                guide.kubectl("delete", "nodesets", "--all", "--timeout=60s")


def test_the_guides_values_bring_five_workers_and_a_login_to_external_daemons(
    there: Guide,
) -> None:
    """S078, S077, F19: layout 2; as the guide has it, but for images and one machine for all."""
    guide = there.guide
    there.release.install(values(), "slurm")
    reported(guide, "SlurmctldAnswers")
    idle(guide, *WORKERS, "metal-1")
    guide.until_ready("accountings", "slurm", LONG_S)
    guide.until_ready("nodesets", "slurm-worker-slinky", LONG_S)
    guide.until_ready("loginsets", "slurm-login-slinky", LONG_S)
    running = guide.kubectl("get", "pods", "--no-headers", "-o", "custom-columns=:metadata.name")
    workers = {f"slurm-worker-{name}" for name in WORKERS}
    others = set(running.split()) - workers
    assert set(running.split()) >= workers
    assert len(others) == 2, "a login, a slurmrestd, and neither a slurmctld nor a slurmdbd"
    assert guide.kubectl("get", "statefulsets", "-o", "name") == ""
    shown = guide.kubectl(*LOGIN, "sinfo", "-h", "-N", "-p", "all", "-o", "%N %t").splitlines()
    assert sorted(shown) == sorted(f"{name} idle" for name in (*WORKERS, "metal-1"))
    there.spans_both("outside")
    guide.kubectl("scale", "nodeset", "slurm-worker-slinky", "--replicas=4")
    idle(guide, *WORKERS[:4], "metal-1")
    guide.kubectl("scale", "nodeset", "slurm-worker-slinky", "--replicas=5")
    idle(guide, *WORKERS, "metal-1")


def test_an_external_slurmctld_takes_a_slurmdbd_in_a_pod(there: Guide) -> None:
    """S077: layout 3, a mix; the outside slurmdbd of layout 2 is there no more."""
    guide, slurmctld = there.guide, there.slurmctld
    guide.apply(mariadb.password("mariadb-password", PASSWORD))
    host = f"{mariadb.NAME}.{there.records.namespace}"
    own: Json = {"image": ""}
    storage = {"host": host, "database": "moved", "username": "moved"}
    kept: Json = {"enabled": True, "slurmdbd": own, "storageConfig": storage}
    there.release.upgrade({**values(), "accounting": kept}, "slurm")

    def address(pods: dict[str, Json]) -> str | None:
        return pods.get("slurm-accounting-0", {}).get("status", {}).get("podIP")

    pod = guide.until("pods", address, "slurmdbd has an address", LONG_S)
    guide.until_ready("accountings", "slurm", LONG_S)
    there.dbd.stop("slurmdbd")
    name = f"slurm-accounting.{guide.namespace}"
    slurmctld.host.hosts({name: pod})
    conf = slurmctld.conf("hybrid", *storage_lines(name))
    slurmctld.host.write("/etc/slurm/slurm.conf", conf, mode=0o644)
    slurmctld.reconfigure()
    guide.until_ready("loginsets", "slurm-login-slinky", LONG_S)
    idle(guide, *WORKERS, "metal-1")
    eventually(
        "slurmctld has registered with it",
        lambda: (
            "hybrid"
            in guide.kubectl(*LOGIN, "sacctmgr", "-n", "-P", "show", "cluster", "format=cluster")
        ),
        LONG_S,
        every=1,
    )
    there.spans_both("moved")


def test_the_cgroup_conf_of_an_external_slurmctld_is_seen_in_a_worker(
    there: Guide, site: Site
) -> None:
    """S081: slurmrestd does not show it; `penstock network` looks where it was fetched."""
    guide, host = there.guide, there.slurmctld.host
    warned = ("slurm-worker-slinky", "CgroupConfNotSeen")
    said = eventually("it is told", lambda: shares(guide, *warned), LONG_S)
    assert "metal-1" in said
    assert "with `penstock network`" in said
    for line, harms in (("IgnoreSystemd=yes", True), ("IgnoreSystemdOnFailure=yes", False)):
        host.write("/etc/slurm/cgroup.conf", f"{CGROUP_CONF}{line}\n".encode(), mode=0o644)
        there.slurmctld.reconfigure()
        eventually(
            f"a worker has fetched {line}",
            lambda line=line: line in guide.on("slurm-worker-slinky-0", "cat /run/slurm/conf/c*"),
            LONG_S,
        )
        _, text = network(site, guide.namespace)
        remark = "cgroup.conf of slurmctld has IgnoreSystemd=yes"
        assert any(remark in one and "metal-1" in one for one in text.splitlines()) == harms, text


def values() -> Json:
    """The guide's file, with the images that the node has."""
    found: Json = yaml.safe_load(VALUES.read_text())
    own: Json = {"image": ""}
    found["restapi"] = {"slurmrestd": own}
    found["loginsetDefaults"] = {"login": own, "initconf": own}
    found["nodesets"]["slinky"] |= {"slurmd": own, "logfile": own, "oversubscribeNode": True}
    return found
