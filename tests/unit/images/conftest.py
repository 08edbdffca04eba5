import importlib
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
CRI_O = (
    *("chown", "dac_override", "fsetid", "fowner", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "kill"),
)
"""Capabilities of containers by default in CRI-O, which gives fewer than containerd."""
CONTAINERD = (*CRI_O, "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap")


@pytest.fixture
def slurmd() -> Generator[ModuleType]:
    """The slurmd image's entry point, imported as it is in the image: from its own folder."""
    yield from _module("slurmd")


@pytest.fixture
def options() -> Generator[ModuleType]:
    yield from _module("options")


@pytest.fixture
def jail() -> Generator[ModuleType]:
    """What daemons of a jail wait for."""
    yield from _module("jail")


@pytest.fixture
def power_manager() -> Generator[ModuleType]:
    """What slurmctld's programs for power saving call."""
    yield from _module("power_manager")


@pytest.fixture
def jail_mounts() -> Generator[ModuleType]:
    yield from _module("jail_mounts")


@pytest.fixture
def jail_accounts() -> Generator[ModuleType]:
    yield from _module("jail_accounts")


@pytest.fixture
def jail_report() -> Generator[ModuleType]:
    yield from _module("jail_report")


@pytest.fixture
def jail_slurmctld() -> Generator[ModuleType]:
    yield from _module("jail_slurmctld")


@pytest.fixture
def jail_login() -> Generator[ModuleType]:
    yield from _module("jail_login")


@pytest.fixture
def jail_slurmd() -> Generator[ModuleType]:
    yield from _module("jail_slurmd")


@pytest.fixture
def static_nodes() -> Generator[ModuleType]:
    yield from _module("static_nodes")


@pytest.fixture
def jail_sshd() -> Generator[ModuleType]:
    yield from _module("jail_sshd")


def _module(name: str) -> Generator[ModuleType]:
    before = set(sys.modules)
    sys.path.insert(0, str(ENTRYPOINTS))
    try:
        yield importlib.import_module(name)
    finally:
        sys.path.remove(str(ENTRYPOINTS))
        own = {path.stem for path in ENTRYPOINTS.glob("*.py")}
        for added in own & (set(sys.modules) - before):
            del sys.modules[added]


@pytest.fixture
def backup() -> Generator[ModuleType]:
    """The program of Backups and Restores."""
    yield from _module("backup")


@pytest.fixture
def jail_check() -> Generator[ModuleType]:
    """The program that submits the Slurm jobs of a check."""
    yield from _module("jail_check")
