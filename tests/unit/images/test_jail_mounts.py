"""The mounts that complete a jail: which ones, and what root of the jail can do about them."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from unit.images.conftest import CONTAINERD

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
PLUGINS = ("/usr/lib/a-b-c/slurm-wlm", "/usr/lib/slurm")
AUTH = "/run/munge"
SPOOL = "/var/spool/slurmd"
INSIDE = """
import errno, json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import jail_mounts
from jail_mounts import Jail, Mount
jail, folder = Path(sys.argv[2]), Path(sys.argv[3])
mounts = [Mount(**one) for one in json.loads(sys.argv[4])]
answers = {}
def attempt(name, action):
    try:
        action()
        answers[name] = "DONE"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
try:
    Jail(str(jail)).complete(mounts)
except jail_mounts.MountError as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A jail with Slurm's configuration, and folders of a container."""
    for name in ("jail/etc/slurm", "jail/usr/bin", "container/plugins", "container/scratch"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "jail/etc/slurm/plugstack.conf").write_text("active")
    (tmp_path / "container/plugins/chroot.so").write_text("ours")
    (tmp_path / "container/scratch/data").write_text("of the volume")
    (tmp_path / "container/hosts").write_text("127.0.0.1 pod")
    return tmp_path


def complete(
    folder: Path,
    mounts: list[dict[str, Any]],
    script: str,
    mounted: str = "",
    limits: Sequence[str] = (),
) -> dict[str, str]:
    """Complete the jail in a mount namespace; `script` fills `answers`.

    The folder `mounted` is a mount point before, as a volume of a pod. `limits` is a command that
    runs the program.
    """
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    code = f"{INSIDE}\n{script}\nprint(json.dumps(answers))"
    bind = 'if [ "$0" ]; then mount --bind "$0" "$0"; fi; exec "$@"'
    names = [str(ENTRYPOINTS), str(folder / "jail"), str(folder), json.dumps(mounts)]
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation=private", "sh", "-ec", bind, mounted),
            *(*limits, sys.executable, "-B", "-c", code, *names),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip("namespaces are not allowed here")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_above_what_is_read_only_is_a_mount_point(jail_mounts: ModuleType) -> None:
    found = jail_mounts.plan([], PLUGINS, AUTH, SPOOL)
    itself = [one.target for one in found if not one.source and not one.kind]
    assert itself == [
        *("etc", "usr", "usr/lib", "usr/lib/a-b-c", "opt", "opt/penstock", "var", "var/spool"),
        *jail_mounts.KERNEL,
    ]
    read_only = [one.target for one in found if one.read_only]
    tail = ["usr/lib/a-b-c/slurm-wlm", "usr/lib/slurm", "opt/penstock/slurm"]
    assert read_only == [*jail_mounts.KERNEL, *tail]


def test_folders_of_pyxis_and_enroot_are_the_containers(jail_mounts: ModuleType) -> None:
    """S102: images are unpacked there, and the jail's /run is memory."""
    found = jail_mounts.plan([], PLUGINS, AUTH, "")
    order = [one.target for one in found]
    for path in ("run/pyxis", "run/enroot"):
        assert jail_mounts.Mount(path, f"/{path}") in found
        assert order.index("run") < order.index(path)


def test_a_login_has_no_spool(jail_mounts: ModuleType) -> None:
    targets = {one.target for one in jail_mounts.plan([], PLUGINS, AUTH, "")}
    assert not {one for one in targets if one.startswith("var/spool")}


@pytest.mark.parametrize(
    ("folder", "target"),
    [
        (AUTH, "run/munge"),
        ("/var/run/m", "run/m"),
        ("/srv/munge", "srv/munge"),
    ],
)
def test_the_socket_of_clients_has_its_path_in_the_jail(
    jail_mounts: ModuleType, folder: str, target: str
) -> None:
    found = jail_mounts.plan([], PLUGINS, folder, SPOOL)
    assert jail_mounts.Mount(target, folder) in found
    order = [one.target for one in found]
    assert order.index("run") < order.index(target)


def test_volumes_below_the_upper_folder_are_moved(jail_mounts: ModuleType) -> None:
    """One within another goes with it. The jail's own volume on / is none (S104)."""
    mountinfo = "\n".join(
        f"{number} 1 0:1 / {point} rw - tmpfs tmpfs rw"
        for number, point in enumerate(
            (
                *("/", "/mnt/jail", "/mnt/jail.upper", "/mnt/jail.upper/scratch/fast"),
                *("/mnt/jail.upper/scratch", "/mnt/jail.upper/mnt/my\\040data", "/mnt/jail.uppers"),
                "/mnt/jail.upper/scratch2",
            )
        )
    )
    points = jail_mounts.mount_points(mountinfo)
    moved = jail_mounts.sub_mounts(points)
    assert moved == ["mnt/my data", "scratch", "scratch2"]
    found = jail_mounts.plan(moved, PLUGINS, AUTH, SPOOL)
    assert [(one.target, one.source) for one in found if one.move] == [
        (path, f"/mnt/jail.upper/{path}") for path in moved
    ]


def test_root_can_neither_write_nor_rename_the_configuration(folder: Path) -> None:
    mounts = [{"target": "etc"}, {"target": "usr"}]
    script = """
etc = jail / "etc"
attempt("write", lambda: (etc / "slurm/plugstack.conf").write_text("mine"))
attempt("rename the file", lambda: (etc / "slurm/plugstack.conf").rename(etc / "slurm/old"))
attempt("rename the folder", lambda: (etc / "slurm").rename(etc / "old"))
attempt("rename the folder above", lambda: etc.rename(jail / "old"))
attempt("remove the folder", lambda: (etc / "slurm").rmdir())
attempt("write beside it", lambda: (etc / "passwd").write_text("mine"))
"""
    assert complete(folder, mounts, script) == {
        "write": "EROFS",
        "rename the file": "EROFS",
        "rename the folder": "EBUSY",
        "rename the folder above": "EBUSY",
        "remove the folder": "EBUSY",
        "write beside it": "DONE",
    }


def test_files_that_are_renamed_into_the_volume_are_seen(folder: Path) -> None:
    """As sconfigcontroller does, in a container without these mounts."""
    script = f"""
other = Path("/proc") / str(os.getppid()) / "root{folder}/jail/etc/slurm"
(other / ".new").write_text("next")
(other / ".new").rename(other / "plugstack.conf")
answers["text"] = (jail / "etc/slurm/plugstack.conf").read_text()
"""
    assert complete(folder, [{"target": "etc"}], script) == {"text": "next"}


def test_folders_and_files_of_the_container_are_bound(folder: Path) -> None:
    """A read-only one stays so, a missing target is made, a link in place of a file goes."""
    (folder / "jail/etc/hosts").symlink_to(folder / "secret")
    (folder / "secret").write_text("of the container")
    container = folder / "container"
    mounts: list[dict[str, Any]] = [
        {"target": "etc"},
        {"target": "usr/lib/slurm", "source": f"{container}/plugins", "read_only": True},
        {"target": "etc/hosts", "source": f"{container}/hosts"},
        {"target": "absent", "source": f"{container}/absent", "optional": True},
        {"target": "run", "kind": "tmpfs", "options": "mode=755"},
    ]
    script = """
answers["hosts"] = (jail / "etc/hosts").read_text()
answers["secret"] = (folder / "secret").read_text()
attempt("plug-in", lambda: (jail / "usr/lib/slurm/chroot.so").write_text("mine"))
answers["plug-in is"] = (jail / "usr/lib/slurm/chroot.so").read_text()
answers["run"] = oct((jail / "run").stat().st_mode & 0o7777)
answers["absent"] = str((jail / "absent").exists())
"""
    assert complete(folder, mounts, script) == {
        "hosts": "127.0.0.1 pod",
        "secret": "of the container",
        "plug-in": "EROFS",
        "plug-in is": "ours",
        "run": "0o755",
        "absent": "False",
    }
    assert (folder / "jail/etc/hosts").read_text() == ""


def test_a_volume_is_moved_and_cannot_hide_the_configuration(folder: Path) -> None:
    upper = folder / "container/scratch"
    mounts: list[dict[str, Any]] = [
        {"target": "scratch", "source": str(upper), "move": True},
        {"target": "etc", "source": f"{folder}/container", "move": False},
    ]
    script = """
answers["data"] = (jail / "scratch/data").read_text()
answers["configuration"] = (jail / "etc/slurm/plugstack.conf").read_text()
attempt("write", lambda: (jail / "etc/slurm/plugstack.conf").write_text("mine"))
answers["upper"] = str(os.path.ismount(folder / "container/scratch"))
"""
    assert complete(folder, mounts, script, mounted=str(upper)) == {
        "data": "of the volume",
        "configuration": "active",
        "write": "EROFS",
        "upper": "False",
    }


@pytest.mark.parametrize("name", ["etc", "etc/slurm"])
def test_no_symbolic_link_is_followed(folder: Path, name: str) -> None:
    """Root of the jail could otherwise have a folder of the container mounted upon."""
    path = folder / "jail" / name
    path.rename(folder / "moved")
    path.symlink_to(folder / "container")
    found = complete(folder, [{"target": "etc"}], "")
    assert "it must be a folder or file, and no symbolic link" in found["error"]
    assert f"jail/{name}: " in found["error"]


def test_links_to_the_clients_replace_nothing(jail_mounts: ModuleType, folder: Path) -> None:
    local = folder / "jail/usr/local/bin"
    local.mkdir(parents=True)
    (local / "sinfo").write_text("mine")
    for _ in range(2):
        jail_mounts.Jail(str(folder / "jail")).link("usr/local/bin", ["sinfo", "srun"], "/opt/bin")
    assert (local / "sinfo").read_text() == "mine"
    assert (local / "srun").readlink() == Path("/opt/bin/srun")


@pytest.mark.parametrize("added", [["sys_admin"], []])
def test_a_jail_is_not_completed_without_sys_admin(folder: Path, added: list[str]) -> None:
    """S172: the only capability that slurmd and sshd have beside those of containerd."""
    bounding = ",".join(["-all", *(f"+{one}" for one in (*CONTAINERD, *added))])
    limits = ["setpriv", f"--bounding-set={bounding}"]
    found = complete(folder, [{"target": "run", "kind": "tmpfs"}], "", limits=limits)
    if added:
        assert found == {}
    else:
        assert "permission denied" in found["error"]
