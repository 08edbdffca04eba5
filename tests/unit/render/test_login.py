"""People of a directory: sssd beside slurmctld, ssh into workers, Secrets of Tokens."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.api.kubernetes.meta import ObjectMeta
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky.token import Token, TokenSpec
from penstock.render.parts.script import script
from penstock.render.slinky import token
from penstock.render.slinky.cluster import slurmctld as controller
from penstock.render.slinky.config.slurm_conf import slurm_conf
from penstock.render.slinky.nodeset import worker_pod as worker
from support.volume import Volume

SSSD = {"name": "directory", "key": "conf"}
PIPES = {"name": "sssd-pipes", "mountPath": "/var/lib/sss/pipes"}


def slurmctld_pod(bundle: Any) -> dict[str, Any]:
    found = [one for one in controller.objects(bundle.cluster) if one["kind"] == "StatefulSet"]
    return found[0]["spec"]["template"]["spec"]


def test_slurmctld_shares_sockets_with_an_sssd_that_has_roots_rights_without_it(load: Any):
    """D43: slurmctld itself stays as it is, without root's rights and without a password."""
    spec = slurmctld_pod(load("minimal", controller={"sssdConfRef": SSSD}))
    (slurmctld,) = spec["containers"]
    assert {**PIPES, "readOnly": True} in slurmctld["volumeMounts"]
    assert slurmctld["securityContext"]["runAsUser"] == 401
    assert "sssd-conf" not in str(slurmctld)
    sssd = next(one for one in spec["initContainers"] if one["name"] == "sssd")
    assert sssd["restartPolicy"] == "Always"
    assert sssd["image"] == "penstock/login"
    assert sssd["securityContext"]["runAsUser"] == 0
    assert sssd["securityContext"]["runAsNonRoot"] is False
    assert PIPES in sssd["volumeMounts"]
    volume = next(one for one in spec["volumes"] if one["name"] == "sssd-conf")
    (source,) = volume["projected"]["sources"]
    assert source["secret"] == {
        "name": "directory",
        "items": [{"key": "conf", "path": "sssd.conf", "mode": 0o600}],
        "optional": True,
    }


def test_without_a_reference_slurmctlds_pod_is_as_before(load: Any):
    assert "sss" not in str(slurmctld_pod(load("minimal")))


def test_a_worker_for_logins_has_what_upstreams_has(load: Any):
    """Feature row 52: names, keys, paths and modes of slurm-operator's."""
    ssh = {"enabled": True, "sssdConfRef": SSSD, "extraSshdConfig": "MaxAuthTries 3"}
    cluster = load("minimal", nodeset={"ssh": ssh}).cluster
    nodeset = cluster.nodesets[0]
    made = worker.pod(cluster, nodeset, 0, sssd_conf_hash="hash")
    (slurmd,) = made["spec"]["containers"]
    files = {one["mountPath"]: one for one in slurmd["volumeMounts"] if "subPath" in one}
    assert {path: one["subPath"] for path, one in files.items()} == {
        "/etc/ssh/sshd_config": "sshd_config",
        "/etc/sssd/sssd.conf": "sssd.conf",
    }
    assert all(one["readOnly"] for one in files.values())
    assert {"name": "ssh", "containerPort": 22, "protocol": "TCP"} in slurmd["ports"]
    modes = {
        one["name"]: one["projected"]["defaultMode"]
        for one in made["spec"]["volumes"]
        if one["name"] in ("ssh-config", "sssd-conf")
    }
    assert modes == {"ssh-config": 0o600, "sssd-conf": 0o600}
    assert made["metadata"]["annotations"]["slinky.slurm.net/sssd-conf-hash"] == "hash"
    assert made["metadata"]["annotations"]["slinky.slurm.net/sshd-conf-hash"]
    (config_map,) = worker.objects(nodeset)
    assert config_map["metadata"]["name"] == f"{nodeset.metadata.name}-ssh-config"
    lines = config_map["data"]["sshd_config"].splitlines()
    assert "AuthenticationMethods publickey password" in lines
    assert "MaxAuthTries 3" in lines


def test_another_sssd_conf_makes_no_new_revision_of_workers(load: Any):
    ssh = {"ssh": {"enabled": True, "sssdConfRef": SSSD}}
    nodeset = load("minimal", nodeset=ssh).cluster.nodesets[0]
    assert "hash" not in str(worker.revision(nodeset).data)


@pytest.mark.parametrize("identities", [False, True])
def test_slurm_conf_takes_identities_of_tokens_when_there_are_some(load: Any, identities: bool):
    cluster = replace(load("minimal").cluster, identities=identities)
    line = "AuthAltParameters=jwt_key=/etc/slurm/jwt.key"
    wanted = f"{line},use_jwt_client_ids" if identities else line
    assert wanted in slurm_conf(cluster).splitlines()


def test_the_secret_of_a_token_has_upstreams_names() -> None:
    meta = ObjectMeta(name="ci", namespace="hpc", uid="u")
    made = token.secret(Token(metadata=meta, spec=TokenSpec(username="alice")), "jwt")
    assert made["metadata"]["name"] == "ci-jwt-alice"
    assert made["data"] == {"SLURM_JWT": base64.b64encode(b"jwt").decode()}
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Token"
    ref = SecretKeySelector(name="mine", key="token")
    spec = TokenSpec(username="alice", secret_ref=ref, refresh=False)
    made = token.secret(Token(metadata=meta, spec=spec), "jwt")
    assert (made["metadata"]["name"], list(made["data"])) == ("mine", ["token"])
    assert made["immutable"] is True


# The script above sssd, run for real beside a stand-in.

STAND_IN = """#!/bin/sh
echo "start $(cat {own})" >>{calls}
[ ! -e {calls}.dies ] || exit 1
exec sleep 600
"""


class Sidecar:
    def __init__(self, root: Path) -> None:
        self.volume, self.calls = Volume(root / "given"), root / "calls"
        own, program = root / "sssd.conf", root / "sssd"
        self.own = own
        program.write_text(STAND_IN.format(own=own, calls=self.calls))
        program.chmod(0o755)
        text = script("sssd")
        for path, here in (
            ("/mnt/sssd", root / "given"),
            ("/etc/sssd/sssd.conf", own),
            ("/var/lib/sss/pipes", root / "pipes"),
            ("/usr/sbin/sssd", program),
        ):
            assert path in text
            text = text.replace(path, str(here))
        self.pipes = root / "pipes"
        self.pipes.mkdir()
        # As the kubelet makes it for a pod with an fsGroup.
        self.pipes.chmod(0o2777)
        self.process = subprocess.Popen(["sh", "-c", text], start_new_session=True)

    def started(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    made = Sidecar(tmp_path)
    yield made
    os.killpg(made.process.pid, signal.SIGKILL)
    made.process.wait()


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_sssd_waits_for_its_file_and_is_restarted_when_that_changes(sidecar: Sidecar) -> None:
    """S056: a corrected Secret is taken over without a restart of slurmctld."""
    sidecar.volume.show({"sssd.conf": "one"})
    until(lambda: sidecar.started() == ["start one"])
    assert sidecar.own.stat().st_mode & 0o777 == 0o600
    assert not sidecar.own.is_symlink()
    # sssd takes no folder that hands on another group than root's.
    assert sidecar.pipes.stat().st_mode & 0o7777 == 0o755
    assert (sidecar.pipes / "private").stat().st_mode & 0o7777 == 0o700
    sidecar.volume.show({"sssd.conf": "two"})
    until(lambda: sidecar.started() == ["start one", "start two"])
    sidecar.process.terminate()
    assert sidecar.process.wait(60) == 0


def test_an_sssd_that_ends_is_started_again(sidecar: Sidecar) -> None:
    dies = Path(f"{sidecar.calls}.dies")
    dies.touch()
    sidecar.volume.show({"sssd.conf": "one"})
    until(lambda: len(sidecar.started()) >= 2)
