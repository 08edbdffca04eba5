"""Every key of the schema is a key of values.yaml and lands in an object.

Covers F21, S033 (every documented key passes) and D6 (false and 0 are values).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.api.kubernetes.meta import Json
from penstock.local.errors import LocalError
from support.charts import (
    EVERYTHING,
    Leaf,
    another,
    at,
    defaults,
    leaves,
    lint,
    put,
    render,
    schema,
    text,
    values,
)

# The first test that needs Helm compiles it, on a machine where everything else compiles as well.
pytestmark = pytest.mark.timeout(1800)

WITHOUT_EFFECT = {
    "asciiArt": "in the notes only",
    "optional": "what is named must be there",
    "annotations of slurmKey": "the operator makes the Secret; NOTES say so",
    "annotations of jwtKey": "the operator makes the Secret; NOTES say so",
    "taintKubeNodes": "nothing is tainted; NOTES say so",
    "useResourceLimits": "limits always count, and false is refused",
    "name": "the key of the list form, tests/charts/test_rendering.py",
    "hostname": "always `<key>-`, another is refused, tests/charts/test_refused.py",
}
"""Values of the chart `slurm` that change no object."""
SEPARATE = ("nodesets", "nodeSets", "loginsets", "loginSets")
"""Their entries have the values of the defaults; the forms are in test_rendering.py."""
ALIASES = ("image", "imagePullPolicy", "resources", "securityContext", "affinity", "tolerations")
"""At an entry of nodesets or loginsets, for its main container or its pods."""
BESIDE: Mapping[str, tuple[str, Any]] = {
    # What another value hides: that one is taken away before it is looked at.
    "slurmKeyRef": ("slurmKey.secretRef", {}),
    "jwtKeyRef": ("jwtKey.secretRef", {}),
    "jwtHs256KeyRef": ("jwtKey.secretRef", {}),
    "slurmKey.create": ("slurmKey.secretRef", {}),
    "jwtKey.create": ("jwtKey.secretRef", {}),
    "global.imageVersion": ("controller.slurmctld.image", {}),
    "imagePullPolicy": ("nodesetDefaults.slurmd.imagePullPolicy", None),
    "priorityClass.name": ("nodesetDefaults.podSpec.priorityClassName", None),
    "nameOverride": ("fullnameOverride", None),
    "controller.extraConfMap": ("controller.extraConf", None),
    "accounting.extraConfMap": ("accounting.extraConf", None),
    "nodesetDefaults.extraConfMap": ("nodesetDefaults.extraConf", None),
    "nodesetDefaults.partition.configMap": ("nodesetDefaults.partition.config", None),
    "partitions.*.configMap": ("partitions.both.config", None),
    "restapi.pdb.minAvailable": ("restapi.pdb.maxUnavailable", None),
    "sssd.conf": ("sssd.secretRef", {}),
}
CONTAINERS = (
    "slurmctld",
    "reconfigure",
    "slurmrestd",
    "slurmdbd",
    "login",
    "initconf",
    "slurmd",
    "logfile",
)
CHECKED = (
    "loginsetDefaults.fullnameOverride",
    "nodesetDefaults.fullnameOverride",
    "partitions.*.nodesets",
    "vendor.google.a3mega",
    "vendor.google.a3ultra",
    "extraObjects",
)
"""What a template refuses when it is just any word."""
REPEATED = (*CONTAINERS, "podSpec", "service", "metadata")
EXTERNAL = {
    "controller.externalConfig": "controller.external",
    "accounting.externalConfig": "accounting.external",
}


def _schema() -> Json:
    return schema("slurm")


def _leaves() -> list[Leaf]:
    whole = _schema()
    return [one for one in leaves(whole, whole) if one.path[0] not in SEPARATE and not _alias(one)]


def _alias(leaf: Leaf) -> bool:
    return leaf.path[0].endswith("Defaults") and leaf.path[1] in ALIASES


def _silent(leaf: Leaf) -> bool:
    last, parent = leaf.path[-1], ".".join(leaf.path[:-1])
    return (
        last in WITHOUT_EFFECT
        and not (last == "name" and parent not in ("nodesetDefaults", "loginsetDefaults"))
    ) or f"{last} of {parent}" in WITHOUT_EFFECT


def _context(leaf: Leaf) -> Json:
    """Everything, but for what hides the leaf."""
    given = values(EVERYTHING)
    if leaf.path[0] != "vendor":
        fewer: Json = {"compute": {}, "gpu": {}}
        less: Json = {"vendor": {}, "nodesets": fewer, "extraObjects": []}
        given = {**given, **less}
    # slurmKey: create is what is looked at, so nothing else may ask for the reference.
    for of, (other, nothing) in BESIDE.items():
        if str(leaf).startswith(of):
            given = put(given, other.split("."), nothing)
            if of.endswith(".create"):
                given = put(
                    given,
                    [{"slurmKey": "slurmKeyRef", "jwtKey": "jwtHs256KeyRef"}[leaf.path[0]]],
                    None,
                )
    if leaf.path[0] == "mungeKey":
        given = put(given, ["mungeKey", "secretRef", "name"], "site")
        given = put(put(given, ["slurmKey", "secretRef"], {}), ["slurmKeyRef"], None)
    if leaf.path[0] == "jwtHs256KeyRef" or str(leaf) == "jwtKey.create":
        given = put(given, ["jwtKeyRef"], None)
    for of, switch in EXTERNAL.items():
        if str(leaf).startswith(of):
            given = put(given, switch.split("."), True)
    if leaf.path[-1] in ("tag", "repository"):
        given = put(given, [*leaf.path[:-1], "digest"], None)
    return given


def _place(leaf: Leaf, given: Json) -> tuple[str, ...]:
    """The path with a name of the file in the place of `*`."""
    path: list[str] = []
    for name in leaf.path:
        path.append(next(iter(at(given, path))) if name == "*" else name)
    return tuple(path)


def _once(found: Iterable[Leaf]) -> list[Leaf]:
    """A part that stands in several places is looked at whole in one, and by one key elsewhere."""
    seen: set[tuple[str, ...]] = set()
    kept: list[Leaf] = []
    for leaf in found:
        place = next((i for i, name in enumerate(leaf.path) if name in REPEATED), None)
        if place is not None:
            part = ("container" if leaf.path[place] in CONTAINERS else leaf.path[place],)
            whole, first = (*part, *leaf.path[place + 1 :]), leaf.path[: place + 1]
            if whole in seen and first in seen:
                continue
            seen |= {whole, first}
        kept.append(leaf)
    return kept


def _changes(leaf: Leaf) -> bool:
    """Whether another value at the leaf changes an object."""
    given = _context(leaf)
    path = _place(leaf, given)
    other = another(at(given, path), leaf.node, _schema())
    try:
        return text(given) != text(put(given, path, other))
    except LocalError as refused:
        # What a template refuses, it has looked at.
        return "execution error" in str(refused)


def test_every_key_of_the_schema_changes_an_object() -> None:
    """F21."""
    found = _once(one for one in _leaves() if not _silent(one))
    unseen = _unseen(found)
    with ThreadPoolExecutor(2) as pool:
        changed = list(pool.map(_changes, unseen))
    assert [str(one) for one, did in zip(unseen, changed, strict=True) if not did] == []


def _unseen(found: Sequence[Leaf]) -> list[Leaf]:
    """What is still to be looked at when all texts were changed at once, each to one of its own."""
    contexts: dict[str, list[Leaf]] = {}
    left: list[Leaf] = []
    for leaf in found:
        if str(leaf) in CHECKED:
            left.append(leaf)
            continue
        contexts.setdefault(json.dumps(_context(leaf)), []).append(leaf)
    for context, members in contexts.items():
        given: Json = json.loads(context)
        for number, leaf in enumerate(members):
            path = _place(leaf, given)
            changed = put(given, path, another(at(given, path), leaf.node, _schema(), word(number)))
            given = changed if word(number) in json.dumps(changed) else given
        try:
            shown = text(given)
        except LocalError:
            shown = ""
        left += [leaf for number, leaf in enumerate(members) if word(number) not in shown]
    return left


def word(number: int) -> str:
    return f"word-{number:03}"


def test_the_file_with_everything_has_every_key() -> None:
    """F21: no documented key is left out of the fixture, and none has its default."""
    given, usual = values(EVERYTHING), defaults("slurm")
    # What excludes others: an external slurmctld, and a database of the operator.
    external = ("external", "externalConfig", "embeddedDatabase")
    missing = [
        str(one)
        for one in _leaves()
        if not set(external) & set(one.path)
        and one.path[-1] not in ("global", "name", "hostname", "fullnameOverride")
        and at(given, (path := _place(one, given))) in (None, at(usual, path))
        and one.path[-1] not in ("enabled", "hostNetwork", "scalingMode")
    ]
    assert missing == []


def test_every_key_of_values_yaml_is_in_the_schema_with_the_type_it_has() -> None:
    """S033: `helm lint` takes the defaults, and every key has a description."""
    assert "0 chart(s) failed" in lint("slurm")
    assert "0 chart(s) failed" in lint("slurm-operator")
    for chart in ("slurm", "slurm-operator"):
        whole = schema(chart)
        assert [str(one) for one in leaves(whole, whole) if not one.description.strip()] == []


def test_every_key_has_a_place_in_values_yaml() -> None:
    """A user who reads values.yaml sees every switch."""
    usual = defaults("slurm")
    hidden = ("global", "nodeSets", "loginSets", "name", "fullnameOverride", "taintKubeNodes")
    hidden = (*hidden, "useResourceLimits")
    shown = [
        str(one)
        for one in _leaves()
        if len(one.path) == 1
        or (len(one.path) == 2 and one.path[0] in ("controller", "restapi", "accounting"))
        or (one.path[0] == "nodesetDefaults" and len(one.path) == 2)
    ]
    absent = [
        one
        for one in shown
        if one.split(".")[-1] not in hidden
        and one.split(".")[-1] not in (at(usual, one.split(".")[:-1]) or {})
    ]
    assert absent == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("slurmd.securityContext.privileged", False),
        ("slurmd.securityContext.runAsUser", 0),
        ("workloadDisruptionProtection", False),
        ("podSpec.terminationGracePeriodSeconds", 0),
        ("podSpec.hostNetwork", False),
        ("replicas", 0),
        ("minReadySeconds", 0),
    ],
)
def test_false_and_zero_are_values(path: str, value: object) -> None:
    """D6: upstream drops them."""
    steps = path.split(".")
    spec = render(put({}, ["nodesets", "a", *steps], value))["NodeSet slurm-worker-a"]["spec"]
    found = at(spec, ["template", "spec", *steps[1:]] if steps[0] == "podSpec" else steps)
    assert found == value
    assert found is not None


@pytest.mark.parametrize(
    "kind", ["NodeSet slurm-worker-a", "LoginSet slurm-login-a", "RestApi slurm"]
)
def test_what_the_file_leaves_unset_is_not_in_the_object(kind: str) -> None:
    """S034, S153: so `kubectl scale` and `kubectl patch` outlive the next `helm upgrade`."""
    spec = render({"nodesets": {"a": {}}, "loginsets": {"a": {}}})[kind]["spec"]
    assert not {"replicas", "partition", "updateStrategy", "extraConf", "strategy"} & set(spec)


def test_numbers_of_a_mapping_keep_all_their_digits() -> None:
    """Helm holds numbers as floats, and a plain template prints 1e+06."""
    conf = {"a": 1000000, "b": [1, "two", 3.5], "c": True, "d": None, "e": "", "f": [], "g": 0}
    found = render({"controller": {"extraConfMap": conf}})["Controller slurm"]["spec"]
    assert found["extraConf"].split("\n") == ["a=1000000", "b=1,two,3.5", "c=true", "g=0"]


def test_text_wins_over_the_mapping_beside_it() -> None:
    given: Json = {"nodesets": {"a": {"extraConf": "Weight=1", "extraConfMap": {"Weight": 2}}}}
    assert render(given)["NodeSet slurm-worker-a"]["spec"]["extraConf"] == "Weight=1"


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ("registry/a:1", "registry/a:1"),
        ({"repository": "a", "tag": "1"}, "a:1"),
        ({"repository": "a", "tag": "1", "digest": "sha256:0"}, "a@sha256:0"),
        ({"repository": "a", "tag": None}, "a"),
        ({"repository": "a"}, "a:26.05-ubuntu26.04"),
        ({"tag": "25.11"}, "ghcr.io/slinkyproject/slurmd:25.11"),
        ("", None),
    ],
)
def test_an_image_is_a_text_or_its_parts(image: object, text: str | None) -> None:
    """An empty one leaves the choice to the operator."""
    spec = render({"nodesets": {"a": {"slurmd": {"image": image}}}})["NodeSet slurm-worker-a"][
        "spec"
    ]
    assert spec["slurmd"].get("image") == text


@pytest.mark.parametrize(
    ("given", "rendered"), [("-", ""), ("", ""), (None, None), ("fast", "fast")]
)
def test_no_storage_class_and_the_usual_one_are_distinguished(
    given: object, rendered: object
) -> None:
    found = render({"controller": {"persistence": {"storageClassName": given}}})
    assert found["Controller slurm"]["spec"]["persistence"].get("storageClassName") == rendered


@pytest.mark.parametrize(
    ("release", "given", "name"),
    [
        ("slurm", {}, "slurm"),
        ("my-slurm-2", {}, "my-slurm-2"),
        ("prod", {}, "prod-slurm"),
        ("prod", {"nameOverride": "hpc"}, "prod-hpc"),
        ("prod", {"fullnameOverride": "x"}, "x"),
    ],
)
def test_names_come_from_the_release(release: str, given: Json, name: str) -> None:
    assert f"Controller {name}" in render(given, release=release)


def test_an_entry_with_a_name_of_its_own_adopts_an_object_made_by_hand() -> None:
    """S035: nodes of NodeSet `compute` have the names of its pods, so no host name is set."""
    given: Json = {"nodesets": {"compute": {"fullnameOverride": "compute"}}}
    spec = render(given)["NodeSet compute"]["spec"]
    assert "hostname" not in spec["template"]["spec"]


def test_entries_that_are_off_are_not_there() -> None:
    given: Json = {
        "nodesets": {"a": {"enabled": False}, "b": {}},
        "loginsets": {"a": {"enabled": False}},
        "restapi": {"enabled": False},
    }
    assert set(render(given)) == {"Controller slurm", "NodeSet slurm-worker-b"}


def test_scripts_for_dcgm_write_a_file_for_each_gpu_of_a_job_and_take_it_away(
    tmp_path: Path,
) -> None:
    """Feature row 57: run as slurmd runs them."""
    folder = tmp_path / "jobs"
    dcgm: Json = {"nvidia": {"dcgm": {"enabled": True, "jobMappingDir": str(folder)}}}
    found = render({"nodesets": {"a": {}}, "vendor": dcgm})

    def run(word: str, job: str, gpus: str) -> dict[str, str]:
        (script,) = found[f"ConfigMap slurm-{word}-dcgm"]["data"].values()
        env = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": job, "SLURM_JOB_GPUS": gpus}
        subprocess.run(["sh", "-c", script], env=env, check=True)
        return {one.name: one.read_text().strip() for one in folder.iterdir()}

    assert run("prolog", "7", "0,2") == {"0": "7", "2": "7"}
    assert run("prolog", "8", "1") == {"0": "7", "1": "8", "2": "7"}
    assert run("prolog", "9", "") == {"0": "7", "1": "8", "2": "7"}
    assert run("epilog", "7", "0,2") == {"1": "8"}


def test_gpus_of_a_job_reach_dcgm_on_kubernetes_nodes_that_have_some() -> None:
    """Feature row 57."""
    gpus: Json = {"slurmd": {"resources": {"limits": {"nvidia.com/gpu": 2}}}}
    dcgm: Json = {"nvidia": {"dcgm": {"enabled": True, "jobMappingDir": "/run/dcgm"}}}
    found = render({"nodesets": {"a": gpus, "b": {}}, "vendor": dcgm})
    spec = found["NodeSet slurm-worker-a"]["spec"]
    path = {"path": "/run/dcgm", "type": "DirectoryOrCreate"}
    volume = {"name": "dcgm-job-mapping", "hostPath": path}
    assert volume in spec["template"]["spec"]["volumes"]
    mount = {"name": "dcgm-job-mapping", "mountPath": "/run/dcgm"}
    assert mount in spec["slurmd"]["volumeMounts"]
    assert "dcgm" not in str(found["NodeSet slurm-worker-b"])
    for word in ("prolog", "epilog"):
        (script,) = found[f"ConfigMap slurm-{word}-dcgm"]["data"].values()
        assert "/run/dcgm" in script


def test_resources_of_hardware_are_added_beside_those_of_the_file() -> None:
    """Feature row 58: the user's own Gres, claims and nodeSelector stay."""
    google = {
        "a3ultra": [
            {"targetNodeSet": "a", "nodePool": "p", "networks": [f"n{i}" for i in range(9)]}
        ]
    }
    mine: Json = {"extraConf": "Weight=3", "slurmd": {"env": [{"name": "PATH", "value": "/mine"}]}}
    found = render({"nodesets": {"a": mine, "b": {}}, "vendor": {"google": google}})
    spec = found["NodeSet slurm-worker-a"]["spec"]
    assert spec["extraConf"] == "Weight=3 Gres=gpu:nvidia_h200:8"
    env = {one["name"]: one["value"] for one in spec["slurmd"]["env"]}
    assert env["PATH"] == "/mine"
    assert spec["slurmd"]["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert spec["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"] == "p"
    assert "nvidia.com/gpu" not in str(found["NodeSet slurm-worker-b"])
    assert found["ConfigMap slurm-config-a3ultra"]["data"] == {"gres.conf": "AutoDetect=nvidia\n"}
