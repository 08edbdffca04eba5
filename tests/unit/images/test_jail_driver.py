"""The GPU driver in a jail: what is found in a container, and what the volume has for all nodes.

The names of its libraries are those of a driver for an H100, in tests/fixtures/gpu/h100.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

H100 = Path(__file__).parents[2] / "fixtures/gpu/h100"
VERSION = "580.159.04"
LIBRARIES = "opt/penstock/driver"


def real_names() -> dict[str, str]:
    """Libraries of a real driver: the file by the name under which programs load it."""
    driver = (H100 / "libraries.txt").read_text().partition("/usr/lib/")[0]
    pairs = (line.split(" -> ") for line in driver.splitlines() if " -> " in line)
    return {name.strip(): file for name, file in pairs}


@pytest.fixture
def jail_driver(jail_mounts: ModuleType) -> ModuleType:
    return jail_mounts.jail_driver


@pytest.fixture
def vendor(tmp_path: Path, jail_driver: ModuleType) -> Path:
    """A folder with the names of a real driver, and libraries of these names without content."""
    if shutil.which("ldconfig") is None:
        pytest.skip("ldconfig is absent")
    header = Path("/proc/self/exe").read_bytes()[:64]
    folder = tmp_path / "nvidia"
    for name in ("lib64", "bin"):
        (folder / name).mkdir(parents=True)
    for name, file in real_names().items():
        (folder / "lib64" / file).write_bytes(jail_driver.placeholder(name, header))
        if name != file:
            (folder / "lib64" / name).symlink_to(file)
    for name in ("libOpenCL.so.1", "libicudata.so.74"):
        (folder / "lib64" / name).write_bytes(jail_driver.placeholder(name, header))
    for name in ("nvidia-smi", "nvidia-persistenced", "other"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "bin/nvidia-imex-ctl").touch(mode=0o644)
    return folder


@pytest.fixture
def jail(tmp_path: Path) -> Path:
    """A jail whose dynamic linker reads the files of ld.so.conf.d."""
    if os.geteuid() != 0:
        pytest.skip("ldconfig changes its root as root only")
    (tmp_path / "jail/etc/ld.so.conf.d").mkdir(parents=True)
    (tmp_path / "jail/etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
    return tmp_path / "jail"


def offer(jail_mounts: ModuleType, jail_driver: ModuleType, jail: Path, vendor: Path) -> bool:
    one = jail_mounts.Jail(str(jail))
    libraries = jail_driver.find([], vendor).libraries
    return jail_driver.Volume(str(jail), one.folder).offer(libraries)


def cached(jail: Path) -> set[str]:
    """Names in the jail's cache that lead to the driver's folder."""
    done = subprocess.run(
        ["ldconfig", "-p", "-r", str(jail)], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines() if f"/{LIBRARIES}/" in line]
    return {words[0] for words in lines}


def test_a_folder_of_the_runtime_has_libraries_and_programs(
    vendor: Path, jail_driver: ModuleType
) -> None:
    found = jail_driver.find([], vendor)
    assert found.libraries == {
        name: str(vendor / "lib64" / file) for name, file in real_names().items()
    }
    assert found.libraries["libcuda.so.1"].endswith(f"libcuda.so.{VERSION}")
    assert found.programs == {
        name: str(vendor / "bin" / name) for name in ("nvidia-smi", "nvidia-persistenced")
    }


def test_single_files_are_found_among_the_mounts(
    vendor: Path, tmp_path: Path, jail_driver: ModuleType
) -> None:
    """As the NVIDIA container toolkit mounts them. A library of the image is none of the driver."""
    libraries, programs = vendor / "lib64", vendor / "bin"
    mounts = [
        *("/", "/proc", "/etc/hosts", str(libraries / "libOpenCL.so.1")),
        str(libraries / "libicudata.so.74"),
        *(str(libraries / f"lib{name}.so.{VERSION}") for name in ("cuda", "nvidia-ml")),
        *(str(programs / name) for name in ("nvidia-smi", "nvidia-imex-ctl", "other")),
        *("/proc/driver/nvidia", "/dev/nvidia0", "/run/nvidia-persistenced"),
    ]
    found = jail_driver.find(mounts, tmp_path / "absent")
    assert found.libraries == {
        "libcuda.so.1": str(libraries / f"libcuda.so.{VERSION}"),
        "libnvidia-ml.so.1": str(libraries / f"libnvidia-ml.so.{VERSION}"),
    }
    assert found.programs == {"nvidia-smi": str(programs / "nvidia-smi")}


def test_a_container_without_a_driver_has_none(tmp_path: Path, jail_driver: ModuleType) -> None:
    assert (
        jail_driver.find(["/", "/proc", "/mnt/jail"], tmp_path / "absent") == jail_driver.Driver()
    )


def test_the_jail_knows_the_libraries_also_where_no_driver_is(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    """S096: ldconfig, as packages run it in a login, leaves them in the cache."""
    assert offer(jail_mounts, jail_driver, jail, vendor)
    assert cached(jail) == set(real_names())
    (jail / "etc/ld.so.cache").unlink()
    subprocess.run(["ldconfig", "-r", str(jail)], check=True)
    assert cached(jail) == set(real_names())


def test_a_placeholder_is_no_library_that_a_program_can_load(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    offer(jail_mounts, jail_driver, jail, vendor)
    with pytest.raises(OSError, match="no loadable segments"):
        ctypes.CDLL(str(jail / LIBRARIES / "libcuda.so.1"))


def test_a_second_start_writes_nothing(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    """Mounts of other containers of this Kubernetes node are on the files."""

    def state() -> dict[str, tuple[int, int]]:
        files = [path for path in jail.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}

    offer(jail_mounts, jail_driver, jail, vendor)
    before = state()
    assert offer(jail_mounts, jail_driver, jail, vendor)
    assert state() == before


def test_what_is_missing_or_wrong_is_put_into_place(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    """Root of the jail may remove files and put links: no link is followed."""
    offer(jail_mounts, jail_driver, jail, vendor)
    secret = jail.parent / "secret"
    secret.write_text("of the container")
    for path in (jail / LIBRARIES / "libcuda.so.1", jail / "etc/ld.so.conf.d/penstock-driver.conf"):
        path.unlink()
        path.symlink_to(secret)
    (jail / LIBRARIES / "libnvidia-ml.so.1").write_bytes(b"")
    (jail / "etc/ld.so.cache").unlink()
    (jail / "etc/ld.so.cache").symlink_to(secret)
    assert offer(jail_mounts, jail_driver, jail, vendor)
    assert cached(jail) == set(real_names())
    assert secret.read_text() == "of the container"
    assert not [path for path in jail.rglob("*") if path.is_symlink()]


def test_a_jail_that_reads_no_other_file_is_reported(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    (jail / "etc/ld.so.conf").write_text("/usr/local/lib\n")
    assert not offer(jail_mounts, jail_driver, jail, vendor)


def test_a_library_of_another_kind_stops_the_worker_with_its_name(
    vendor: Path, jail: Path, jail_mounts: ModuleType, jail_driver: ModuleType
) -> None:
    driver = jail_driver.Driver({"libcuda.so.1": str(vendor / "bin/nvidia-smi")}, {})
    one = jail_mounts.Jail(str(jail))
    with pytest.raises(jail_mounts.MountError, match=r"nvidia-smi is no library of 64 bits"):
        jail_mounts.offer(one, driver)


@contextlib.contextmanager
def kept(path: Path) -> Generator[None]:
    """The lock of another container."""
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_lock_that_stays_does_not_keep_the_worker(
    vendor: Path,
    jail: Path,
    jail_mounts: ModuleType,
    jail_driver: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jail_driver, "LOCK_SECONDS", 0.05)
    with kept(jail / LIBRARIES / ".lock"):
        assert offer(jail_mounts, jail_driver, jail, vendor)


def test_files_of_the_driver_are_mounted_read_only(jail_mounts: ModuleType) -> None:
    driver = jail_mounts.Driver(
        {"libcuda.so.1": "/d/libcuda.so.580"}, {"nvidia-smi": "/d/nvidia-smi"}
    )
    plain = jail_mounts.plan([], ["/usr/lib/slurm"], "/run/munge", "")
    found = jail_mounts.plan([], ["/usr/lib/slurm"], "/run/munge", "", driver)
    mount = jail_mounts.Mount
    assert found[len(plain) :] == [
        mount(LIBRARIES),
        mount(f"{LIBRARIES}/libcuda.so.1", "/d/libcuda.so.580", read_only=True),
        mount("run/penstock/driver/nvidia-smi", "/d/nvidia-smi", read_only=True),
        mount("run/nvidia-persistenced", "/run/nvidia-persistenced", optional=True),
        mount("run/nvidia-fabricmanager", "/run/nvidia-fabricmanager", optional=True),
    ]
    assert found[: len(plain)] == plain
