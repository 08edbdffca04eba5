"""`penstock network` against a kubectl that knows one cluster: S080."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml
from typer.testing import CliRunner

from penstock.api.kubernetes.meta import Json
from penstock.cli.main import app

EXAMPLE = Path(__file__).parents[3] / "examples/slurmcluster-nodesets.yaml"
REF = {"controllerRef": {"name": "metal"}}


def obj(kind: str, name: str, spec: Json, **more: Json) -> Json:
    return {"kind": kind, "metadata": {"name": name, "namespace": "slurm"}, "spec": spec, **more}


def pod(name: str, role: str, instance: str, address: str, host: str = "") -> Json:
    labels = {"app.kubernetes.io/name": role, "app.kubernetes.io/instance": instance}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "podIP": address, "conditions": ready}
    found = obj("Pod", name, {"hostname": host or name}, status=status)
    found["metadata"]["labels"] = labels
    return found


OBJECTS = [
    obj("Controller", "metal", {"external": True, "externalConfig": {"host": "ctl.example.com"}}),
    obj("NodeSet", "burst", REF),
    obj("LoginSet", "login", REF),
    obj("RestApi", "rest", REF),
    pod("slurm-worker-burst-0", "slurmd", "burst", "10.1.0.4", host="burst-0"),
    pod("login-x", "login", "login", "10.1.0.5"),
    pod("rest-x", "slurmrestd", "rest", "10.1.0.6"),
]
KUBECTL = """#!/bin/sh
case "$*" in
  *cgroup.conf*) echo "IgnoreSystemd=yes" ;;
  *sinfo*) echo "burst-0 10.1.0.4 idle"; echo "metal-1 10.9.0.2 idle" ;;
  *exec*) shift; for one; do case "$one" in
      10.9.0.2:6818) echo "$one CLOSED" ;;
      *.*:68*) echo "$one open" ;;
    esac; done ;;
  *api-resources*slinky*) for one in controllers nodesets loginsets restapis tokens; do
      echo "$one.slinky.slurm.net"; done ;;
  *api-resources*nebius*) echo slurmclusters.slurm.nebius.ai; echo nodesets.slurm.nebius.ai ;;
  *all-namespaces*) echo "not allowed" >&2; exit 1 ;;
  *get*tokens*|*get*nodesets.slurm.nebius.ai*) echo "not asked for" >&2; exit 1 ;;
  *get*) cat "$(dirname "$0")/objects.json" ;;
esac
"""


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, closed: str, objects: list[Json] = OBJECTS
) -> tuple[int, str]:
    (folder / "objects.json").write_text(json.dumps({"items": objects}))
    (folder / "kubectl").write_text(KUBECTL.replace("CLOSED", closed))
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    done = CliRunner().invoke(app, ["network", "-n", "slurm"])
    return done.exit_code, done.output


def test_every_way_is_tried_from_the_pod_where_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = asked(tmp_path, monkeypatch, "open")
    assert code == 0, text
    rows = [line.split() for line in text.splitlines()]
    assert ["slurmd", "burst-0", "slurmctld", "(outside)", "ctl.example.com:6817", "yes"] in rows
    assert ["login", "login-x", "slurmd", "metal-1", "(outside)", "10.9.0.2:6818", "yes"] in rows
    assert "nc -vz -w 3 10.1.0.4 6818" in text
    told = "slurmctld (outside)  slurmd burst-0  10.1.0.4:6818  yes, slurmctld reports idle"
    assert told.split() in rows, "a pod of the chart is not called as its Slurm node"
    assert "IgnoreSystemd=yes" in text


def test_a_way_that_is_closed_is_reported_and_makes_the_command_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = asked(tmp_path, monkeypatch, "silent")
    assert code == 1, text
    assert "NO: no answer" in text


def test_without_kubectl_the_command_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["network"])
    assert done.exit_code == 1
    assert "kubectl is not installed" in done.output


def member(
    name: str,
    component: str,
    address: str,
    labels: Mapping[str, str] = MappingProxyType({}),
    port: int = 0,
) -> Json:
    """A pod of a SlurmCluster."""
    found = pod(name, "slurmcluster", "cpu", address)
    found["metadata"]["labels"] |= {"app.kubernetes.io/component": component, **labels}
    ports = [{"containerPort": port}] if port else []
    found["spec"]["containers"] = [{"name": "slurmd", "ports": ports}]
    return found


def test_daemons_of_a_slurm_cluster_are_tried_with_a_worker_of_each_nodeset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every: list[Json] = [*yaml.safe_load_all(EXAMPLE.read_text())]
    cluster = next(one for one in every if one["kind"] == "SlurmCluster")
    cluster["metadata"]["namespace"] = "slurm"
    cluster["spec"]["slurmNodes"]["controller"]["slurmctld"]["port"] = 7817
    nodeset = "slurm.nebius.ai/nodeset"
    objects = [
        cluster,
        member("controller-0", "controller", "10.1.0.1"),
        member("accounting-x", "accounting", "10.1.0.2"),
        member("rest-x", "rest", "10.1.0.3"),
        member("login-0", "login", "10.1.0.4"),
        *(
            member(f"{of}-{number}", "nodeset", address, {nodeset: of}, 6828)
            for of, number, address in (("a", 0, "10.1.0.5"), ("a", 1, "10.1.0.6"))
        ),
        member("b-0", "nodeset", "10.1.0.7", {nodeset: "b"}),
        member("other", "sconfigcontroller", "10.1.0.8"),
    ]
    code, text = asked(tmp_path, monkeypatch, "open", objects)
    rows = [line.split() for line in text.splitlines()]
    assert rows[0] == ["SlurmCluster", "cpu"]
    for row in (
        "slurmd a-0 slurmctld controller-0 cpu-controller-svc:7817",
        "slurmctld controller-0 slurmd a-0 10.1.0.5:6828",
        "login login-0 slurmd b-0 10.1.0.7:6818",
        "slurmctld controller-0 slurmdbd accounting-x cpu-accounting-svc:6819",
    ):
        assert any(found[: len(row.split())] == row.split() for found in rows), row
    assert "a-1" not in text
    assert "other" not in text
    assert code == 0, text
