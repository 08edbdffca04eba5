"""Configuration files of a SlurmCluster: golden files, partitions, numbers, and bad input."""

from __future__ import annotations

import os
import random
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api.cluster.marks import MAX_DRAINED
from penstock.api.nebius import names
from penstock.render.config import partition as partitions
from penstock.render.config.content import content_hash, manifest, rejections_in
from penstock.render.nebius.config import config_maps, partition_lines, worker_names
from penstock.render.nebius.config.files import files, own_hash
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import SHARE_REMARK
from penstock.render.nebius.config.left_out import left_out
from penstock.render.nebius.config.slurm_conf import partition_text, retained_partitions
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.declaration import partition_lines as declared_in
from penstock.slurm.state import Node
from penstock.slurm.versions import V24_11, V26_05
from penstock.translate.nebius.cluster import cluster
from support import nebius

GOLDEN = Path(__file__).parents[3] / "golden" / "nebius"
CONFIG = "spec.partitionConfiguration"
CUSTOM = "spec.customSlurmConfig"
WORST = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40
) | st.sampled_from(["\\", "a\\", "include slurm.conf", "a\nPartitionName=x", "#", '"', "=\\\\\\"])


def conf(inputs: ConfigInputs) -> Document:
    return Document.parse(resolved(files(inputs)))


def raw(*lines: str) -> dict[str, Any]:
    return {CONFIG: {"configType": "custom", "rawConfig": list(lines)}}


class Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


Dumper.add_representer(str, _text)


@pytest.mark.parametrize("version", ["5.0", "1.23"])
def test_files_are_byte_for_byte_as_recorded(version: str, current: Any, older: Any):
    inputs = (current if version == "5.0" else older)()
    data = files(inputs)
    startup = names.slurm_configs(inputs.name)
    objects = [
        config_maps.config_map(inputs.cluster, startup, data),
        config_maps.jailed_config(inputs.cluster, data),
        config_maps.partition_record(inputs.cluster, data),
    ]
    text = yaml.dump_all(objects, Dumper=Dumper, sort_keys=True, width=1000)
    path = GOLDEN / f"config-{version}.yaml"
    if os.environ.get("PENSTOCK_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_the_order_of_node_sets_changes_no_byte(current: Any):
    inputs = current()
    mixed = list(inputs.node_sets)
    random.Random(1).shuffle(mixed)
    for order in (mixed, mixed[::-1]):
        assert files(replace(inputs, node_sets=tuple(order))) == files(inputs)


@pytest.mark.parametrize("shape", ["current", "older"])
def test_each_type_of_partitions_has_the_workers(shape: str, current: Any, older: Any):
    """D45."""
    made = current if shape == "current" else older
    worker = "worker-cpu" if shape == "current" else "worker"
    structured = {
        "configType": "structured",
        "partitions": [{"name": "a", "isAll": True}, {"name": "b", "nodeSetRefs": [worker]}],
    }
    default = conf(made({CONFIG: {"configType": "default"}}))
    custom = conf(made(raw("PartitionName=a Nodes=ALL", f"PartitionName=b Nodes={worker}")))
    third = conf(made({CONFIG: structured}))
    for document in (default, custom, third):
        node_set = document.record("NodeSet", worker)
        assert node_set is not None
        assert node_set.get("Feature") == worker
    assert {r.name: r.get("Nodes") for r in default.records("PartitionName")} == {
        "main": "ALL",
        "hidden": "ALL",
    }
    for document in (custom, third):
        found = {r.name: r.get("Nodes") for r in document.records("PartitionName")}
        assert found == {"a": "ALL", "b": worker}


def test_only_ephemeral_nodes_have_node_lines(current: Any):
    (line,) = conf(current()).records("NodeName")
    assert (line.name, line.get("State"), line.get("Features")) == (
        "worker-eph-[0-2]",
        "CLOUD",
        "worker-eph",
    )
    always_on = conf(current(node_sets=(current().node_sets[0],)))
    assert always_on.records("NodeName") == ()
    assert always_on.get("SuspendProgram") is None


def test_a_lost_reference_is_named_and_the_partition_stays(current: Any):
    parts = [
        {"name": "a", "nodeSetRefs": ["gone", "worker-cpu"], "config": "State=UP"},
        {"name": "b", "nodeSetRefs": ["gone"]},
        {"name": "c"},
        {"name": "d", "config": "Nodes=worker-cpu"},
    ]
    inputs = current({CONFIG: {"configType": "structured", "partitions": parts}})
    assert [str(one) for one in partition_lines.lost_refs(inputs)] == [
        "partition a names NodeSet gone, which does not exist",
        "partition b names NodeSet gone, which does not exist",
        "partition c names no NodeSet",
    ]
    found = {r.name: r.get("Nodes") for r in conf(inputs).records("PartitionName")}
    assert found == {"a": "worker-cpu", "b": None, "c": None, "d": "worker-cpu"}


def test_names_of_workers_become_node_sets(older: Any):
    lines = raw(
        "PartitionName=all Nodes=worker-[0-7] State=UP # mine",
        "PartitionName=one Nodes=worker-1,other",
        "PartitionName=late Nodes=worker-[5-6]",
    )
    inputs = older({**lines, CUSTOM: "PartitionName=mine  Nodes=worker-0\nKillWait=5\n"})
    text = resolved(files(inputs))
    document = Document.parse(text)
    assert "PartitionName=all Nodes=worker State=UP # mine\n" in text
    found = {r.name: r.get("Nodes") for r in document.records("PartitionName")}
    assert found == {
        "all": "worker",
        "one": "other,penstock-one",
        "late": "penstock-late",
        "mine": "penstock-mine",
    }
    sets = {r.name: r.get("Feature") for r in document.records("NodeSet")}
    assert sets == {
        "fastset": "fast",
        "worker": "worker",
        "penstock-late": "penstock/late",
        "penstock-mine": "penstock/mine",
        "penstock-one": "penstock/one",
    }
    assert "KillWait=5\n" in files(inputs)["custom_slurm.conf"]
    model = replace(cluster(inputs.cluster), partitions=())
    nodes = {f"worker-{n}": Node(name=f"worker-{n}") for n in range(6)}
    members = {
        one.name: partitions.members(model, one, nodes, {})
        for one in worker_names.partition_specs(inputs, partition_text(inputs))
    }
    assert members == {"one": {"worker-1"}, "late": {"worker-5"}, "mine": {"worker-0"}}


def test_names_of_ephemeral_nodes_stay(current: Any):
    line = "PartitionName=a Nodes=worker-eph-[0-1]"
    assert line in files(current(raw(line)))["slurm_base.conf.noedit"]


def test_a_scaled_cluster_keeps_its_files_and_its_room(older: Any):
    size = "spec.slurmNodes.worker.size"
    small, large = older({size: 2}), older({size: 600})
    assert files(small) == files(older({size: 200}))
    grown = conf(large)
    assert (grown.get("MaxNodeCount"), grown.get("MaxArraySize")) == ("2048", "3000")
    shrunk = conf(replace(small, published=files(large)))
    assert (shrunk.get("MaxNodeCount"), shrunk.get("MaxArraySize")) == ("2048", "3000")
    most = conf(older({size: 10**6}))
    assert (most.get("MaxNodeCount"), most.get("MaxArraySize")) == ("65536", "4000001")


@pytest.mark.parametrize("shape", ["current", "older"])
def test_a_removed_partition_stays_until_it_is_freed(shape: str, current: Any, older: Any):
    made = current if shape == "current" else older
    one, both = (
        raw("PartitionName=a Nodes=ALL"),
        raw("PartitionName=a Nodes=ALL", "PartitionName=b Nodes=ALL"),
    )
    before = made({**both, CUSTOM: "PartitionName=c Nodes=ALL"})
    in_effect = resolved(files(before))
    after = made({**one, CUSTOM: ""}, in_effect=in_effect)
    assert retained_partitions(after) == {"b", "c"}
    kept = declared_in(resolved(files(after)))
    assert {name: line.keys.get("state") for name, line in kept.items()} == {
        "a": None,
        "b": "DRAIN",
        "c": "DRAIN",
    }
    freed = replace(after, freed=frozenset({"b", "c"}))
    assert declared_in(resolved(files(freed))).keys() == {"a"}
    assert retained_partitions(freed) == frozenset()


def test_a_rejected_partition_stays_as_it_is_in_its_file(current: Any):
    old = current({**raw("PartitionName=a Nodes=ALL"), CUSTOM: "PartitionName=b MaxTime=1"})
    new = current(
        {**raw("PartitionName=a Nodes=ALL MaxTime=x"), CUSTOM: "PartitionName=b MaxTime=y"},
        published=files(old),
        rejected_partitions=frozenset({"a", "b"}),
    )
    assert declared_in(resolved(files(new))) == declared_in(resolved(files(old)))
    assert "MaxTime=1" in files(new)["slurm_k8s_extra.conf.noedit"]


def test_a_rejected_partition_is_as_slurmctld_has_it_wherever_it_is_declared(current: Any):
    old = current({**raw("PartitionName=a Nodes=ALL MaxTime=1"), CUSTOM: ""})
    new = current(
        {**raw("PartitionName=b Nodes=ALL MaxTime=x"), CUSTOM: "PartitionName=a MaxTime=y"},
        published=files(old),
        rejected_partitions=frozenset({"a", "b"}),
        slurm_conf="PartitionName=a Nodes=ALL MaxTime=2\nPartitionName=b Nodes=ALL MaxTime=3\n",
    )
    found = files(new)
    assert {name: one.keys["maxtime"] for name, one in declared_in(resolved(found)).items()} == {
        "a": "2",
        "b": "3",
    }
    assert declared_in(found["slurm_base.conf.noedit"]).keys() == {"a", "b"}
    assert "PartitionName" not in found["slurm_k8s_extra.conf.noedit"]


def test_the_users_lines_count_last_and_the_key_for_slurmrestd_stays(current: Any):
    """D49: slurmrestd is off and there is no accounting."""
    custom = "KillWait=9\nAuthAltParameters=disable_token_creation\nSlurmUser=root\n"
    inputs = current({CUSTOM: custom, "spec.slurmNodes.rest.enabled": False}, accounting=None)
    document = conf(inputs)
    assert (document.get("KillWait"), document.get("SlurmUser")) == ("9", "root")
    assert document.options("AuthAltParameters") == (
        "disable_token_creation",
        "jwt_key=/var/spool/slurmctld/jwt_hs256.key",
    )
    assert document.get("AuthAltTypes") == "auth/jwt"
    assert document.get("AccountingStorageType") is None


def test_the_users_cgroup_lines_replace_the_defaults(older: Any):
    changes = {
        "spec.customCgroupConfig": "constraincores=no\n\nAllowedRAMSpace=90",
        "spec.slurmNodes.worker.cgroupVersion": "v1",
    }
    document = Document.parse(files(older(changes))["cgroup.conf"])
    assert document.all("ConstrainCores") == ("no",)
    assert document.get("CgroupPlugin") == "cgroup/v1"
    assert document.get("AllowedRAMSpace") == "90"


def test_gpus_are_detected_and_have_the_lines_of_their_node_set(current: Any, older: Any):
    gpus = nebius.made(
        "nodesets-5.0-0",
        {"spec.gpu.enabled": True, "spec.nodeConfig.gresConfig": ["Name=gpu File=/dev/nvidia0\n"]},
    )
    inputs = current(node_sets=(gpus,))
    text = files(inputs)["gres.conf"]
    assert "AutoDetect=nvidia\nNodeName=worker-cpu-[0-1] Name=gpu File=/dev/nvidia0\n" in text
    assert conf(inputs).get("GresTypes") == "gpu"
    gpu_cluster = older({"spec.clusterType": "gpu"})
    assert "AutoDetect=nvidia\n" in files(gpu_cluster)["gres.conf"]
    assert conf(gpu_cluster).get("GresTypes") == "gpu"


def test_values_that_slurm_cannot_use_are_left_out_and_named(current: Any):
    wanted = {"spec.slurmNodes.controller.openMetrics.enabled": True}
    inputs = current(wanted, version=V24_11)
    assert conf(inputs).get("MetricsType") is None
    assert conf(inputs).get("TopologyPlugin") is None
    (found,) = left_out(inputs)
    assert "openMetrics is not used: Slurm 24.11" in found.message
    assert "topologyPlugin topology/tree is not used" in found.message
    assert left_out(current(version=V26_05, topology_conf="SwitchName=root\n")) == []


@pytest.mark.parametrize(
    ("plugins", "default"),
    [
        ((), "pmix"),
        (("cray_shasta", "pmi2", "pmix", "pmix_v5"), "pmix"),
        (("cray_shasta", "pmi2"), "pmi2"),
        (("cray_shasta",), "none"),
    ],
)
def test_the_default_of_mpi_is_a_plug_in_that_the_image_has(
    current: Any, plugins: tuple[str, ...], default: str
):
    """S137: PMIx as the original has it, also while nothing is known of the image."""
    inputs = current(
        version=V26_05, topology_conf="SwitchName=root\n", mpi_plugins=frozenset(plugins)
    )
    assert conf(inputs).get("MpiDefault") == default
    words = [one.message for one in left_out(inputs)]
    assert [f"MpiDefault=pmix is {default}: " in one for one in words] == [True] * (
        default != "pmix"
    )


def test_plug_ins_have_their_arguments_in_one_order(current: Any):
    """D64."""
    path = "spec.plugStackConfig.customPlugins"
    one = {"path": "x.so", "required": True, "arguments": {"b": "2", "a": "1"}}
    last = files(current({path: [one]}))["plugstack.conf"].split("\n")[-2]
    assert last == "required x.so a=1 b=2"


def test_only_a_cluster_that_asks_for_it_isolates_its_jobs(current: Any):
    """S171: an image of before the option rejects it."""
    first = files(current())["plugstack.conf"].split("\n")
    assert "required chroot.so /mnt/jail" in first
    assert files(current({"spec.jobIsolation": "None"}))["plugstack.conf"].split("\n") == first
    asked = files(current({"spec.jobIsolation": "PerJob"}))["plugstack.conf"].split("\n")
    assert "required chroot.so /mnt/jail job_isolation=on" in asked
    assert len(asked) == len(first)


def test_interfaces_of_jobs_are_an_argument_of_the_plug_in_of_the_jail(current: Any):
    """S178: an image of before the option rejects it."""
    field = "spec.jobNetworkInterfaces"
    first = files(current())["plugstack.conf"]
    assert files(current({field: []}))["plugstack.conf"] == first
    asked = files(current({field: ["eth0", "net1.100"]}))
    line = "required chroot.so /mnt/jail network_interfaces=eth0,net1.100\n"
    assert asked["plugstack.conf"] == first.replace("required chroot.so /mnt/jail\n", line)
    others = {name: text for name, text in asked.items() if name != "plugstack.conf"}
    assert others.items() <= files(current()).items()
    both = files(current({field: ["eth0"], "spec.jobIsolation": "PerJob"}))["plugstack.conf"]
    assert "\nrequired chroot.so /mnt/jail job_isolation=on network_interfaces=eth0\n" in both


@given(line=WORST)
@settings(max_examples=150, deadline=None)
def test_no_line_of_a_user_reaches_into_another_line_or_file(line: str):
    good = nebius.manifest("slurmcluster-5.0-0")
    bad = nebius.manifest(
        "slurmcluster-5.0-0",
        {
            CUSTOM: line,
            "spec.slurmConfig.epilog": line,
            "spec.mpiConfig.pmixEnv": line,
            "spec.plugStackConfig.customPlugins": [{"path": "x", "arguments": {"a": line}}],
            "spec.jobNetworkInterfaces": [line],
            "spec.slurmNodes.login.sshRootPublicKeys": [line],
            CONFIG: {
                "configType": "structured",
                "partitions": [{"name": "a", "config": line}, {"name": "b", "isAll": True}],
            },
        },
    )
    before, after = (files(ConfigInputs(cluster=nebius.decode(one))) for one in (good, bad))  # pyright: ignore[reportArgumentType]
    for file in ("slurm_rest.conf", "cgroup.conf", "gres.conf"):
        assert before[file] == after[file]
    own = Document.parse(after["slurm_base.conf.noedit"])
    assert own.get("MaxNodeCount") == "1024"
    assert own.get("Prolog") == "/opt/slurm_scripts/prolog.sh"
    assert [r.name for r in own.records("PartitionName")][-1] == "b"
    assert len(after["plugstack.conf"].split("\n")) == len(before["plugstack.conf"].split("\n")) + 1


def test_config_maps_have_the_hash_of_their_files_and_a_rejection(current: Any):
    inputs = current()
    data = files(inputs)
    found = config_maps.config_map(
        inputs.cluster, names.candidate_configs(inputs.name), data, {"h1": "words", "h2": "words"}
    )
    assert found["metadata"]["name"] == "soperator-slurm-configs-candidate"
    marks = found["metadata"]["annotations"]
    assert marks["controller.penstock.dev/content-hash"] == content_hash(data)
    assert rejections_in(marks) == {"h1": "words", "h2": "words"}
    assert found["metadata"]["ownerReferences"][0]["kind"] == "SlurmCluster"
    record = config_maps.partition_record(inputs.cluster, data)
    assert "ownerReferences" not in record["metadata"]
    assert declared_in(record["data"]["slurm.conf"]).keys() == {"main", "debug"}


def test_the_manifest_is_what_sha256sum_prints(current: Any, tmp_path: Path):
    data = files(current())
    for file, text in data.items():
        (tmp_path / file).write_text(text)
    printed = subprocess.run(
        ["sh", "-c", "sha256sum -- *"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == manifest(data)


def test_the_own_hash_follows_the_clusters_own_lines_only(current: Any, older: Any):
    for made in (current, older):
        inputs = made()
        own, custom = own_hash(files(inputs)), inputs.cluster.spec.custom_slurm_config
        many = nebius.made("nodesets-5.0-0", {"spec.replicas": 900, "spec.gpu.enabled": True})
        for other in (
            replace(inputs, node_sets=()),
            replace(inputs, node_sets=(many,), in_effect="PartitionName=old\n"),
            made(raw("PartitionName=x Nodes=ALL")),
            made({CUSTOM: f"{custom}PartitionName=y Nodes=ALL\n"}),
        ):
            assert own_hash(files(other)) == own
        for changes in ({CUSTOM: f"{custom}KillWait=5"}, {"spec.slurmConfig.epilog": "/e"}):
            assert own_hash(files(made(changes))) != own


def test_thousands_of_partitions_with_names_of_workers_are_read_once(older: Any):
    lines = [f"PartitionName=p{i} Nodes=worker-[{i % 50}-99]" for i in range(1000)]
    inputs = older(raw(*lines))
    began = time.process_time()
    found = conf(inputs).records("PartitionName")
    # Reading the whole text for each line takes a minute.
    assert time.process_time() - began < 10
    assert found[-1].get("Nodes") == "penstock-p999"
    # More names than Slurm has nodes are left to slurmctld.
    many = "".join(f"PartitionName=p{i} Nodes=worker-[0-65000]\n" for i in range(4))
    text = files(older({CUSTOM: many}))["custom_slurm.conf"]
    assert text.endswith("PartitionName=p3 Nodes=worker-[0-65000]\n")


@pytest.mark.parametrize("shape", ["current", "older"])
def test_workers_read_the_share_of_checks_in_a_remark(shape: str, current: Any, older: Any):
    make = current if shape == "current" else older
    plain = files(make())
    share = {"metadata.annotations": {MAX_DRAINED: "25%"}}
    found = files(make(share))
    assert f"\n{SHARE_REMARK}25%\n" in "".join(found.values())
    assert SHARE_REMARK not in "".join(plain.values())
    of_slurm = [line for line in resolved(found).splitlines() if not line.startswith("#")]
    assert of_slurm == [one for one in resolved(plain).splitlines() if not one.startswith("#")]
    wrong = {"metadata.annotations": {MAX_DRAINED: "1\nKillWait=1"}}
    assert files(make(wrong)) == plain
