"""A real API server with the definitions of both groups: objects, words, columns, names."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from api.kube_support import Kubectl
from penstock.api import crd
from penstock.api.nebius.group import GROUPS
from penstock.api.slinky.group import GROUP as SLINKY
from penstock.local.node import Node
from support import nebius
from support.charts import REGISTRY, render
from support.nebius_clusters import OLDER_WITHOUT_JAIL

pytestmark = pytest.mark.api

INFOS = [info for group in GROUPS for info in group.kinds]
GLOBAL: dict[str, Any] = {"global": {"imageRegistry": REGISTRY}}
SPACES = ("soperator", "correct-cpu-cluster", "slurm")
OLDER, CURRENT, NODES = "slurmcluster-1.23-0", "slurmcluster-5.0-0", "nodesets-5.0-0"


@pytest.fixture(scope="module")
def kubectl(api_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    command = Kubectl(api_node)
    infos = [*SLINKY.kinds, *INFOS]
    items = [crd.definition(info) for info in infos]
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    # Other tests of the same API server applied some of them under other field managers.
    command("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=whole)
    names = [f"crd/{info.resource.plural}.{info.resource.group}" for info in infos]
    command("wait", "--for=condition=Established", "--timeout=30s", *names)
    for space in SPACES:
        command(
            "apply",
            "-f",
            "-",
            manifest={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}},
        )
    yield command
    full = ",".join(f"{info.resource.plural}.{info.resource.group}" for info in INFOS)
    for space in SPACES:
        command("delete", full, "--all", "-n", space)


def create(kubectl: Kubectl, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as the API server would store it; fields that it drops are an error."""
    text = kubectl(
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-o",
        "json",
        "-f",
        "-",
        manifest=manifest,
    )
    return json.loads(text)


def differences(found: Any, wanted: Any, path: str = "") -> Iterator[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        ours, theirs = cast("dict[str, Any]", found), cast("dict[str, Any]", wanted)
        for key in sorted({*ours, *theirs}):
            if key not in ours or key not in theirs:
                yield f"{'-' if key not in ours else '+'}{path}.{key}"
            else:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(found, list) and isinstance(wanted, list):
        mine, others = cast("list[Any]", found), cast("list[Any]", wanted)
        if len(mine) != len(others):
            yield f"{path}: {len(mine)} items, expected {len(others)}"
        for index, (one, other) in enumerate(zip(mine, others, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif found != wanted:
        yield f"{path}: {found!r}, expected {wanted!r}"


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.resource.kind)
def test_a_definition_is_accepted_as_it_stands(kubectl: Kubectl, info: crd.KindInfo):
    name = f"{info.resource.plural}.{info.resource.group}"
    live = json.loads(kubectl("get", "crd", name, "-o", "json"))
    states = {one["type"]: one["status"] for one in live["status"]["conditions"]}
    assert (states["Established"], states["NamesAccepted"]) == ("True", "True")
    assert states.get("NonStructuralSchema", "False") == "False"


STORED = [name for name in nebius.names() if not name.startswith(("written", "active", "nodeconf"))]


@pytest.mark.parametrize("name", STORED)
def test_an_object_of_a_real_cluster_is_read_back_as_it_was_stored(kubectl: Kubectl, name: str):
    manifest = nebius.manifest(name)
    assert list(differences(create(kubectl, manifest)["spec"], manifest["spec"])) == []


@pytest.mark.parametrize("name", ["activechecks-5.0-0", "nodeconfigurator-5.0-0"])
def test_an_object_of_a_chart_is_accepted_whole(kubectl: Kubectl, name: str):
    manifest = nebius.manifest(name)
    lost = differences(create(kubectl, manifest)["spec"], manifest["spec"])
    assert [one for one in lost if not one.startswith("+")] == []


CHART_VALUES = Path(__file__).parents[1] / "fixtures" / "charts"


@pytest.mark.timeout(1800)  # Helm may have to be compiled first
@pytest.mark.parametrize(
    ("chart", "name"),
    [
        *(("slurm-cluster", name) for name in ("seed", "today", "everything")),
        ("nodesets", "everything"),
    ],
)
def test_each_object_of_our_charts_is_accepted_whole(kubectl: Kubectl, chart: str, name: str):
    """No field of it is unknown to its kind, and nothing that a schema or rule rejects."""
    given = yaml.safe_load((CHART_VALUES / chart / f"{name}.yaml").read_text())
    found = render({**GLOBAL, **given}, chart=chart, release="r", namespace="soperator")
    assert {"SlurmCluster", "NodeSet"} & {one["kind"] for one in found.values()}
    for manifest in found.values():
        create(kubectl, manifest)


@pytest.mark.parametrize(
    ("written", "stored", "expected"),
    [
        ("written-slurmcluster-1.23-0", OLDER, []),
        (
            "written-slurmcluster-5.0-0",
            CURRENT,
            ["-.cgroupVersion", "-.slurmConfig.resumeTimeout", "-.slurmConfig.suspendTime"],
        ),
        # The claim template of the chart is stored here, and was dropped there.
        ("written-nodesets-5.0-0", NODES, ["+.slurmd.volumes.spool.volumeClaimTemplateSpec"]),
        ("written-nodesets-5.0-1", "nodesets-5.0-1", []),
    ],
)
def test_an_object_of_a_chart_gets_the_defaults_of_its_version(
    kubectl: Kubectl, written: str, stored: str, expected: list[str]
):
    """S084: a default of one version is the operator's, so that objects of others lack it."""
    found = create(kubectl, nebius.manifest(written))["spec"]
    assert list(differences(found, nebius.manifest(stored)["spec"])) == expected


@pytest.mark.parametrize(
    ("name", "field"),
    [(OLDER, "spec.slurmNodes.worker.maxUnavailable"), (NODES, "spec.maxUnavailable")],
)
def test_a_budget_is_stored_as_a_number_or_a_percentage(kubectl: Kubectl, name: str, field: str):
    """S121."""
    for value in (3, "20%"):
        found: Any = create(kubectl, nebius.manifest(name, {field: value}))
        for key in field.split("."):
            found = found[key]
        assert found == value


REJECTED: list[tuple[str, dict[str, Any], str]] = [
    (CURRENT, {"spec.k8sNodeFilters": []}, "should have at least 1 items"),
    (CURRENT, {"spec.populateJail": nebius.ABSENT}, "spec.populateJail: Required value"),
    (CURRENT, {"spec.maintenance": "off"}, "Unsupported value"),
    (CURRENT, {"spec.partitionConfiguration.partitions": []}, "requires at least one partition"),
    (
        CURRENT,
        {"spec.partitionConfiguration": {"configType": "structured"}},
        "requires at least one partition",
    ),
    (
        CURRENT,
        {"spec.sConfigController.reconfigureWaitTimeout": "20s"},
        "ReconfigureWaitTimeout must be greater than ReconfigurePollInterval",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.login.userIsolation": {"memoryHigh": "2Gi", "memoryMax": "1Gi"}},
        "memoryHigh must not exceed memoryMax",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.login.userIsolation": {"memoryHigh": 2, "memoryMax": 1}},
        "memoryHigh must not exceed memoryMax",
    ),
    (
        CURRENT,
        {"spec.slurmNodes.exporter.accountingJobsLookback": "0s"},
        "accountingJobsLookback must be greater than zero",
    ),
    (
        OLDER,
        {
            "spec.partitionConfiguration": {
                "configType": "structured",
                "partitions": [{"name": "a", "isAll": True}, {"name": "p", "nodeSetRefs": ["a"]}],
            }
        },
        "Worker size must be zero when NodeSetRefs are used in partition configuration",
    ),
    (
        OLDER,
        {
            "spec.telemetry": {
                "jobsTelemetry": {"otelCollectorGrpcHost": "a", "otelCollectorHttpHost": "b"}
            }
        },
        "cannot be set at the same time",
    ),
    *(
        (NODES, {"spec.maxUnavailable": most}, "maxUnavailable must resolve to no more than 500")
        for most in (0, 501, "0%", "some")
    ),
    *(
        (CURRENT, {"spec.jobNetworkInterfaces": [name]}, "write a letter, then at most 14 letters")
        for name in ("eth0 x=y", "a\nb x.so", "eth0,eth1", "^lo", "0eth", "")
    ),
    (CURRENT, {"spec.jobNetworkInterfaces": ["a" * 16]}, "may not be more than 15"),
    (CURRENT, {"spec.jobNetworkInterfaces": ["a", "a"]}, "spec.jobNetworkInterfaces[1]: Duplicate"),
    (NODES, {"spec.replicas": 5000}, "maxUnavailable must resolve to no more than 500"),
    (NODES, {"spec.updateStrategy": "onDelete"}, "Unsupported value"),
    ("jailedconfigs-0", {"spec": nebius.ABSENT}, "spec: Required value"),
    ("nodesetpowerstates-5.0-0", {"spec.nodeSetRef": ""}, "spec.nodeSetRef"),
    ("activechecks-5.0-0", {"spec.checkType": "job"}, "Unsupported value"),
]


@pytest.mark.parametrize(("name", "changes", "words"), REJECTED)
def test_a_wrong_object_is_rejected_at_once(
    kubectl: Kubectl, name: str, changes: dict[str, Any], words: str
):
    manifest = nebius.manifest(name, changes)
    done = kubectl.run("create", "--dry-run=server", "-f", "-", manifest=manifest)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (CURRENT, {"spec": nebius.ABSENT}),
        (NODES, {"spec.replicas": 0}),
        (OLDER, {"spec.slurmNodes.worker.size": 0}),
        (OLDER, {"spec.slurmNodes.accounting.mariadbOperator.replication.syncBinlog": True}),
        (CURRENT, {"spec.slurmNodes.accounting.mariadbOperator.replication.syncBinlog": 1}),
        (
            OLDER,
            {
                "spec.slurmNodes.controller.size": 1,
                "spec.periodicChecks": {
                    "ncclBenchmark": {"image": "i", "k8sNodeFilterName": "cpu"}
                },
            },
        ),
    ],
)
def test_an_object_that_some_version_took_is_accepted(
    kubectl: Kubectl, name: str, changes: dict[str, Any]
):
    create(kubectl, nebius.manifest(name, changes))


@pytest.mark.parametrize(
    ("before", "after"), [(None, "None"), (None, "PerWorker"), ("None", None), ("None", "Shared")]
)
def test_the_mode_of_a_jail_cannot_change(kubectl: Kubectl, before: str | None, after: str | None):
    """S177: and a cluster without a jail has no field about one."""
    name, space = f"mode-{secrets.token_hex(2)}", "correct-cpu-cluster"
    changes = {} if before is None else OLDER_WITHOUT_JAIL
    manifest = nebius.manifest(OLDER, {**changes, "metadata": {"name": name, "namespace": space}})
    kubectl("apply", "--validate=strict", "-f", "-", manifest=manifest)
    body = json.dumps({"spec": {"jailMode": after}})
    words = ("patch", "slurmcluster", name, "-n", space, "--type=merge", "-p")
    done = kubectl.run(*words, body)
    assert done.returncode != 0
    assert "spec.jailMode cannot change" in done.stderr
    kubectl(*words, json.dumps({"spec": {"jailMode": before or "Shared"}}))
    kubectl("delete", "slurmcluster", name, "-n", space, "--wait=false")


@pytest.mark.parametrize(("before", "after"), [(None, "auth/slurm"), ("auth/slurm", None)])
def test_the_type_of_authentication_cannot_change(
    kubectl: Kubectl, before: str | None, after: str | None
):
    """S163: daemons and jobs of both types do not understand each other."""
    name, space = f"auth-{secrets.token_hex(2)}", "correct-cpu-cluster"
    changes = {} if before is None else {"spec.authType": before}
    manifest = nebius.manifest(OLDER, {**changes, "metadata": {"name": name, "namespace": space}})
    kubectl("apply", "--validate=strict", "-f", "-", manifest=manifest)
    words = ("patch", "slurmcluster", name, "-n", space, "--type=merge", "-p")
    done = kubectl.run(*words, json.dumps({"spec": {"authType": after}}))
    assert done.returncode != 0
    assert "spec.authType cannot change" in done.stderr
    assert "create another SlurmCluster" in done.stderr
    kubectl(*words, json.dumps({"spec": {"authType": before or "auth/munge"}}))
    kubectl("delete", "slurmcluster", name, "-n", space, "--wait=false")


def test_an_unknown_field_is_dropped(kubectl: Kubectl):
    manifest = nebius.manifest(CURRENT, {"spec.slurmConfig.new": 1, "spec.volumeSources.0.new": {}})
    arguments = ("create", "--dry-run=server", "--validate=ignore", "-o", "json", "-f", "-")
    found = json.loads(kubectl(*arguments, manifest=manifest))["spec"]
    assert list(differences(found, nebius.manifest(CURRENT)["spec"])) == []


def write(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """Store an object with its status."""
    manifest = nebius.manifest(name)
    kubectl("apply", "-f", "-", manifest=manifest)
    full, meta = f"{manifest['kind'].lower()}.slurm.nebius.ai", manifest["metadata"]
    patch = json.dumps({"status": manifest.get("status", {})})
    of = (full, meta["name"], "-n", meta["namespace"])
    kubectl("patch", *of, "--subresource=status", "--type=merge", "-p", patch)
    return manifest


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        (
            OLDER,
            {
                "STATUS": "Available",
                "CONTROLLERS": "True",
                "WORKERS": "2",
                "LOGIN": "1",
                "SCONFIGCTRL": "True",
                "ACCOUNTING": "True",
            },
        ),
        (CURRENT, {"STATUS": "Available", "WORKERS": "<none>", "LOGIN": "2"}),
        (NODES, {"STATUS": "Ready", "DESIRED": "2", "READY": "2", "EPHEMERAL": "false"}),
        ("nodesetpowerstates-5.0-0", {"NODESET": "worker-eph", "ACTIVE": "1", "READY": "True"}),
    ],
)
def test_an_object_is_shown_with_its_columns(kubectl: Kubectl, name: str, columns: dict[str, str]):
    """S135."""
    manifest = write(kubectl, name)
    meta = manifest["metadata"]
    full = f"{manifest['kind'].lower()}.slurm.nebius.ai"
    head, row = kubectl("get", full, meta["name"], "-n", meta["namespace"]).splitlines()
    titles = list(re.finditer(r"\S+(?: \S+)*", head))
    ends = [*(one.start() for one in titles[1:]), None]
    found = {
        one.group(): row[one.start() : end].strip() or "<none>"
        for one, end in zip(titles, ends, strict=True)
    }
    assert {key: found[key] for key in columns} == columns


def test_kubectl_scales_a_node_set_and_autoscalers_find_its_pods(kubectl: Kubectl):
    """D60."""
    meta = write(kubectl, NODES)["metadata"]
    of = ("nodesets.slurm.nebius.ai", meta["name"], "-n", meta["namespace"])
    kubectl("scale", *of, "--replicas=0")
    patch = json.dumps({"status": {"labelSelector": "a=b"}})
    kubectl("patch", *of, "--subresource=status", "--type=merge", "-p", patch)
    scale = json.loads(kubectl("get", *of, "--subresource=scale", "-o", "json"))
    assert scale["spec"].get("replicas", 0) == 0
    assert scale["status"] == {"replicas": 2, "selector": "a=b"}


def test_a_status_is_no_new_generation(kubectl: Kubectl):
    """NodeConfigurator has a status subresource for this; the original has none."""
    meta = write(kubectl, "nodeconfigurator-5.0-0")["metadata"]
    of = ("nodeconfigurators.slurm.nebius.ai", meta["name"], "-n", meta["namespace"])
    patch = json.dumps({"status": {"observedGeneration": 1}})
    kubectl("patch", *of, "--subresource=status", "--type=merge", "-p", patch)
    live = json.loads(kubectl("get", *of, "-o", "json"))
    assert (live["metadata"]["generation"], live["status"]["observedGeneration"]) == (1, 1)


def test_kubectl_explains_a_field(kubectl: Kubectl):
    text = kubectl("explain", "slurmcluster.spec.slurmNodes.worker.maxUnavailable")
    assert "GROUP:      slurm.nebius.ai" in text
    assert "a number or a percentage" in text


@pytest.mark.parametrize("word", ["nodeset", "nodesets", "NodeSet", "nss"])
def test_the_bare_word_reaches_the_node_set_of_slinky(kubectl: Kubectl, word: str, tmp_path: Path):
    """Discovery lists groups of one priority by name, and kubectl takes the first."""
    write(kubectl, NODES)
    cache = f"--cache-dir={tmp_path}"
    assert "GROUP:      slinky.slurm.net" in kubectl("explain", word, cache)
    found = kubectl("get", word, "-n", "soperator", "-o", "name", cache)
    assert "nebius" not in found
    full = kubectl("get", "nodesets.slurm.nebius.ai", "-n", "soperator", "-o", "name", cache)
    assert "nodeset.slurm.nebius.ai/worker-cpu" in full.splitlines()
