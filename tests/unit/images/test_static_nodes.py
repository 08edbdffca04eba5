"""slurmd of Penstock beside a slurm.conf that names its node. D82."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

OPTIONS = ["-Z", "-N", "worker-1", "--conf", "Feature=a RealMemory=5", "--extra", "x"]
BASE = """NodeName=DEFAULT State=UNKNOWN
  nodename = worker-[0-2],other State=CLOUD NodeAddr=a
NodeSet=worker Nodes=worker-[0-2]
#NodeName=commented
"""


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A slurm.conf that includes another file, and a scontrol that knows one bracket."""
    found = tmp_path / "slurm.conf"
    found.write_text("include base.conf\ninclude absent.conf\ninclude slurm.conf\n")
    (tmp_path / "base.conf").write_text(BASE)
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(
        f"#!{sys.executable}\nimport sys\nfor one in sys.argv[3].split(','):\n"
        "    many = [one.replace('[0-2]', str(i)) for i in range(3)] if '[' in one else [one]\n"
        "    print(*many, sep='\\n')\n"
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return found


def test_a_node_that_slurm_conf_names_is_found(static_nodes: ModuleType, conf: Path) -> None:
    assert all(static_nodes.is_static(one, conf) for one in ("worker-0", "worker-2", "other"))
    for one in ("worker-3", "commented", "worker"):
        assert not static_nodes.is_static(one, conf)


def test_it_starts_with_its_name_alone(static_nodes: ModuleType) -> None:
    assert static_nodes.node_name(OPTIONS) == "worker-1"
    assert static_nodes.node_name(["-Z"]) == ""
    assert static_nodes.static_options(OPTIONS) == ["-N", "worker-1", "--extra", "x", "-b"]
    assert static_nodes.static_options(["--conf=a", "-Z", "-v"]) == ["-v", "-b"]


def test_slurmd_is_dynamic_unless_its_node_is_named(
    jail_slurmd: ModuleType, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jail_slurmd.static_nodes.is_static, "__defaults__", (conf,))
    monkeypatch.setenv("SLURMD_OPTIONS", "-Z -N worker-1 --conf 'Feature=a'")
    assert jail_slurmd.program([]).argv[-3:] == ["-N", "worker-1", "-b"]
    monkeypatch.setenv("SLURMD_OPTIONS", "-Z -N worker-9 --conf 'Feature=a'")
    assert "-Z" in jail_slurmd.program([]).argv
