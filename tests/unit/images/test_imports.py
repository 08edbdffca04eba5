"""The Slurm images have Debian's python3-minimal, which is a part of the standard library only."""

import ast
from pathlib import Path

import pytest

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
# Modules seen in libpython3.14-minimal; look there before adding one (shlex, for one, is not), or
# among `sys.builtin_module_names` (binascii, zlib).
MINIMAL = {
    "__future__",
    "argparse",
    "ast",
    "binascii",
    "collections",
    "contextlib",
    "dataclasses",
    "enum",
    "errno",
    "fcntl",
    "fnmatch",
    "hashlib",
    "io",
    "itertools",
    "json",
    "os",
    "pathlib",
    "pwd",
    "re",
    "select",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "stat",
    "struct",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "types",
    "typing",
    "zlib",
}


@pytest.mark.parametrize("path", sorted(ENTRYPOINTS.glob("*.py")), ids=lambda path: path.name)
def test_entry_points_import_only_what_the_images_have(path: Path):
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    assert found - MINIMAL - {other.stem for other in ENTRYPOINTS.glob("*.py")} == set()
