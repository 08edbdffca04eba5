"""What the chart `slurm` renders of whole values files.

Covers S003, S005, S023, S030, S031, S043, S044, S050, S068, S072, S073, S078 and fixtures F16 to
F21 as far as the chart goes; D27, D33, D37, D40.
"""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.common import GROUP as NEBIUS
from penstock.api.registry import problems, registry
from penstock.local.charts import CHARTS, rendered
from penstock.local.errors import LocalError
from support.charts import EVERYTHING, FILES, render, values
from support.structural import faults, schemas

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

TYPES: dict[str, Any] = {
    info.resource.kind: info.type for info in registry().kinds if info.resource.group != NEBIUS
}
"""Kinds that the chart renders; NodeSet is a kind of another group as well."""
SCHEMAS = schemas()


@pytest.mark.parametrize("name", FILES)
def test_what_is_rendered_is_taken_by_the_api_server_and_by_the_operator(name: str) -> None:
    for key, one in render(values(name)).items():
        if (kind := one["kind"]) in TYPES:
            assert list(faults(one, SCHEMAS[kind])) == [], key
            assert problems(msgspec.convert(one, TYPES[kind])) == [], key


@pytest.mark.parametrize("name", FILES)
def test_the_same_values_give_the_same_bytes(name: str) -> None:
    """D33: nothing is drawn by lot, so Argo CD and Flux see no change where there is none."""
    assert rendered("slurm", "slurm", "slurm", values(name)) == rendered(
        "slurm", "slurm", "slurm", values(name)
    )


REJECTING = {"nfs-server/templates/server.yaml", "nfs-server/templates/volume.yaml"}
"""Templates that ask the cluster only to reject what it could never become: the objects that they
render are the same with and without an answer (`test_nfs_server_chart`)."""


def test_no_template_draws_lots_or_asks_the_cluster() -> None:
    """D33."""
    word = re.compile(r"\b(lookup|rand\w*|gen\w+|uuidv4|now|shuffle|htpasswd)\b")
    for path in CHARTS.rglob("*"):
        if path.suffix in (".tpl", ".yaml") and "templates" in path.parts:
            code = " ".join(
                re.findall(
                    r"\{\{.*?\}\}",
                    re.sub(r"\{\{/\*.*?\*/\}\}", "", path.read_text(), flags=re.DOTALL),
                )
            )
            found = set(word.findall(code))
            rejecting = path.relative_to(CHARTS).as_posix() in REJECTING
            assert found == ({"lookup"} if rejecting else set()), path


def test_another_version_of_the_chart_changes_no_spec(tmp_path: Path) -> None:
    """D37: only labels of the objects themselves name the version."""
    newer = tmp_path / "slurm"
    shutil.copytree(CHARTS / "slurm", newer)
    chart: Json = yaml.safe_load((newer / "Chart.yaml").read_text())
    (newer / "Chart.yaml").write_text(
        yaml.safe_dump({**chart, "version": "9.9.9", "appVersion": "99.11"})
    )
    given = values(EVERYTHING)
    before, after = render(given), render(given, chart=str(newer))
    assert before.keys() == after.keys()
    for name, one in before.items():
        was, now = dict(one), dict(after[name])
        labels = now.pop("metadata")["labels"] if one["kind"] in TYPES else None
        was.pop("metadata")
        now.pop("metadata", None)
        assert was == now, name
        if labels is not None:
            assert labels["helm.sh/chart"] == "slurm-9.9.9"
            assert labels["app.kubernetes.io/version"] == "99.11"
    assert "9.9.9" not in str([one.get("spec") for one in after.values()])


def test_a_smallest_file_is_a_controller_a_restapi_and_a_nodeset() -> None:
    """S003; the keys are made by the operator, not by the chart (D33, D40)."""
    found = render(values("s003-minimal.yaml"))
    assert set(found) == {"Controller slurm", "RestApi slurm", "NodeSet slurm-worker-compute"}
    assert "slurmKeyRef" not in found["Controller slurm"]["spec"]
    labels = found["Controller slurm"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "Helm"
    assert labels["app.kubernetes.io/part-of"] == "slurm"


def test_an_entry_of_nodesets_by_key() -> None:
    """S005: the key ends the object's name and begins the nodes' names."""
    spec = render(values("f16-map.yaml"))["NodeSet slurm-worker-compute"]["spec"]
    assert spec["slurmd"]["image"] == "registry.example.com/slurmd:25.05-ubuntu24.04"
    assert spec["slurmd"]["resources"] == {"requests": {"cpu": "1", "memory": "2Gi"}}
    assert spec["replicas"] == 3
    assert spec["partition"] == {"enabled": True}
    assert spec["template"]["spec"]["hostname"] == "compute-"


def test_lists_mean_the_same_as_mappings() -> None:
    """S043, S044, F17: an older chart's form, with image and rights at the entry."""
    assert render(values("f17-lists.yaml")) == render(values("f17-lists-as-maps.yaml"))


def test_nodesets_may_be_spelt_with_a_capital() -> None:
    """S023, F18."""
    given = values("f18-nodeSets.yaml")
    found = render(given)
    given["nodesets"] = given.pop("nodeSets")
    assert found == render(given)
    assert found["NodeSet slurm-worker-compute"]["spec"]["partition"]["config"] == "Default=YES"
    conf = found["Controller slurm"]["spec"]["extraConf"]
    assert conf.strip() == "PartitionName=debug Nodes=compute MaxTime=00:30:00"


def test_a_partition_of_the_values_spans_nodesets() -> None:
    """Feature row 26: it is a line of extraConf, after the user's own."""
    both: Json = {"enabled": True, "nodesets": ["b", "a"], "config": "MaxTime=5"}
    given: Json = {
        "controller": {"extraConf": "MinJobAge=2"},
        "nodesets": {"a": {}, "b": {}},
        "partitions": {"both": both},
    }
    conf = render(given)["Controller slurm"]["spec"]["extraConf"]
    assert conf.split("\n")[-1] == "PartitionName=both Nodes=a,b MaxTime=5"
    with pytest.raises(LocalError, match="c"):
        render({**given, "partitions": {"both": {**both, "nodesets": ["c"]}}})


def test_keys_of_both_spellings_are_the_same_references() -> None:
    """S068, S078: top-level references of the older chart; its login is there as well."""
    older, newer = render(values("f19-hybrid.yaml")), render(values("f19-newer-keys.yaml"))
    assert older == newer
    spec = older["Controller slurm"]["spec"]
    assert spec["slurmKeyRef"] == {"name": "external-auth-slurm", "key": "slurm.key"}
    assert spec["jwtKeyRef"] == {"name": "external-auth-jwths256", "key": "jwt_hs256.key"}
    assert "LoginSet slurm-login-slinky" in older
    assert older["NodeSet slurm-worker-slinky"]["spec"]["replicas"] == 5


def test_keys_at_the_top_as_the_page_on_hybrid_clusters_has_them() -> None:
    """S078: `jwtKeyRef` beside `slurmKeyRef` means the same, and wins over the older name."""
    older: Json = values("f19-hybrid.yaml")
    wanted = render(older)
    key = older.pop("jwtHs256KeyRef")
    assert render({**older, "jwtKeyRef": key}) == wanted
    other: Json = {"name": "x", "key": "y"}
    assert render({**older, "jwtHs256KeyRef": other, "jwtKeyRef": key}) == wanted


@pytest.mark.parametrize("kind", ["nodesets", "loginsets"])
def test_affinity_and_tolerations_of_an_entry_are_those_of_its_pods(kind: str) -> None:
    """F20: as slurm-operator's page on isolation has them."""
    wish: Json = {
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "tolerations": [{"key": "slinky.slurm.net/slurm", "operator": "Exists"}],
    }
    assert render({kind: {"a": wish}}) == render({kind: {"a": {"podSpec": wish}}})
    empty: Json = {"affinity": None, "tolerations": []}
    assert render({kind: {"a": empty}}) == render({kind: {"a": {}}})


def test_a_login_may_have_an_sssd_conf_of_its_own() -> None:
    """F20: `sssdConf` of older charts; the others go on with that of the chart."""
    found = render({"loginsets": {"a": {"sssdConf": "[sssd]\n"}, "b": {}}})
    secret = found["Secret slurm-login-a-sssd-conf"]
    assert base64.b64decode(secret["data"]["sssd.conf"]).decode() == "[sssd]\n"
    wanted = {"name": "slurm-login-a-sssd-conf", "key": "sssd.conf"}
    assert found["LoginSet slurm-login-a"]["spec"]["sssdConfRef"] == wanted
    assert found["LoginSet slurm-login-b"]["spec"]["sssdConfRef"]["name"] == "slurm-sssd-conf"
    assert "Secret slurm-sssd-conf" in found
    alone = render({"loginsets": {"a": {"sssdConf": "[sssd]\n"}}})
    assert "Secret slurm-sssd-conf" not in alone


def test_an_external_controller_keeps_what_the_file_has_of_it() -> None:
    """S073, D27: clusterName, partitions and files are not dropped, and a port may be left out."""
    found = render(values("f19-controller-external.yaml"))
    spec = found["Controller slurm"]["spec"]
    assert spec["externalConfig"] == {"host": "slurmctld.example.com"}
    assert spec["clusterName"] == "outside"
    assert spec["extraConf"].startswith("PartitionName=all Nodes=ALL")
    assert spec["configFileRefs"] == [{"name": "slurm-config-extra"}]
    assert found["ConfigMap slurm-config-extra"]["data"] == {"gres.conf": "AutoDetect=nvidia"}


def test_an_external_slurmdbd_needs_keys_that_both_know() -> None:
    """S072: they are named, so the operator waits for them instead of making its own."""
    found = render(values("f19-accounting-external.yaml"))
    spec = found["Accounting slurm"]["spec"]
    assert spec == {"external": True, "externalConfig": {"host": "slurmdbd.example.com"}}
    controller = found["Controller slurm"]["spec"]
    assert controller["accountingRef"] == {"name": "slurm"}
    assert controller["slurmKeyRef"] == {"name": "slurm-auth-slurm", "key": "slurm.key"}
    assert controller["jwtKeyRef"] == {"name": "slurm-auth-jwt", "key": "jwt.key"}


def test_a_munge_key_takes_the_place_of_slurm_key_in_controller_and_accounting() -> None:
    """S163."""
    given = {"mungeKey": {"secretRef": {"name": "site"}}, "accounting": {"enabled": True}}
    found = render(given)
    for name in ("Controller slurm", "Accounting slurm"):
        spec = found[name]["spec"]
        assert spec["mungeKeyRef"] == {"name": "site", "key": "munge.key"}
        assert "slurmKeyRef" not in spec


def test_pvcs_of_workers_are_values() -> None:
    """S050, F20: upstream's chart has no way to say them."""
    given = values("f20-enroot-cache.yaml")
    spec = render(given)["NodeSet slurm-worker-pyxis"]["spec"]
    assert spec["volumeClaimTemplates"] == given["nodesets"][0]["volumeClaimTemplates"]
    assert spec["slurmd"]["volumeMounts"] == given["nodesets"][0]["slurmd"]["volumeMounts"]


def test_everything_is_there_under_the_names_that_upstream_gives() -> None:
    """S031, F21, feature row 69."""
    found = render(values(EVERYTHING))
    assert set(found) == {
        "Accounting prod",
        "ConfigMap mine",
        "ConfigMap prod-config-a3mega",
        "ConfigMap prod-config-extra",
        "ConfigMap prod-epilog-dcgm",
        "ConfigMap prod-epilog-scripts",
        "ConfigMap prod-epilog-slurmctld-scripts",
        "ConfigMap prod-prolog-dcgm",
        "ConfigMap prod-prolog-scripts",
        "ConfigMap prod-prolog-slurmctld-scripts",
        "ConfigMap yours",
        "Controller prod",
        "LoginSet front",
        "NetworkPolicy prod-inside",
        "NetworkPolicy prod-metrics",
        "NetworkPolicy prod-operator",
        "NetworkPolicy prod-ssh",
        "NodeSet gpu",
        "NodeSet prod-worker-compute",
        "NodeSet prod-worker-mega",
        "NodeSet prod-worker-ultra",
        "PodDisruptionBudget prod-restapi",
        "PriorityClass slurm-high",
        "RestApi prod",
        "Secret front-sssd-conf",
    }
    spec = found["Controller prod"]["spec"]
    assert spec["prologScriptRefs"] == [
        {"name": "prod-prolog-dcgm"},
        {"name": "prod-prolog-scripts"},
        {"name": "my-prologs"},
    ]
    assert spec["epilogSlurmctldScriptRefs"] == [
        {"name": "prod-epilog-slurmctld-scripts"},
        {"name": "my-ctld-epilogs"},
    ]
    prolog = found["ConfigMap prod-prolog-scripts"]["data"]
    assert list(prolog) == ["prolog-00-a.sh"]
    assert list(found["ConfigMap prod-prolog-dcgm"]["data"]) == ["prolog-10-dcgm.sh"]
    namespaces = {one["metadata"].get("namespace", "batch") for one in found.values()}
    assert namespaces == {"batch", "slurm"}, "extraObjects say their own"
    assert found["ConfigMap yours"]["metadata"]["namespace"] == "slurm"
