"""The manifest of a folder with configuration files: their hashes, as sha256sum prints them.

The SHA-256 of the manifest is the hash of a configuration. On a volume without a kubelet that shows
all files at once, the manifest is written as a file, the last one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from penstock.slurm.auth.key_files import JWT_KEY, SLURM_KEY

MANIFEST: Final = ".penstock-files"
"""Name of the file, in the folder of the files."""


def is_listed(name: str) -> bool:
    """Whether a file is in the manifest.

    Single keys are not, and neither are names that a shell's `*` does not match.
    """
    return not name.startswith(".") and name not in {SLURM_KEY, JWT_KEY}


def manifest(files: Mapping[str, bytes]) -> str:
    """What `sha256sum -- *` prints in a folder with these files, in the C locale."""
    return "".join(
        f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n"
        for name in sorted(filter(is_listed, files))
    )
