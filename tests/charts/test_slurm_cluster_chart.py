"""The chart `slurm-cluster` renders the SlurmCluster that the original chart renders."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.registry import registry
from penstock.local import charts, images
from support.charts import FIXTURES, REGISTRY, at, copy_with_notes, notes, put, rejection, render
from support.lossless import lost_fields

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

CHART = "slurm-cluster"
VALUES = FIXTURES / CHART
OBJECTS = FIXTURES.parent / "nebius"
SHAPES = {"seed": "written-slurmcluster-1.23.yaml", "today": "written-slurmcluster-5.0.yaml"}
"""Objects of the original charts by the values that make them."""
WRONG = sorted((VALUES / "wrong").glob("*.yaml"))
TRUE = "true\n"
CHECKS = Path(__file__).parents[2] / "images/checks"


def values(name: str) -> Json:
    return yaml.safe_load((VALUES / f"{name}.yaml").read_text())


def chart(given: Json | None = None, release: str = "my-cluster") -> dict[str, Json]:
    return render(given, chart=CHART, release=release, namespace="ml")


def cluster(given: Json | None = None) -> Json:
    return next(one for one in chart(given).values() if one["kind"] == "SlurmCluster")


def without_own(node: Any) -> Any:
    """A spec without images and without commands of probes and sidecars: each chart has its own."""
    if isinstance(node, list):
        return [without_own(one) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    own = {"image", "exec", "args", "crVersion"}
    return {key: without_own(one) for key, one in cast("Json", node).items() if key not in own}


@pytest.mark.parametrize("name", SHAPES)
def test_the_object_equals_that_of_the_original_chart(name: str) -> None:
    wanted: Json = yaml.safe_load((OBJECTS / SHAPES[name]).read_text())
    if name == "seed":
        # 500 is 0764, so that jobs of users cannot run a script.
        wanted["spec"]["volumeSources"][0]["configMap"]["defaultMode"] = 0o755
        wanted["spec"]["slurmNodes"]["rest"]["rest"]["imagePullPolicy"] = "IfNotPresent"
    found = cluster(values(name))
    assert without_own(found["spec"]) == without_own(wanted["spec"])
    assert found["metadata"]["name"] == wanted["metadata"]["name"]


@pytest.mark.parametrize("given", [{}, values("seed"), values("today"), values("everything")])
def test_the_kind_knows_every_field(given: Json) -> None:
    found = cluster(given)
    assert lost_fields(found, msgspec.convert(found, SlurmCluster)) == []


def test_defaults_make_a_cluster_that_fits_any_kubernetes() -> None:
    """D46: a filter was missing, and labels and storage classes were of one cloud."""
    spec: Json = cluster()["spec"]
    names = {one["name"] for one in spec["k8sNodeFilters"]}
    used = {node["k8sNodeFilterName"] for node in spec["slurmNodes"].values()}
    used |= {spec["populateJail"]["k8sNodeFilterName"]}
    used |= {spec["sConfigController"]["node"]["k8sNodeFilterName"]}
    assert used <= names
    assert not any("affinity" in one or "nodeSelector" in one for one in spec["k8sNodeFilters"])
    spool = spec["slurmNodes"]["controller"]["volumes"]["spool"]["volumeClaimTemplateSpec"]
    assert "storageClassName" not in spool


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (["cpu"], {"login": "cpu", "sConfigController": "cpu", "populateJail": "cpu"}),
        (["a", "cpu"], {"login": "cpu", "sConfigController": "cpu", "populateJail": "cpu"}),
        (
            ["cpu", "no-gpu", "system", "gpu"],
            {"login": "no-gpu", "sConfigController": "system", "populateJail": "gpu"},
        ),
    ],
)
def test_a_component_without_a_filter_goes_where_the_controller_goes(
    filters: list[str], wanted: dict[str, str]
) -> None:
    """The seeds name a filter for controller, workers and logins only."""
    spec: Json = cluster(
        {
            "k8sNodeFilters": [{"name": one} for one in filters],
            "slurmNodes": {"controller": {"k8sNodeFilterName": "cpu"}},
        }
    )["spec"]
    found = {
        "login": spec["slurmNodes"]["login"]["k8sNodeFilterName"],
        "sConfigController": spec["sConfigController"]["node"]["k8sNodeFilterName"],
        "populateJail": spec["populateJail"]["k8sNodeFilterName"],
    }
    assert found == wanted


def test_the_paths_of_the_seeds_upgrade_work() -> None:
    """S122. Ten workers, and slurmctld with 2Gi by a path that no other chart has."""
    text = charts.helm(
        "template",
        "my-cluster",
        str(charts.CHARTS / CHART),
        *("--set", f"global.imageRegistry={REGISTRY}"),
        *("--set", "slurmNodes.worker.size=10"),
        *("--set", "slurmNodes.controller.resources.memory=2Gi"),
    )
    nodes: Json = next(o for o in charts.objects(text) if o["kind"] == "SlurmCluster")["spec"][
        "slurmNodes"
    ]
    assert nodes["worker"]["size"] == 10
    assert nodes["controller"]["slurmctld"]["resources"] == {
        "cpu": "1000m",
        "memory": "2Gi",
        "ephemeral-storage": "20Gi",
    }
    assert "resources" not in nodes["controller"]


def test_workers_can_be_scaled_to_none() -> None:
    """D61."""
    assert (
        cluster(put(values("seed"), ["slurmNodes", "worker", "size"], 0))["spec"]["slurmNodes"][
            "worker"
        ]["size"]
        == 0
    )


def test_images_are_of_one_registry_unless_named() -> None:
    spec: Json = cluster(
        {
            "global": {"imageRegistry": "r.example.com/p", "imageVersion": "7"},
            "images": {"munge": "m:1"},
        }
    )["spec"]
    controller = spec["slurmNodes"]["controller"]
    assert controller["slurmctld"]["image"] == "r.example.com/p/jail-slurmctld:26.05-7"
    assert controller["munge"]["image"] == "m:1"
    assert spec["populateJail"]["image"] == "r.example.com/p/populate-jail:26.05-7"


@pytest.mark.parametrize("name", SHAPES)
def test_each_image_has_the_name_under_which_it_is_pushed(name: str) -> None:
    prefix = "r.example.com/p"
    given = {**values(name), "global": {"imageRegistry": prefix}}
    for field in ("images", "sConfigController"):
        given.pop(field, None)
    found = set(re.findall(rf'"({prefix}/[^"]+)"', json.dumps(cluster(given))))
    assert {one.rpartition("/")[2].partition(":")[0] for one in found} >= {
        "operator",
        "populate-jail",
        "jail-slurmctld",
        "munge",
    }
    assert found <= set(images.names(prefix, jail=True))


@pytest.mark.parametrize(
    ("images", "more", "wanted"),
    [
        ({"populateJailTag": "1"}, {"cudaVersion": "12.9.0"}, "r/jail:1-cuda12.9.0"),
        ({"populateJailTag": "1"}, {}, "r/jail:1"),
        (
            {"populateJailTag": "1", "populateJailCudaVersions": {"13": "13.0.2"}},
            {"cudaMajorVersion": 13},
            "r/jail:1-cuda13.0.2",
        ),
        ({"populateJailTag": "1", "populateJail": "whole:2"}, {}, "whole:2"),
    ],
)
def test_the_jails_image_may_be_given_in_parts(images: Json, more: Json, wanted: str) -> None:
    given = {"images": {"populateJailRepository": "r/jail", **images}, **more}
    assert cluster(given)["spec"]["populateJail"]["image"] == wanted


def test_scripts_count_only_where_they_have_a_text() -> None:
    """A task prolog that is absent would fail every step."""
    given = values("today")
    bare: Json = cluster(put(given, ["slurmScripts"], {}))["spec"]
    assert "taskProlog" not in bare["slurmConfig"]
    assert bare["slurmConfig"]["prolog"] == "/opt/slurm_scripts/prolog.sh"
    assert bare["healthCheckConfig"]["healthCheckProgram"] == "/opt/slurm_scripts/hc_program.sh"
    mounts = bare["slurmNodes"]["login"]["volumes"]["customMounts"]
    assert [one["name"] for one in mounts] == ["slurm-scripts", "slurm-scripts-jail"]
    own = put(given, ["slurmConfig"], {"prolog": "/own/prolog", "epilog": None})
    assert cluster(put(own, ["slurmScripts"], {}))["spec"]["slurmConfig"]["prolog"] == "/own/prolog"
    check: Json = {"customContent": TRUE, "customConfig": {"name": "disk"}}
    scripts: Json = {
        "prolog.sh": TRUE,
        "builtIn": {"disk.sh": check},
        "extra": {"x.sh": {"content": TRUE, "config": '{"name": "x"}'}},
    }
    found = shipped(put(given, ["slurmScripts"], scripts))
    assert found["prolog.sh"] == TRUE
    assert set(found) - set(shipped(put(given, ["slurmScripts"], {}))) == {"disk.sh", "x.sh"}
    names = [one["name"] for one in json.loads(found["checks.json"])]
    assert names.index("disk") < names.index("drop_page_cache")
    assert names[-1] == "x"


def shipped(given: Json | None = None) -> dict[str, str]:
    """The scripts by name."""
    maps = (one for one in chart(given).values() if one["kind"] == "ConfigMap")
    return next(one["data"] for one in maps if "checks.json" in one["data"])


def test_the_shipped_checks_are_those_of_the_image() -> None:
    """S112, S116: a worker without the ConfigMap runs the same."""
    found = shipped()
    assert json.loads(found["checks.json"]) == json.loads((CHECKS / "checks.json").read_text())
    texts = {path.name: path.read_text() for path in (CHECKS / "scripts").iterdir()}
    assert "nvme_raid_health.sh" not in found
    del found["checks.json"], texts["nvme_raid_health.sh"]
    assert found == texts


def test_a_shipped_check_is_switched_or_replaced_by_its_name() -> None:
    own: Json = {
        "boot_disk_full.sh": {"enabled": False},
        "nvme_raid_health.sh": {"enabled": True},
        "drop_page_cache.sh": {"customContent": TRUE},
        "drop_posix_shmem.sh": {"customConfig": {"name": "mine"}},
    }
    found = shipped({"slurmScripts": {"builtIn": own}})
    names = [one["name"] for one in json.loads(found["checks.json"])]
    assert "boot_disk_full.sh" not in found
    assert {"boot_disk_full", "drop_posix_shmem"}.isdisjoint(names)
    assert {"nvme_raid_health", "drop_page_cache", "mine"} <= set(names)
    assert found["drop_page_cache.sh"] == TRUE


def test_volumes_that_the_chart_makes_stay_when_the_release_goes() -> None:
    found = chart(values("seed"))
    jail = found["PersistentVolumeClaim jail-pvc"]
    assert jail["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert jail["spec"]["accessModes"] == ["ReadWriteMany"]
    assert jail["spec"]["storageClassName"] == "standard"
    assert jail["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert set(found) >= {"PersistentVolumeClaim controller-spool-pvc"}
    assert "PersistentVolumeClaim jail-pvc" not in chart({})


def test_no_class_of_a_daemon_is_below_that_of_workers() -> None:
    """D54: the original's numbers let workers displace logins."""
    found = {
        name: one["value"]
        for name, one in chart(values("seed")).items()
        if one["kind"] == "PriorityClass"
    }
    prefix = "PriorityClass correct-cpu-cluster-slurm-"
    assert found[f"{prefix}worker"] == 1000000 == min(found.values())
    assert len(found) == len(set(found.values())) == 9
    older = chart({**values("seed"), "priorityClasses": {"values": {"login": 100002}}})
    assert older[f"{prefix}login"]["value"] == 100002
    none = chart({"priorityClasses": {"create": False}})
    assert "PriorityClass" not in {one["kind"] for one in none.values()}


def test_accounts_and_rights_have_the_names_of_the_original_chart() -> None:
    found = chart(values("today"))
    assert {name for name in found if name.startswith(("ServiceAccount", "Role"))} == {
        "ServiceAccount soperator-slurm-controller",
        "ServiceAccount soperator-sconfigcontroller",
        "ServiceAccount soperator-exporter-sa",
        "Role soperator-slurm-controller",
        "Role soperator-sconfigcontroller",
        "Role soperator-exporter-role",
        "RoleBinding soperator-slurm-controller",
        "RoleBinding soperator-sconfigcontroller",
        "RoleBinding soperator-exporter-role-binding",
    }
    for one in found.values():
        for rule in one.get("rules", ()):
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
    own = put(
        values("today"), ["sConfigController", "serviceAccount"], {"create": False, "name": "mine"}
    )
    found = chart(own)
    assert "ServiceAccount soperator-sconfigcontroller" not in found
    assert found["RoleBinding soperator-sconfigcontroller"]["subjects"][0]["name"] == "mine"
    assert cluster(own)["spec"]["sConfigController"]["serviceAccountName"] == "mine"


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_fault_is_named_with_its_path(path: Any) -> None:
    """One file for each fault; its first line has the words that Helm must print."""
    text = path.read_text()
    assert text.splitlines()[0].removeprefix("# ") in rejection(yaml.safe_load(text), chart=CHART)


def test_without_a_registry_no_image_is_guessed() -> None:
    assert "set global.imageRegistry" in rejection({"global": {}}, chart=CHART)


def test_notes_list_values_without_effect(tmp_path: Any) -> None:
    copied = copy_with_notes(CHART, tmp_path)
    assert "Without effect" not in notes(copied, values("today"), "ml")
    given = copy.deepcopy(values("today"))
    given["clusterType"] = "gpu"
    given["slurmNodes"]["exporter"] = {"munge": {"port": 1}}
    given["slurmScripts"] = {"builtIn": {"disk.sh": {"enabled": True}}}
    given["slurmConfig"] = {"taskProlog": "/opt/slurm_scripts/task_prolog.sh"}
    text = notes(copied, given, "ml")
    for words in (
        "clusterType: is of",
        "exporter.munge: is not read",
        "no task_prolog.sh",
        "builtIn.disk.sh: has no",
    ):
        assert words in text


def test_helm_lint_agrees() -> None:
    out = charts.helm(
        "lint",
        str(charts.CHARTS / CHART),
        "--set",
        f"global.imageRegistry={REGISTRY}",
        "-f",
        str(VALUES / "seed.yaml"),
    )
    assert "0 chart(s) failed" in out


def test_every_place_of_a_volume_is_checked() -> None:
    given = values("seed")
    for path in (
        ["login", "volumes", "jail"],
        ["worker", "volumes", "spool"],
        ["controller", "volumes", "jail"],
    ):
        wrong = put(given, ["slurmNodes", *path], {"volumeSourceName": "nowhere"})
        assert (
            f'slurmNodes.{".".join(path)}.volumeSourceName: volumeSources has no entry "nowhere"'
            in rejection(wrong, chart=CHART)
        )
    assert at(given, ["slurmNodes", "login", "volumes"]) is None


def test_the_type_of_authentication_is_a_value() -> None:
    """S163."""
    assert "authType" not in cluster(values("seed"))["spec"]
    found = cluster({**values("seed"), "authType": "auth/slurm"})
    assert found["spec"]["authType"] == "auth/slurm"


def test_the_interfaces_of_jobs_are_a_value() -> None:
    """S178."""
    assert "jobNetworkInterfaces" not in cluster(values("seed"))["spec"]
    found = cluster({**values("seed"), "jobNetworkInterfaces": ["eth0", "net1"]})
    assert found["spec"]["jobNetworkInterfaces"] == ["eth0", "net1"]
    assert list(registry().problems(msgspec.convert(found, SlurmCluster))) == []
    for wrong in ("eth0 x", "^lo", "a" * 16):
        given = {**values("seed"), "jobNetworkInterfaces": [wrong]}
        assert "jobNetworkInterfaces" in rejection(given, chart=CHART)


@pytest.mark.parametrize("mode", ["Shared", "PerWorker", "None"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_cluster_of_each_jail_mode_has_no_fault(name: str, mode: str) -> None:
    """S177."""
    given = {**values(name), "jailMode": mode}
    for node in ("login", "worker") if mode == "None" else ():
        # A user's own mounts of a jail are left for the API server to reject.
        if at(given, ["slurmNodes", node, "volumes"]) is not None:
            given = put(given, ["slurmNodes", node, "volumes", "jailSubMounts"], [])
    found = cluster(given)
    assert found["spec"]["jailMode"] == mode
    assert list(registry().problems(msgspec.convert(found, SlurmCluster))) == []


def test_the_root_of_a_worker_may_have_another_size() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}}
    given = put(
        {**values("seed"), "jailMode": "PerWorker"},
        ["slurmNodes", "worker", "volumes", "jail"],
        {"volumeClaimTemplateSpec": claim},
    )
    jail = cluster(given)["spec"]["slurmNodes"]["worker"]["volumes"]["jail"]
    assert jail == {"volumeClaimTemplateSpec": claim}
