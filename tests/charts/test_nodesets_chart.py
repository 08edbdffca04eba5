"""The chart `nodesets` renders the NodeSets that the original chart renders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.nodeset import NodeSet
from penstock.local.charts import CHARTS, rendered
from support.charts import FIXTURES, MONITORS, at, copy_with_notes, notes, put, rejection, render
from support.lossless import lost_fields

# Helm may have to be compiled first.
pytestmark = pytest.mark.timeout(1800)

CHART = "nodesets"
WRITTEN = FIXTURES.parent / "nebius" / "written-nodesets-5.0.yaml"
SMALL: Json = {"slurmd": {"resources": {"cpu": 1, "memory": "1Gi"}}}
OF_CHARTS = ("slurm-cluster", "nodesets", "soperator", "soperator-crds")
UNSTABLE = re.compile(
    r"\b(lookup|now|date|uuidv4|rand\w+|gen\w+|derivePassword|htpasswd|bcrypt|Release\.Is\w+)\b"
)
"""Functions and values of Helm whose result differs from one rendering to the next."""


def chart(given: Json, *, release: str = "ns") -> dict[str, Json]:
    return render(given, chart=CHART, release=release, namespace="ml", api_versions=MONITORS)


def node_sets(*entries: Json, **more: Any) -> list[Json]:
    found = chart({"clusterName": "c", "nodesets": list(entries), **more})
    return [one for one in found.values() if one["kind"] == "NodeSet"]


def error(*entries: Json, **more: Any) -> str:
    return rejection({"clusterName": "c", "nodesets": list(entries), **more}, chart=CHART)


def with_image(container: Json) -> Json:
    return {**container, "image": None}


def of_original() -> Json:
    """Values of which the original chart made the objects of the fixture."""
    munge: Json = {"resources": {"cpu": "100m", "memory": "128Mi", "ephemeralStorage": "1Gi"}}
    resources: Json = {"cpu": "1", "memory": "1Gi", "ephemeralStorage": "1Gi"}
    claim: Json = {
        "storageClassName": "standard",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    jail: Json = {"persistentVolumeClaim": {"claimName": "jail-pvc"}}
    cores = "Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1"
    common: Json = {
        "nodeSelector": {"nebius.com/node-group-id": "node-group-id-here"},
        "gpu": {"enabled": False},
        "munge": munge,
    }
    mounts = [
        {"name": "mem", "mountPath": "/mem", "volumeSource": {"emptyDir": {"medium": "Memory"}}}
    ]
    return {
        "clusterName": "soperator",
        "nodesets": [
            {
                **common,
                "name": "worker-cpu",
                "replicas": 2,
                "maxUnavailable": "20%",
                "nodeConfig": {"features": ["cpu"], "static": cores},
                "slurmd": {
                    "resources": resources,
                    "volumes": {
                        "spool": {"volumeClaimTemplateSpec": claim},
                        "jail": jail,
                        "jailSubMounts": mounts,
                        "sharedMemorySize": "64Mi",
                    },
                },
            },
            {
                **common,
                "name": "worker-eph",
                "replicas": 3,
                "updateStrategy": "slurmAwareRollingUpdate",
                "ephemeralNodes": True,
                "initialNumberEphemeralNodes": 1,
                "nodeConfig": {"static": cores},
                "slurmd": {
                    "resources": resources,
                    "volumes": {"spool": {"emptyDir": {}}, "jail": jail},
                },
            },
        ],
    }


def test_the_objects_equal_those_of_the_original_chart() -> None:
    wanted = {one["metadata"]["name"]: one for one in yaml.safe_load_all(WRITTEN.read_text())}
    found = [one for one in chart(of_original()).values() if one["kind"] == "NodeSet"]
    assert [one["metadata"]["name"] for one in found] == list(wanted)
    for one in found:
        spec, original = one["spec"], wanted[one["metadata"]["name"]]["spec"]
        for name in ("slurmd", "munge"):
            spec[name], original[name] = with_image(spec[name]), with_image(original[name])
        assert spec == original


def test_a_mapping_of_entries_means_the_same_as_a_list() -> None:
    first, second = {"replicas": 2, **SMALL}, {"replicas": 3, **SMALL}
    named = [{"name": "a", **first}, {"name": "b", **second}]
    assert chart({"clusterName": "c", "nodesets": {"a": first, "b": second}}) == chart(
        {"clusterName": "c", "nodesets": named}
    )


def test_a_count_of_zero_is_kept() -> None:
    """D61: the original made one worker of it."""
    assert node_sets({"name": "a", "replicas": 0, **SMALL})[0]["spec"]["replicas"] == 0
    assert node_sets({"name": "a", **SMALL})[0]["spec"]["replicas"] == 1


def test_two_amounts_are_a_node_set_and_the_kind_knows_every_field() -> None:
    """D46: the defaults fit any cluster."""
    (found,) = node_sets({"name": "a", **SMALL})
    assert lost_fields(found, msgspec.convert(found, NodeSet)) == []
    assert found["spec"]["slurmd"]["volumes"] == {
        "spool": {"emptyDir": {}},
        "jail": {"persistentVolumeClaim": {"claimName": "jail-pvc"}},
    }
    assert not {"affinity", "nodeSelector", "tolerations", "priorityClass"} & found["spec"].keys()


@pytest.mark.parametrize(
    ("amount", "wanted"), [(1073741824, "1073741824"), (0.5, "0.5"), ("1Gi", "1Gi")]
)
def test_an_amount_may_be_a_number_of_any_size(amount: float | str, wanted: str) -> None:
    """Helm reads numbers as floating point."""
    resources = {"cpu": 1, "memory": amount}
    (found,) = node_sets({"name": "a", "slurmd": {"resources": resources}})
    assert found["spec"]["slurmd"]["resources"] == {"cpu": "1", "memory": wanted}
    given = {"slurmNodes": {"controller": {"slurmctld": {"resources": resources}}}}
    cluster = render(given, chart="slurm-cluster")["SlurmCluster slurm1"]["spec"]
    slurmctld = cluster["slurmNodes"]["controller"]["slurmctld"]
    assert slurmctld["resources"]["memory"] == wanted


def test_the_cluster_may_be_in_the_annotation_of_versions_up_to_4_1() -> None:
    old = {"slurm.nebius.ai/parental-cluster-ref": "old"}
    (found,) = node_sets({"name": "a", "annotations": old, **SMALL}, clusterName="")
    assert found["spec"]["clusterName"] == "old"


def test_a_tag_belongs_to_the_repository_beside_it() -> None:
    images: Json = {"slurmd": {"repository": "r/own", "tag": "1"}}

    def image(**given: str) -> tuple[str, str | None]:
        entry = {"name": "a", "slurmd": {**SMALL["slurmd"], "image": given}}
        made = node_sets(entry, images=images)[0]["spec"]["slurmd"]["image"]
        return made["repository"], made.get("tag")

    assert image() == ("r/own", "1")
    assert image(tag="2") == ("r/own", "2")
    assert image(repository="r/other") == ("r/other", None)


def test_the_priority_class_of_the_original_is_made_where_a_node_set_names_it() -> None:
    usual = "soperator-worker-high-priority"

    def classes(**given: Any) -> set[str]:
        entry = {"name": "a", "priorityClass": usual, **SMALL}
        found = chart({"clusterName": "c", "nodesets": [entry], **given})
        return {one["metadata"]["name"] for one in found.values() if one["kind"] == "PriorityClass"}

    assert classes() == {usual}
    assert classes(priorityClasses=[]) == set()
    assert chart({"clusterName": "c", "nodesets": [{"name": "a", **SMALL}]}).keys() == {"NodeSet a"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"name": "a"}, "nodesets[0].slurmd.resources.cpu: write the CPUs"),
        (
            {"name": "a", "gpu": {"enabled": True}, **SMALL},
            "nodesets[0].slurmd.resources.gpu: write the GPUs of a worker",
        ),
        (
            {"name": "a", "slurmd": {"resources": {"cpu": 1, "memory": "1Gi", "gpu": 8}}},
            "it needs gpu.enabled: true",
        ),
        (
            {
                "name": "a",
                "slurmd": {
                    **SMALL["slurmd"],
                    "volumes": {"spool": {"volumeClaimTemplateSpec": {}}},
                },
            },
            "volumeClaimTemplateSpec.resources.requests.storage: write the size",
        ),
        (
            {
                "name": "a",
                "slurmd": {
                    **SMALL["slurmd"],
                    "volumes": {"jailSubMounts": [{"name": "x", "mountPath": "/x"}]},
                },
            },
            "jailSubMounts[0]: write exactly one of volumeSource and volumeClaimTemplateSpec",
        ),
        (
            {
                "name": "a",
                "slurmd": {**SMALL["slurmd"], "volumes": {"jail": {"volumeClaimTemplateSpec": {}}}},
            },
            "volumes.jail: write volumeClaimTemplateSpec if and only if jailMode is PerWorker",
        ),
        (
            {"name": "a", "sssd": {"enabled": True}, **SMALL},
            "images.sssd.repository: name an image",
        ),
        ({**SMALL}, "nodesets[0].name: name the NodeSet"),
        ({"name": "A", **SMALL}, "/nodesets/0/name"),
        ({"name": "a", "replica": 1, **SMALL}, "additional properties 'replica' not allowed"),
    ],
)
def test_a_fault_is_named_with_what_to_set(entry: Json, words: str) -> None:
    assert words in error(entry)


def test_faults_of_the_whole_release_are_named() -> None:
    entry = {"name": "a", **SMALL}
    assert "clusterName: name the SlurmCluster" in error(entry, clusterName="")
    assert 'nodesets[1].name: "a" is the name of another entry' in error(entry, entry)
    assert "set global.imageRegistry" in error(entry, **{"global": {}})


def test_the_notes_name_an_empty_list_of_node_sets(tmp_path: Any) -> None:
    copied = copy_with_notes(CHART, tmp_path)
    assert "it is empty, so the release has no workers" in notes(copied, {}, "ml")


@pytest.mark.parametrize("name", OF_CHARTS)
def test_no_template_is_unsafe_for_argo_cd(name: str) -> None:
    """Argo CD renders on each comparison, without the cluster, and runs hooks in its own way."""
    for path in sorted((CHARTS / name / "templates").iterdir()):
        text = path.read_text()
        actions = " ".join(re.findall(r"{{(.*?)}}", text, re.DOTALL))
        code = re.sub(r'"[^"]*"|/\*.*?\*/', "", actions, flags=re.DOTALL)
        assert (path.name, UNSTABLE.findall(code)) == (path.name, [])
        assert "helm.sh/hook" not in text


def test_two_renderings_are_the_same_bytes() -> None:
    given = {"global": {"imageRegistry": "r.example.com/p"}, **of_original()}
    assert rendered(CHART, "ns", "ml", given) == rendered(CHART, "ns", "ml", given)


def test_the_examples_of_the_page_render() -> None:
    page = (Path(__file__).parents[2] / "docs/platform/install.md").read_text()
    cluster, workers = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    assert "SlurmCluster correct-cpu-cluster" in render(cluster, chart="slurm-cluster")
    assert {"NodeSet small", "NodeSet gpu"} <= chart(workers).keys()


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("slurm-cluster", "slurmNodes.login.size", "SlurmCluster"),
        ("slurm-cluster", "slurmNodes.worker.size", "SlurmCluster"),
        ("slurm-cluster", "slurmNodes.rest.size", "SlurmCluster"),
        ("soperator", "controllerManager.replicas", "Deployment"),
        ("slurm-operator", "operator.replicas", "Deployment"),
    ],
)
def test_each_count_may_be_zero(name: str, path: str, kind: str) -> None:
    found = render(put({}, path.split("."), 0), chart=name, release="r")
    spec = next(one["spec"] for one in found.values() if one["kind"] == kind)
    where = path.split(".") if kind == "SlurmCluster" else ["replicas"]
    assert at(spec, where) == 0


@pytest.mark.parametrize("mode", ["Shared", "PerWorker", "None"])
def test_the_jail_follows_the_mode_of_the_cluster(mode: str) -> None:
    """S177."""
    given = {"clusterName": "c", "jailMode": mode, "nodesets": [{"name": "a", **SMALL}]}
    spec = next(one for one in chart(given).values() if one["kind"] == "NodeSet")["spec"]
    wanted = {"Shared": "persistentVolumeClaim", "PerWorker": "volumeClaimTemplateSpec"}
    found = spec["slurmd"]["volumes"].get("jail", {})
    assert list(found) == [one for key, one in wanted.items() if key == mode]
