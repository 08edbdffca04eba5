"""A real API server takes the definitions, the fixtures, and refuses what the rules refuse."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from api.kube_support import Kubectl, eventually
from penstock.api import crd
from penstock.api.penstock import backup, jail_upgrade, partition, restore
from penstock.api.slinky.group import GROUP
from penstock.local.node import Node

pytestmark = pytest.mark.api

ROOT = Path(__file__).parents[2]
FIXTURES = sorted((ROOT / "tests" / "fixtures" / "slinky").glob("*.yaml"))
OTHERS = sorted((ROOT / "tests" / "fixtures" / "kubernetes").glob("*.yaml"))
API_VERSION = "slinky.slurm.net/v1beta1"
NAMESPACE = "crd-schemas"
REF = {"controllerRef": {"name": "c"}}
KEY = {"name": "s", "key": "k"}
OTHER_KEY = {"name": "t", "key": "k"}


@pytest.fixture(scope="module")
def kubectl(api_node: Node) -> Iterator[Kubectl]:
    command = Kubectl(api_node)
    definitions = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [crd.definition(i) for i in GROUP.kinds],
    }
    command("apply", "--server-side", "-f", "-", manifest=definitions)
    names = [f"crd/{info.resource.plural}.{info.resource.group}" for info in GROUP.kinds]
    command("wait", "--for=condition=Established", "--timeout=30s", *names)
    for namespace in (NAMESPACE, "slurm"):
        command("apply", "-f", "-", manifest=namespace_manifest(namespace))
    yield command
    plurals = ",".join(info.resource.plural for info in GROUP.kinds)
    command("delete", plurals, "--all", "-n", NAMESPACE)


def namespace_manifest(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def make(kind: str, spec: dict[str, Any], name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


@pytest.mark.parametrize("info", GROUP.kinds, ids=lambda info: info.resource.kind)
def test_a_definition_is_accepted_as_it_stands(kubectl: Kubectl, info: crd.KindInfo):
    name = f"{info.resource.plural}.{info.resource.group}"
    live = json.loads(kubectl("get", "crd", name, "-o", "json"))
    states = {one["type"]: one["status"] for one in live["status"]["conditions"]}
    assert states["Established"] == "True"
    assert states["NamesAccepted"] == "True"
    assert states.get("NonStructuralSchema", "False") == "False"


@pytest.mark.parametrize("path", [*FIXTURES, *OTHERS], ids=lambda path: path.stem)
def test_a_fixture_is_accepted_whole(kubectl: Kubectl, path: Path):
    manifest = yaml.safe_load(path.read_text())
    made = kubectl("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", str(path))
    if "spec" in manifest:
        assert covers(json.loads(made)["spec"], manifest["spec"])


def covers(found: Any, wanted: Any) -> bool:
    """Whether the server kept all of it; it may have added defaults."""
    if isinstance(wanted, dict):
        fields = cast("dict[str, Any]", wanted)
        return all(key in found and covers(found[key], value) for key, value in fields.items())
    if isinstance(wanted, list):
        items = cast("list[Any]", wanted)
        return len(found) == len(items) and all(map(covers, found, items))
    return found == wanted


HA = "slurm high availability (HA) mode requires existing PVC with an access mode of ReadWriteMany"
NO_KEY = "slurmKeyRef or mungeKeyRef must be set when external is false"
TWO_KEYS = "slurmKeyRef is for auth/slurm and mungeKeyRef for munge: remove one of them"
NO_JWT = "jwtKeyRef or jwtHs256KeyRef must be set when external is false"
EXTERNAL = "externalConfig must be set when external is true"
SCHEDULED = (
    "scheduledUpdate.startTime and scheduledUpdate.duration must be set when type is "
    "ScheduledUpdate"
)
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Controller", {"external": True}, EXTERNAL),
    ("Controller", {"ha": {"enabled": True}}, HA),
    ("Controller", {"ha": {"enabled": True}, "persistence": {"existingClaim": ""}}, HA),
    ("Controller", {"template": {"spec": {"hostNetwork": True}}}, "hostNetwork is not offered"),
    ("Controller", {"clusterName": "x" * 41}, "may not be more than 40"),
    ("Controller", {"slurmctld": {"image": {"repository": "r"}}}, "image"),
    ("Controller", {"slurmctld": "slurmctld"}, "slurmctld"),
    ("NodeSet", {}, "controllerRef: Required value"),
    ("NodeSet", {"controllerRef": {}}, "controllerRef.name must not be empty"),
    ("NodeSet", {**REF, "scalingMode": "ReplicaSet"}, "Unsupported value"),
    ("NodeSet", {**REF, "replicas": -1}, "replicas"),
    ("NodeSet", {**REF, "extraConf": "Weight=1 Gres"}, "extraConf must be Key=Value words"),
    ("NodeSet", {**REF, "partition": {"config": "A=1\nB=2"}}, "partition.config"),
    ("NodeSet", {**REF, "template": {"spec": {"hostname": "A_b"}}}, "hostname"),
    (
        "NodeSet",
        {**REF, "ssh": {"enabled": True, "sssdConfRef": {"key": "k"}}},
        "sssdConfRef.name must not be empty when ssh is enabled",
    ),
    *(
        (
            "NodeSet",
            {**REF, "updateStrategy": {"rollingUpdate": {"maxUnavailable": most}}},
            "maxUnavailable must be a number of at least 1 or a percentage above 0%",
        )
        for most in (0, "0%", "some")
    ),
    ("NodeSet", {**REF, "updateStrategy": {"type": "ScheduledUpdate"}}, SCHEDULED),
    (
        "NodeSet",
        {**REF, "updateStrategy": {"scheduledUpdate": {"duration": "59s"}}},
        "scheduledUpdate.duration must be at least 1m",
    ),
    ("LoginSet", {"controllerRef": {"name": ""}}, "controllerRef.name must not be empty"),
    ("LoginSet", {**REF, "sssdConfRef": {"key": "k"}}, "sssdConfRef.name must not be empty"),
    ("RestApi", {"controllerRef": {}}, "controllerRef.name must not be empty"),
    ("Accounting", {"jwtKeyRef": KEY}, NO_KEY),
    ("Accounting", {"slurmKeyRef": KEY}, NO_JWT),
    ("Accounting", {"external": True}, EXTERNAL),
    ("Controller", {"slurmKeyRef": KEY, "mungeKeyRef": KEY}, TWO_KEYS),
    ("Accounting", {"slurmKeyRef": KEY, "mungeKeyRef": KEY, "jwtKeyRef": KEY}, TWO_KEYS),
    (
        "Accounting",
        {"slurmKeyRef": KEY, "jwtKeyRef": KEY, "template": {"spec": {"hostNetwork": True}}},
        "hostNetwork is not offered",
    ),
    ("Token", {"username": "u"}, "jwtKeyRef or jwtHs256KeyRef must be set"),
    ("Token", {"jwtKeyRef": KEY}, "username: Required value"),
    ("Token", {"username": "u", "jwtKeyRef": KEY, "lifetime": "long"}, "lifetime"),
]


@pytest.mark.parametrize(("kind", "spec", "words"), REFUSED)
def test_a_wrong_object_is_rejected_at_once(
    kubectl: Kubectl, kind: str, spec: dict[str, Any], words: str
):
    """S070, feature row 62."""
    done = kubectl.run("create", "--dry-run=server", "-f", "-", manifest=make(kind, spec, "wrong"))
    assert done.returncode != 0
    assert words in done.stderr


def claims(size: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": size}}}}]


ACCOUNTING = {"slurmKeyRef": KEY, "jwtKeyRef": KEY}
FIXED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("Controller", {"clusterName": "a"}, {"clusterName": "b"}, "clusterName is immutable"),
    ("Controller", {}, {"clusterName": "b"}, "clusterName is immutable"),
    (
        "Controller",
        {},
        {"persistence": {"enabled": False}},
        "persistence.enabled is immutable",
    ),
    (
        "Controller",
        {"persistence": {"existingClaim": "a"}},
        {"persistence": {"existingClaim": "b"}},
        "persistence.existingClaim is immutable while persistence is enabled",
    ),
    *(
        (kind, REF, {"controllerRef": {"name": "other"}}, "controllerRef is immutable")
        for kind in ("NodeSet", "LoginSet")
    ),
    (
        "NodeSet",
        {"controllerRef": {"name": "c", "namespace": NAMESPACE}},
        {"controllerRef": {"name": "c", "namespace": "other"}},
        "controllerRef is immutable",
    ),
    (
        "NodeSet",
        {**REF, "volumeClaimTemplates": claims("1Gi")},
        {"volumeClaimTemplates": claims("2Gi")},
        "volumeClaimTemplates is immutable",
    ),
    ("NodeSet", REF, {"volumeClaimTemplates": claims("1Gi")}, "volumeClaimTemplates is immutable"),
]


@pytest.mark.parametrize(("kind", "before", "change", "words"), FIXED)
def test_what_is_fixed_cannot_be_changed(
    kubectl: Kubectl, kind: str, before: dict[str, Any], change: dict[str, Any], words: str
):
    """Feature row 62."""
    done = changed(kubectl, kind, before, change)
    assert done.returncode != 0
    assert words in done.stderr


FREE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Controller", {}, {"clusterName": f"{NAMESPACE}_subject"}),
    ("Controller", {}, {"slurmKeyRef": {"name": "subject-auth-slurm", "key": "slurm.key"}}),
    ("Controller", {}, {"jwtKeyRef": {"name": "subject-auth-jwt", "key": "jwt.key"}}),
    ("Controller", {"jwtHs256KeyRef": KEY}, {"jwtKeyRef": KEY, "jwtHs256KeyRef": None}),
    ("Controller", {}, {"extraConf": "A=b", "persistence": {"enabled": True}}),
    (
        "Controller",
        {"persistence": {"enabled": False, "existingClaim": "a"}},
        {"persistence": {"existingClaim": "b"}},
    ),
    ("NodeSet", REF, {"controllerRef": {"namespace": NAMESPACE}}),
    ("NodeSet", REF, {"volumeClaimTemplates": []}),
    ("NodeSet", {**REF, "volumeClaimTemplates": claims("1Gi")}, {"replicas": 7}),
    ("RestApi", REF, {"controllerRef": {"name": "other"}}),
    ("Accounting", {"external": True, "externalConfig": {"host": "h"}}, {"jwtKeyRef": KEY}),
]


@pytest.mark.parametrize(("kind", "before", "change"), FREE)
def test_what_means_the_same_or_is_free_can_be_changed(
    kubectl: Kubectl, kind: str, before: dict[str, Any], change: dict[str, Any]
):
    done = changed(kubectl, kind, before, change)
    assert done.returncode == 0, done.stderr


def condition() -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "False",
        "reason": "ScalingOut",
        "message": "2 of 3 pods",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }


def told(type_: str, status: str) -> dict[str, Any]:
    """A status with one condition."""
    return {"conditions": [{**condition(), "type": type_, "status": status}]}


USED = told("ConfigApplied", "False")
WAITS, WORKS = told("Ready", "False"), told("Ready", "True")
OUTSIDE = {"external": True, "externalConfig": {"host": "h"}}
KEYS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    ("Controller", {"slurmKeyRef": KEY}, {"slurmKeyRef": OTHER_KEY}, USED, "slurmKeyRef"),
    ("Controller", {}, {"slurmKeyRef": KEY}, USED, "slurmKeyRef"),
    ("Controller", {"jwtKeyRef": KEY}, {"jwtKeyRef": OTHER_KEY}, USED, "jwtKeyRef"),
    ("Controller", {"jwtKeyRef": KEY}, {"jwtKeyRef": None}, USED, "jwtKeyRef"),
    ("Controller", {**OUTSIDE, "slurmKeyRef": KEY}, {"slurmKeyRef": OTHER_KEY}, WORKS, "slurm"),
    ("Accounting", ACCOUNTING, {"jwtKeyRef": OTHER_KEY}, WORKS, "jwtKeyRef"),
    ("Controller", {}, {"mungeKeyRef": KEY}, USED, "mungeKeyRef"),
    ("Controller", {"mungeKeyRef": KEY}, {"mungeKeyRef": OTHER_KEY}, USED, "mungeKeyRef"),
    ("Controller", {"mungeKeyRef": KEY}, {"mungeKeyRef": None}, USED, "mungeKeyRef"),
    (
        "Accounting",
        {"mungeKeyRef": KEY, "jwtKeyRef": KEY},
        {"mungeKeyRef": OTHER_KEY},
        WORKS,
        "mungeKeyRef",
    ),
    (
        "Token",
        {"username": "u", "jwtKeyRef": KEY},
        {"jwtKeyRef": OTHER_KEY},
        {"issuedAt": "2026-01-01T00:00:00Z"},
        "jwtKeyRef",
    ),
]


@pytest.mark.parametrize(("kind", "before", "change", "used", "field"), KEYS)
def test_a_reference_to_a_key_is_fixed_once_the_key_is_in_use(
    kubectl: Kubectl,
    kind: str,
    before: dict[str, Any],
    change: dict[str, Any],
    used: dict[str, Any],
    field: str,
):
    """Feature row 62: a wrong one is corrected in place as long as nothing worked with it."""
    for status in ({}, WAITS):
        done = changed(kubectl, kind, before, change, status)
        assert done.returncode == 0, done.stderr
    done = changed(kubectl, kind, before, change, used)
    assert done.returncode != 0
    assert field in done.stderr
    assert "is immutable" in done.stderr
    assert "put a new key into the same Secret instead" in done.stderr


def changed(
    kubectl: Kubectl,
    kind: str,
    before: dict[str, Any],
    change: dict[str, Any],
    status: dict[str, Any] | None = None,
) -> subprocess.CompletedProcess[str]:
    kubectl("create", "-f", "-", manifest=make(kind, before, "subject"))
    if status:
        given = json.dumps({"status": status})
        of = ("patch", kind.lower(), "subject", "-n", NAMESPACE, "--type=merge")
        kubectl(*of, "--subresource=status", "-p", given)
    patch = json.dumps({"spec": change})
    try:
        return kubectl.run(
            "patch", kind.lower(), "subject", "-n", NAMESPACE, "--type=merge", "-p", patch
        )
    finally:
        kubectl("delete", kind.lower(), "subject", "-n", NAMESPACE)


@pytest.mark.parametrize("text", ["{}", '{"inplaceReconfigure": false}'])
def test_the_server_does_not_decide_for_inplace_reconfigure(kubectl: Kubectl, text: str):
    """Feature row 5."""
    spec = json.loads(text)
    manifest = make("Controller", spec, "inplace")
    made = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", manifest=manifest)
    assert json.loads(made)["spec"].get("inplaceReconfigure") == spec.get("inplaceReconfigure")


def show(kubectl: Kubectl, name: str, *options: str) -> dict[str, str]:
    lines = kubectl("get", name, "shown", "-n", NAMESPACE, *options).splitlines()
    starts = [lines[0].index(word) for word in lines[0].split()]
    ends = [*starts[1:], None]
    cells = [lines[1][start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return dict(zip(lines[0].split(), cells, strict=True))


NODESET_STATUS = {
    "desired": 5,
    "replicas": 4,
    "updatedReplicas": 3,
    "readyReplicas": 2,
    "slurmIdle": 1,
    "slurmAllocated": 0,
    "slurmDown": 6,
    "slurmDrain": 7,
    "nodeSetHash": "h",
    "selector": "a=b",
    "conditions": [condition()],
}


async def test_the_kinds_are_listed_by_their_group(kubectl: Kubectl):
    """S001: in `kubectl api-resources`, a moment after the definitions are established."""

    def listed(group: str) -> set[tuple[str, str]]:
        lines = kubectl("api-resources", f"--api-group={group}", "--no-headers").splitlines()
        return {(row[-1], row[-3]) for row in (line.split() for line in lines)}

    own = (partition.INFO, backup.INFO, restore.INFO, jail_upgrade.INFO)
    for info in own:
        kubectl("apply", "--server-side", "-f", "-", manifest=crd.definition(info))
    ours = ("Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token")
    wanted = {(kind, API_VERSION) for kind in ours}
    async with asyncio.timeout(60):
        await eventually(lambda: listed("slinky.slurm.net") == wanted)
        other = {(info.resource.kind, "penstock.dev/v1alpha1") for info in own}
        await eventually(lambda: listed("penstock.dev") == other)


def test_a_nodeset_is_shown_by_each_name_with_its_columns(kubectl: Kubectl):
    """S002, S015, feature row 48."""
    kubectl("apply", "-f", "-", manifest=make("NodeSet", REF, "shown"))
    write_status(kubectl, "nodeset", NODESET_STATUS)
    wanted = {
        "DESIRED": "5",
        "REPLICAS": "4",
        "UPDATED": "3",
        "READY": "2",
        "REASON": "ScalingOut",
    }
    for name in ("nodeset", "nodesets", "nss", "slurmd"):
        row = show(kubectl, name)
        assert wanted.items() <= row.items()
        assert "IDLE" not in row
    wide = show(kubectl, "nodeset", "-o", "wide")
    assert {"IDLE": "1", "ALLOCATED": "0", "DOWN": "6", "DRAIN": "7"}.items() <= wide.items()
    assert list(wide)[-2:] == ["AGE", "REASON"]


@pytest.mark.parametrize(
    ("kind", "spec", "status", "names", "wanted"),
    [
        ("Controller", {}, {}, ["controller", "slurmctld"], {}),
        (
            "LoginSet",
            REF,
            {"replicas": 2, "selector": "a=b"},
            ["loginset", "loginsets", "lss", "sackd"],
            {"REPLICAS": "2"},
        ),
        ("RestApi", REF, {}, ["restapi", "slurmrestd"], {}),
        ("Accounting", ACCOUNTING, {}, ["accounting", "slurmdbd"], {}),
        (
            "Token",
            {"username": "alice", "jwtKeyRef": KEY},
            {},
            ["token", "tokens", "jwt"],
            {"USER": "alice"},
        ),
    ],
)
def test_a_kind_is_shown_with_ready_and_reason_last(
    kubectl: Kubectl,
    kind: str,
    spec: dict[str, Any],
    status: dict[str, Any],
    names: list[str],
    wanted: dict[str, str],
):
    kubectl("apply", "-f", "-", manifest=make(kind, spec, "shown"))
    write_status(kubectl, names[0], {**status, "conditions": [condition()]})
    for name in names:
        row = show(kubectl, name)
        assert {**wanted, "READY": "False", "REASON": "ScalingOut"}.items() <= row.items()
        assert list(row)[-3:] == ["AGE", "READY", "REASON"]


def write_status(kubectl: Kubectl, name: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    arguments = ("--subresource=status", "--type=merge", "-p", patch)
    kubectl("patch", name, "shown", "-n", NAMESPACE, *arguments)


@pytest.mark.parametrize("kind", ["NodeSet", "LoginSet"])
def test_kubectl_scales(kubectl: Kubectl, kind: str):
    """S012, feature rows 18 and 59."""
    kubectl("apply", "-f", "-", manifest=make(kind, REF, "scaled"))
    kubectl("scale", f"{kind.lower()}/scaled", "--replicas=0", "-n", NAMESPACE)
    name = (kind.lower(), "scaled", "-n", NAMESPACE)
    status = {"replicas": 3, "selector": "a=b", "nodeSetHash": "h"}
    patch = json.dumps({"status": status})
    kubectl("patch", *name, "--subresource=status", "--type=merge", "-p", patch)
    scale = json.loads(kubectl("get", *name, "--subresource=scale", "-o", "json"))
    assert scale["spec"] == {} or scale["spec"]["replicas"] == 0
    assert scale["status"] == {"replicas": 3, "selector": "a=b"}


@pytest.mark.parametrize("field", ["nodeSetHash", "selector"])
def test_a_nodesets_status_must_have_hash_and_selector(kubectl: Kubectl, field: str):
    kubectl("apply", "-f", "-", manifest=make("NodeSet", REF, "partial"))
    status = {key: value for key, value in NODESET_STATUS.items() if key != field}
    patch = json.dumps({"status": {**status, field: None}})
    arguments = ("--subresource=status", "--type=merge", "-p", patch)
    done = kubectl.run("patch", "nodeset", "partial", "-n", NAMESPACE, *arguments)
    assert f"status.{field}: Required value" in done.stderr
