"""The files compared with those of the original operator, key by key.

`tests/fixtures/nebius/configs` has the original's files for the same objects, without comments.
Each difference is deliberate and named here with its reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.api.nebius.labels import object_labels
from penstock.render.nebius.config import (
    limits_conf,
    sshd_conf,
    user_isolation_conf,
    worker_files,
)
from penstock.render.nebius.config.config_maps import jailed_config
from penstock.render.nebius.config.files import files
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import resolved

FOLDER = Path(__file__).parents[3] / "fixtures" / "nebius" / "configs"
TOPOLOGY = "SwitchName=root\n"
COMMON = {
    "slurmuser": "slurmctld does not run as root",
    "plugindir": "each image has its plug-ins in the folder for which it was built",
    "slurmctldpidfile": "slurm may not write to /var/run",
    "accountingstoragehost": "the name is right in each DNS domain of a cluster",
}
CURRENT = COMMON | {
    "poweraction": "the operator drains workers itself; no program of the original is needed",
    "location": "a word of PowerAction",
    "program": "a word of PowerAction",
    "suspendexcnodes": "dynamic nodes have no names in the file: their state is excluded",
    "suspendexcstates": "it replaces SuspendExcNodes",
    "nodename worker-cpu-[0-1]": "workers register themselves",
    "nodename worker-eph-[0-2]": "the address is right in each DNS domain; it has its feature",
    "nodeset worker-cpu": "dynamic nodes belong to it by their feature",
    "nodeset worker-eph": "dynamic nodes belong to it by their feature",
}
OLDER = COMMON | {
    "accountingstorageuser": "slurmdbd has no use for it",
    "nodeset worker": "partitions may name all workers",
}


def original(version: str) -> dict[str, dict[str, str]]:
    return yaml.safe_load((FOLDER / f"original-{version}.yaml").read_text())


def keys(text: str) -> dict[str, str]:
    """Effective values by key, of named lines also by name."""
    found = Document.parse(text).effective()
    return {" ".join(filter(None, key)): value for key, value in found.items()}


def lines(text: str) -> list[str]:
    stripped = (line.rstrip() for line in text.split("\n"))
    return [" ".join(line.split()) for line in stripped if line and line[0] != "#"]


def conf(data: dict[str, str]) -> dict[str, str]:
    return keys(resolved(data))


@pytest.mark.parametrize(
    ("version", "differ", "name"),
    [("5.0", CURRENT, "soperator"), ("1.23.3", OLDER, "correct-cpu-cluster")],
)
def test_slurm_conf_differs_in_named_keys_only(
    version: str, differ: dict[str, str], name: str, current: Any, older: Any
):
    made = current if version == "5.0" else older
    theirs = conf(original(version)[f"{name}-slurm-configs"])
    ours = conf(files(made(topology_conf=TOPOLOGY)))
    found = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
    assert found == differ.keys()


@pytest.mark.parametrize("version", ["5.0", "1.23.3"])
def test_the_other_files_are_those_of_the_original(version: str, current: Any, older: Any):
    inputs = (current if version == "5.0" else older)()
    theirs = original(version)[f"{inputs.name}-slurm-configs"]
    ours = files(inputs)
    assert set(ours) == set(theirs)
    assert list(ours) == [
        one["key"] for one in jailed_config(inputs.cluster, ours)["spec"]["items"]
    ]
    for file in ("slurm_rest.conf", "cgroup.conf", "gres.conf", "mpi.conf", "plugstack.conf"):
        assert lines(ours[file]) == lines(theirs[file]), file


def test_files_of_pods_are_those_of_the_original(current: Any):
    theirs, inputs = original("5.0"), current()
    login = inputs.cluster.spec.slurm_nodes.login
    text = user_isolation_conf.user_isolation_conf(login)
    name = "soperator-login-user-isolation"
    assert lines(text) == lines(theirs[name]["user-isolation.conf"])
    keys_of_root = theirs["soperator-ssh-root-keys"]["authorized_keys"]
    assert lines(sshd_conf.authorized_keys(login)) == lines(keys_of_root)
    limits = theirs["soperator-nodeset-worker-cpu-security-limits"]["limits.conf"]
    assert lines(limits_conf.limits_conf("", is_worker=True)) == lines(limits)
    assert lines(limits_conf.limits_conf("", is_worker=False)) == []
    assert limits_conf.limits_conf("* soft core 0", is_worker=True) == "* soft core 0"
    sysctl = theirs["soperator-sysctl"]["sysctl.conf"]
    assert lines(worker_files.SYSCTL_CONF) == lines(sysctl)


def test_supervisord_has_the_programs_of_the_original(current: Any):
    def sections(text: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        section = set[str]()
        for line in lines(text):
            if line.startswith("["):
                found[line] = section = set[str]()
            else:
                section.add(line)
        return found

    theirs = original("5.0")["soperator-supervisord"]["supervisord.conf"]
    assert sections(worker_files.supervisord_conf()) == sections(theirs)


def test_sshd_differs_in_its_log_level_and_where_it_finds_keys(current: Any):
    theirs = lines(original("5.0")["soperator-ssh-configs"]["sshd_config"])
    ours = lines(
        sshd_conf.cluster_sshd_config(current().cluster.spec.slurm_nodes.login, has_jail=True)
    )
    assert set(theirs) - set(ours) == {"LogLevel DEBUG3", "Match User *"}
    # Users are in the jail: their keys too, and sshd reads these before it changes the root.
    added = {"AuthorizedKeysFile .ssh/authorized_keys /mnt/jail/%h/.ssh/authorized_keys"}
    assert set(ours) - set(theirs) == added
    assert ours.index("Match User root") == len(ours) - 2


def test_the_jailed_config_is_that_of_the_original(current: Any):
    inputs = current()
    found = jailed_config(inputs.cluster, files(inputs))
    assert found["metadata"]["name"] == "soperator-slurm-configs"
    assert found["metadata"]["labels"] == {
        **object_labels("controller", "soperator"),
        "slurm.nebius.ai/jailed-aggregation": "common",
    }
    items = [f"{one['key']} {one['path']}" for one in found["spec"].pop("items")]
    names = [
        "slurm.conf",
        "slurm_base.conf.noedit",
        "slurm_rest.conf",
        "slurm_k8s_extra.conf.noedit",
        "cgroup.conf",
        "plugstack.conf",
        "gres.conf",
        "mpi.conf",
    ]
    assert items == [f"{name} /etc/slurm/{name}" for name in names]
    assert found["spec"] == {
        "configMap": {"name": "soperator-slurm-configs"},
        "updateActions": ["Reconfigure"],
    }
