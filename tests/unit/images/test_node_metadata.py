from pathlib import Path
from types import ModuleType

import pytest


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"SOPERATOR_NODE_REAL_MEMORY_BYTES": "4096"}, "SOPERATOR_NODE_REAL_MEMORY_BYTES=4096\n"),
        ({"SLURM_REAL_MEMORY": "2"}, "SOPERATOR_NODE_REAL_MEMORY_BYTES=2097152\n"),
        ({"SOPERATOR_NODE_REAL_MEMORY_BYTES": "0"}, None),
        ({}, None),
    ],
)
def test_checks_find_the_nodes_memory_in_a_file(
    jail_slurmd: ModuleType, tmp_path: Path, environ: dict[str, str], text: str | None
):
    """slurmd gives its checks an environment of their own."""
    path = tmp_path / "soperator/node_metadata.env"
    jail_slurmd.write_metadata(path, environ)
    assert (path.read_text() if path.exists() else None) == text
