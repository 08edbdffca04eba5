"""cgroup.conf of a SlurmCluster. Source: cgroup.conf(5)."""

from __future__ import annotations

from typing import Final

from penstock.api.nebius.worker import CgroupVersion
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.keys import values_of
from penstock.render.nebius.config.lines import file_text
from penstock.slurm.conf.document import Document

_COMMON: Final = {
    "CgroupMountpoint": "/sys/fs/cgroup",
    "ConstrainCores": "yes",
    "ConstrainDevices": "yes",
    "ConstrainRAMSpace": "yes",
}
_VERSIONS: Final[dict[CgroupVersion, dict[str, str]]] = {
    "v1": {"CgroupPlugin": "cgroup/v1", "ConstrainSwapSpace": "yes"},
    "v2": {
        "CgroupPlugin": "cgroup/v2",
        "ConstrainSwapSpace": "no",
        "EnableControllers": "yes",
        # Containers have no systemd that could make a scope.
        "IgnoreSystemd": "yes",
    },
}


def cgroup_conf(inputs: ConfigInputs) -> str:
    """The defaults of the version of cgroups without keys that the user's lines have, then these.

    Slurm takes the last value of a key, but a file that has each once reads better.
    """
    custom = inputs.cluster.spec.custom_cgroup_config
    theirs = {
        setting.key.lower() for line in Document.parse(custom).lines for setting in line.settings
    }
    defaults = _COMMON | _VERSIONS[values_of(inputs).cgroup_version]
    lines = [f"{key}={value}" for key, value in defaults.items() if key.lower() not in theirs]
    own = [line for line in custom.split("\n") if line.strip()]
    return file_text([*lines, *(["# spec.customCgroupConfig", *own] if own else [])])
