"""Slurm on both sides: daemons on hosts outside Kubernetes, and in pods.

Scenarios S067, S071, S073, S074, S075, S076, S077, S079, S080, S083; defect D27.

Two clusters share the hosts: `inner` has its slurmctld in a pod, and a slurmd and a login outside;
`outer` has its slurmctld outside, and a slurmrestd and a slurmd beside it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

import pytest

from e2e_kit import manifests
from e2e_kit.cluster import Cluster
from e2e_kit.external_hosts import NOBODY, SLURM_UID, Host, external_hosts
from e2e_kit.hybrid import (
    JOB,
    JWT_KEY,
    JWT_SECRET,
    LONG_S,
    POD,
    SECRETS,
    SLURM_KEY,
    Slurmctld,
    asked,
    controller,
    create_secrets,
    external_controller,
    idle,
    names_of,
    network,
    only,
    ran,
    reported,
    restarted,
    right,
    same_bytes,
    server,
    service,
    write_files,
    wrong,
)
from e2e_kit.site import Site, eventually
from penstock.local.errors import LocalError

OUTAGE_S = float(os.environ.get("PENSTOCK_OUTAGE_S", "15"))
"""How long the outside slurmctld is away; 300 in the scenario."""
BURST = ("NodeSet=burst Feature=burst", "PartitionName=burst Nodes=burst")

pytestmark = pytest.mark.timeout(900)


@dataclass
class Hybrid:
    """Both clusters and the hosts."""

    inner: Cluster
    outer: Cluster
    node: Host
    """Its slurmd belongs to `inner`, where slurm.conf names it."""
    login: Host
    slurmctld: Slurmctld
    rest: Host
    metal: Host
    """Its slurmd belongs to `outer`, as a dynamic node."""

    @property
    def ctl(self) -> Host:
        """Where the slurmctld of `outer` runs."""
        return self.slurmctld.host


@pytest.fixture(scope="module")
def hybrid(
    site: Site,
    clusters: Callable[[str], Cluster],
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[Hybrid]:
    inner, outer = clusters("inner"), clusters("outer")
    folder = tmp_path_factory.mktemp("outside")
    with external_hosts(site.node, folder) as hosts:
        found = Hybrid(
            inner,
            outer,
            node=hosts.host("slurmd", "metal-0"),
            login=hosts.host("login", "metal-login"),
            slurmctld=Slurmctld(hosts.host("slurmctld", "metal-ctl")),
            rest=hosts.host("slurmrestd", "metal-rest"),
            metal=hosts.host("slurmd", "metal-1"),
        )
        for cluster in (inner, outer):
            cluster.jwt_secret = JWT_SECRET
        files = folder / "keys"
        files.mkdir()
        inner.create()
        create_secrets(inner, files)
        inner.apply(controller(found.node), manifests.restapi(), manifests.nodeset(1))
        outer.apply(
            manifests.namespace(outer.namespace),
            *(wrong(name, key) for name, (key, _) in SECRETS.items()),
            external_controller(outer),
            manifests.restapi(),
            manifests.nodeset(1, "burst"),
            manifests.loginset(),
        )
        yield found
        # Workers are drained by a slurmctld that answers: later there is none.
        for cluster in (outer, inner):
            with contextlib.suppress(LocalError):
                cluster.kubectl("delete", "nodesets", "--all", "--timeout=60s")


def test_an_external_slurmd_runs_jobs_beside_pods_and_its_record_is_left_alone(
    hybrid: Hybrid,
) -> None:
    """S067, S071, S074, S077: layout 1; while workers come and go."""
    inner, node = hybrid.inner, hybrid.node
    inner.until_ready("controllers", manifests.NAME, LONG_S)
    assert same_bytes(inner, POD, "slurmctld", "/etc/slurm/slurm.key", SLURM_KEY)
    assert same_bytes(inner, POD, "slurmctld", "/etc/slurm/jwt.key", JWT_KEY)
    node.hosts(names_of(inner))
    node.keys(0, slurm_key=SLURM_KEY)
    node.start("/usr/sbin/slurmd", "-D", "--conf-server", server(inner))
    idle(inner, "compute-0", "metal-0")
    assert ran(inner.run("srun", *JOB, "hostname")) == ["compute-0", "metal-0"]
    job = inner.submit("srun hostname", *JOB, "--output=/tmp/both")
    done = inner.until_job(job, "COMPLETED", "FAILED")
    assert done["JobState"] == "COMPLETED"
    outside_began = done["BatchHost"] == node.name
    text = node.run("cat", "/tmp/both") if outside_began else inner.on("compute-0", "cat /tmp/both")
    assert ran(text) == ["compute-0", "metal-0"]
    before = inner.node("metal-0")
    inner.kubectl("scale", "nodeset", "compute", "--replicas=2")
    idle(inner, "compute-0", "compute-1", "metal-0")
    inner.kubectl("scale", "nodeset", "compute", "--replicas=1")
    idle(inner, "compute-0", "metal-0")
    after = inner.node("metal-0")
    kept = ("reason", "comment", "slurmd_start_time", "active_features", "address")
    assert [after[key] for key in kept] == [before[key] for key in kept]
    assert after["reason"] == ""


def test_an_external_login_submits_jobs_and_sees_a_changed_partition_at_once(
    hybrid: Hybrid,
) -> None:
    """S075."""
    inner, login = hybrid.inner, hybrid.login
    login.hosts(names_of(inner))
    login.keys(SLURM_UID, slurm_key=SLURM_KEY)
    login.start("/usr/sbin/sackd", "-D", "--conf-server", server(inner), user=SLURM_UID)
    command = ("sinfo", "-h", "-p", "all", "-o", "%l")
    shown = eventually("sinfo answers", lambda: login.run(*command).strip(), LONG_S, every=1)
    assert shown == "infinite"
    assert ran(login.run("srun", *JOB, "hostname")) == ["compute-0", "metal-0"]
    inner.run("scontrol", "update", "PartitionName=all", "MaxTime=7")
    assert login.run(*command).strip() == "7:00"


def test_what_keeps_the_sides_apart_is_reported_one_after_the_other(
    hybrid: Hybrid, site: Site
) -> None:
    """S079, S080: name, port, the key of tokens, the key of daemons; each heals by itself."""
    outer, ctl = hybrid.outer, hybrid.ctl
    where = f"metal-ctl.{outer.namespace}:6817"
    prepare(hybrid)
    said = reported(outer, "NameNotResolved")
    assert f"metal-ctl.{outer.namespace}" in said
    outer.apply(*service("metal-ctl", ctl))
    assert where in reported(outer, "PortUnreachable")
    hybrid.slurmctld.start()
    assert where in reported(outer, "AuthenticationFailed", "external-auth-jwths256")
    right(outer, "external-auth-jwths256")
    said = reported(outer, "AuthenticationFailed", "external-auth-slurm")
    assert where in said
    assert "Protocol authentication error" in said
    assert outer.states() == {}
    right(outer, "external-auth-slurm")
    reported(outer, "SlurmctldAnswers")
    idle(outer, "burst-0")
    assert site.api.list("statefulsets", outer.namespace) == []


def test_workers_logins_and_slurmrestds_on_both_sides_serve_an_external_slurmctld(
    hybrid: Hybrid,
) -> None:
    """S067, S073, S076, S077, D27: layouts 2 and 3."""
    outer, metal = hybrid.outer, hybrid.metal
    outer.until_ready("nodesets", "burst", LONG_S)
    outer.until_ready("loginsets", "login", LONG_S)
    metal.hosts({"metal-ctl": hybrid.ctl.address})
    metal.keys(0, slurm_key=SLURM_KEY)
    metal.start("/usr/sbin/slurmd", "-D", "-Z", "--conf-server", f"{hybrid.ctl.address}:6817")
    idle(outer, "burst-0", "metal-1")
    assert same_bytes(outer, "burst-0", "slurmd", "/etc/slurm/slurm.key", SLURM_KEY)
    # The changed key has replaced those that had the wrong one.
    pod = eventually("one login", lambda: only(outer, "login"), LONG_S, every=1)
    login = ("exec", pod, "-c", "login", "--")
    shown = outer.kubectl(*login, "sinfo", "-h", "-N", "-p", "all", "-o", "%N %t").splitlines()
    assert sorted(shown) == ["burst-0 idle", "metal-1 idle"]
    assert ran(outer.kubectl(*login, "srun", *JOB, "hostname")) == ["burst-0", "metal-1"]
    answer = asked(hybrid.rest, outer)
    assert {one["name"] for one in answer["nodes"]} == {"burst-0", "metal-1"}
    outer.kubectl("scale", "nodeset", "burst", "--replicas=0")
    outer.until("pods", lambda pods: "burst-0" not in pods, "the worker is gone", LONG_S)
    idle(outer, "metal-1")
    outer.kubectl("scale", "nodeset", "burst", "--replicas=1")
    idle(outer, "burst-0", "metal-1")


def test_the_table_of_pairs_and_ports_shows_which_way_is_closed(hybrid: Hybrid, site: Site) -> None:
    """S080: before any job is sent."""
    outer = hybrid.outer
    code, text = network(site, outer.namespace)
    assert code == 0, text
    assert "metal-1" in text
    with hybrid.metal.filtered("INPUT", "-p", "tcp", "--dport", "6818", "-j", "DROP"):
        code, text = network(site, outer.namespace)
    assert code == 1, text
    closed = [line for line in text.splitlines() if hybrid.metal.address in line]
    assert any("no answer" in line for line in closed), text
    assert network(site, hybrid.inner.namespace)[0] == 0


def test_workers_that_slurmctld_does_not_reach_are_reported_until_it_does(
    hybrid: Hybrid, site: Site
) -> None:
    """S080: a firewall in the way from the outside slurmctld to one worker's port 6818."""
    outer, slurmctld = hybrid.outer, hybrid.slurmctld
    pod = outer.get("pods", "burst-0")
    uid, address = pod["metadata"]["uid"], pod["status"]["podIP"]
    rule = ("OUTPUT", "-p", "tcp", "-d", address, "--dport", "6818", "-j", "DROP")
    with slurmctld.host.filtered(*rule):
        slurmctld.reconfigure()
        said = reported(outer, "WorkersUnreachable")
        code, text = network(site, outer.namespace)
    assert f"metal-ctl.{outer.namespace}:6817 does not reach port 6818 of burst-0" in said
    assert address in said
    assert "metal-1" not in said
    assert code == 1, text
    closed = [line for line in text.splitlines() if "NO: slurmctld reports burst-0 as" in line]
    assert len(closed) == 1, text
    slurmctld.reconfigure()
    reported(outer, "SlurmctldAnswers")
    idle(outer, "burst-0", "metal-1")
    assert outer.get("pods", "burst-0")["metadata"]["uid"] == uid


def test_nothing_is_lost_while_the_sides_are_far_apart_and_slurmctld_is_away(
    hybrid: Hybrid,
) -> None:
    """S083: with 100 ms between the sides; the other cluster does not notice."""
    outer, inner = hybrid.outer, hybrid.inner
    workers, others = outer.uids("app.kubernetes.io/name=slurmd"), inner.uids()
    restarts = restarted(outer)
    with hybrid.ctl.delayed(100):
        login = ("exec", "deploy/login", "-c", "login", "--")
        assert ran(outer.kubectl(*login, "srun", *JOB, "hostname")) == ["burst-0", "metal-1"]
        hybrid.slurmctld.stop()
        began = time.monotonic()
        assert "refuses" in reported(outer, "PortUnreachable")
        inner.until_ready("controllers", manifests.NAME)
        eventually("it was away", lambda: time.monotonic() - began > OUTAGE_S, OUTAGE_S + 60)
        assert outer.uids("app.kubernetes.io/name=slurmd") == workers
        hybrid.slurmctld.start()
        reported(outer, "SlurmctldAnswers")
        idle(outer, "burst-0", "metal-1")
    assert outer.uids("app.kubernetes.io/name=slurmd") == workers
    assert restarted(outer) == restarts
    assert inner.uids() == others


def prepare(hybrid: Hybrid) -> None:
    """Files of the outside slurmctld, and a slurmrestd beside it."""
    conf = hybrid.slurmctld.conf("metal", *BURST)
    for host, owner in ((hybrid.ctl, SLURM_UID), (hybrid.rest, NOBODY)):
        write_files(host, owner, conf, {"metal-ctl": hybrid.ctl.address})
    hybrid.ctl.keys(SLURM_UID, jwt_key=JWT_KEY)
    security = "disable_unshare_files,disable_unshare_sysv"
    hybrid.rest.start(
        "/usr/sbin/slurmrestd",
        "-s",
        "openapi/slurmctld",
        "0.0.0.0:6820",
        user=NOBODY,
        env={"SLURM_JWT": "daemon", "SLURMRESTD_SECURITY": security},
    )
