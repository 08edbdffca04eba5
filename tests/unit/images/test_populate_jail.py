"""The program that fills the jail, on folders in place of volumes."""

import os
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest

from penstock.render.nebius.cluster import populate_jail
from support.nebius_clusters import CURRENT, of_shape
from unit.images.conftest import CRI_O

PROGRAM = Path(__file__).parents[3] / "images/entrypoints/populate-jail"
MARKER = "etc/soperator-jail-populated"
PASSWD = "root:x:0:0::/root:/bin/bash\nslurm:x:401:401::/:/bin/false\n"
SMALL = "600k"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files change their owner")


class Volume:
    """An image's root, a volume, and the program that copies the one to the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.jail, self.bin = folder / "image", folder / "jail", folder / "bin"
        self.message = folder / "message"
        for path in (self.jail, self.bin, *(self.source / name for name in SOURCE_FOLDERS)):
            path.mkdir(parents=True)
        self.jail.chmod(0o777)
        self.message.touch()
        (self.source / "usr/bin/tool").write_text("version 1")
        (self.source / "usr/bin/tool").chmod(0o4755)
        (self.source / "bin").symlink_to("usr/bin")
        for name, text in SOURCE_FILES.items():
            (self.source / name).write_text(text)
        self.shim("mountpoint", '[ -d "$2" ]')

    def shim(self, name: str, script: str) -> None:
        """Replace a program."""
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def environment(self, **more: str) -> Mapping[str, str]:
        return {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "SOURCE": str(self.source),
            "JAIL": str(self.jail),
            "SNAPSHOT": str(self.folder / "snapshot"),
            "TERMINATION_LOG": str(self.message),
            **more,
        }

    def start(self, *limits: str, **more: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*limits, "bash", str(PROGRAM)],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *limits: str, **more: str) -> tuple[int, str]:
        """`limits` is a command that runs the program."""
        process = self.start(*limits, **more)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    def names(self) -> set[str]:
        return {path.name for path in self.jail.iterdir()}

    @property
    def is_marked(self) -> bool:
        return (self.jail / MARKER).exists()


SOURCE_FOLDERS = ("usr/bin", "etc/slurm", "proc/1", "dev/x", "run/y", "home", "root", "mnt/jail")
SOURCE_FILES = {
    "etc/os-release": 'PRETTY_NAME="Test 1"\n',
    "etc/passwd": PASSWD,
    "etc/group": "root:x:0:\nslurm:x:401:\n",
    "etc/shadow": "root:*:1::::::\nslurm:!:1::::::\n",
    "etc/gshadow": "root:*::\nslurm:!::\n",
    "etc/hosts": "127.0.0.1 builder\n",
    "etc/slurm/example": "1",
    "root/.profile": "image",
}
FILLED = {"bin", "dev", "etc", "home", "mnt", "proc", "root", "run", "sys", "tmp", "usr"}


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    return Volume(tmp_path)


def test_copies_the_root_once(volume: Volume) -> None:
    """Folders of mounts are empty, special modes and links are kept, the top is root's."""
    code, said = volume.run()
    assert code == 0, said
    assert volume.names() == FILLED
    assert (volume.jail / "usr/bin/tool").stat().st_mode & 0o7777 == 0o4755
    assert (volume.jail / "bin").readlink() == Path("usr/bin")
    assert (volume.jail / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert not any(list((volume.jail / name).iterdir()) for name in ("proc", "dev", "run", "tmp"))
    assert (volume.jail / "etc/hosts").read_text() == ""
    assert (volume.jail.stat().st_mode & 0o7777, volume.jail.stat().st_uid) == (0o755, 0)
    marker = (volume.jail / MARKER).read_text()
    assert marker.startswith('from="Test 1" at=')

    (volume.source / "usr/bin/tool").write_text("version 2")
    code, said = volume.run()
    assert (code, said) == (0, f"populate-jail: filled already: {marker}")
    assert (volume.jail / "usr/bin/tool").read_text() == "version 1"


def test_a_jail_of_an_older_image_is_filled(volume: Volume) -> None:
    (volume.jail / ".populated").write_text("older")
    code, said = volume.run()
    assert (code, volume.names()) == (0, {".populated"}), said


def test_two_at_once_copy_once(volume: Volume) -> None:
    first, second = volume.start(), volume.start()
    said = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert sum("filled already" in one for one in said) == 1, said
    assert volume.names() == FILLED


@pytest.mark.parametrize("program", ["tar", "mv", "sync"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_copy_that_is_cut_off_counts_for_nothing(volume: Volume, program: str, when: str) -> None:
    """Killed at its first call of a program, before or after; the next run has no file of it."""
    reached = volume.folder / "reached"
    hang = f'touch "{reached}"; sleep 100'
    real = f'PATH=${{PATH#*:}}; {program} "$@"'
    volume.shim(program, f"{real}; {hang}" if when == "after" else f"{hang}; {real}")
    process = volume.start()
    deadline = time.monotonic() + 20
    while not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert reached.exists()
    assert not volume.is_marked

    (volume.bin / program).unlink()
    (volume.source / "usr/bin/other").write_text("version 2")
    (volume.source / "usr/bin/tool").unlink()
    code, said = volume.run()
    assert code == 0, said
    assert "starting again" in said
    assert volume.names() == FILLED
    assert [path.name for path in (volume.jail / "usr/bin").iterdir()] == ["other"]


def test_cut_off_between_two_renames(volume: Volume) -> None:
    """The third rename fails; what was renamed before is replaced as well."""
    count = volume.folder / "count"
    script = f'echo >>"{count}"; [ $(wc -l <"{count}") -lt 3 ] || exit 1; exec /bin/mv "$@"'
    volume.shim("mv", script)
    code, said = volume.run()
    assert code == 1
    assert "cannot be renamed" in said
    assert not volume.is_marked
    (volume.bin / "mv").unlink()
    (volume.source / "bin").unlink()
    code, said = volume.run()
    assert code == 0, said
    assert volume.names() == FILLED - {"bin"}


def test_files_of_something_else_are_left_alone(volume: Volume) -> None:
    (volume.jail / "data").mkdir()
    (volume.jail / "data/result").write_text("precious")
    code, said = volume.run()
    assert code == 3
    assert f"{volume.jail}/data/result is there" in said
    assert volume.message.read_text() == said.splitlines(keepends=True)[-1]
    assert volume.names() == {"data"}


def test_mount_points_of_sub_paths_do_not_count(volume: Volume) -> None:
    """The kubelet makes them, also below folders that the image has."""
    for name in ("scratch", "usr/data", "lost+found"):
        (volume.jail / name).mkdir(parents=True)
    inode = (volume.jail / "usr/data").stat().st_ino
    code, said = volume.run()
    assert code == 0, said
    assert volume.names() == FILLED | {"scratch", "lost+found"}
    assert (volume.jail / "usr/data").stat().st_ino == inode
    assert (volume.jail / "usr/bin/tool").read_text() == "version 1"


@pytest.fixture
def full(volume: Volume) -> Generator[Volume]:
    """A volume that is too small."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(volume.jail)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounts are not allowed here")
    yield volume
    subprocess.run(["umount", str(volume.jail)], check=True)


def test_a_full_volume_is_reported(full: Volume) -> None:
    (full.source / "usr/big").write_bytes(bytes(2_000_000))
    code, said = full.run()
    assert code == 1
    assert "No space left on device" in said
    assert f"{full.jail} has 6" in said
    assert "of space" in full.message.read_text()
    assert not full.is_marked
    (full.source / "usr/big").unlink()
    assert full.run()[0] == 0


def test_a_snapshot_goes_before_the_image(volume: Volume) -> None:
    """D51."""
    other = Volume(volume.folder / "other")
    (other.source / MARKER).write_text("from another volume")
    (other.source / "usr/bin/tool").write_text("of the snapshot")
    code, said = volume.run(SNAPSHOT=str(other.source))
    assert code == 0, said
    assert (volume.jail / "usr/bin/tool").read_text() == "of the snapshot"
    assert "another volume" not in (volume.jail / MARKER).read_text()


def test_an_empty_snapshot_is_no_root(volume: Volume) -> None:
    (volume.folder / "snapshot").mkdir()
    code, said = volume.run()
    assert code == 1
    assert "snapshot has no usr/bin" in said
    assert not volume.names()


@pytest.fixture
def used(volume: Volume) -> Volume:
    """A filled jail with users in it, and a newer image."""
    assert volume.run()[0] == 0
    jail, source = volume.jail, volume.source
    (jail / "etc/passwd").write_text(PASSWD + "alice:x:2001:2001::/home/alice:/bin/bash\n")
    (jail / "home/alice").mkdir()
    (jail / "home/alice/paper").write_text("mine")
    (jail / "usr/bin/mine").write_text("mine")
    (jail / "etc/slurm/example").write_text("active")
    (jail / "root/.profile").write_text("mine")
    (source / "usr/bin/tool").write_text("version 2")
    (source / "etc/slurm/example").write_text("2")
    (source / "etc/passwd").write_text(PASSWD + "new:x:150:150::/:/bin/false\nbob:x:2001:1::/:\n")
    (source / "etc/shadow").write_text("new:!:2::::::\nbob:!:2::::::\n")
    return volume


def assert_overwritten(volume: Volume) -> None:
    jail = volume.jail
    assert (jail / "usr/bin/tool").read_text() == "version 2"
    for name in ("home/alice/paper", "usr/bin/mine", "root/.profile"):
        assert (jail / name).read_text() == "mine"
    assert (jail / "etc/slurm/example").read_text() == "active"
    passwd = (jail / "etc/passwd").read_text()
    assert [line.partition(":")[0] for line in passwd.splitlines()] == [
        *("root", "slurm", "alice", "new")
    ]
    assert (jail / "etc/shadow").read_text() == SOURCE_FILES["etc/shadow"] + "new:!:2::::::\n"
    assert volume.is_marked
    assert volume.names() == FILLED


def test_overwriting_removes_nothing(used: Volume) -> None:
    """D51. Accounts, homes and Slurm's configuration stay; accounts of the image are added."""
    code, said = used.run(OVERWRITE="1")
    assert code == 0, said
    assert_overwritten(used)


def test_overwriting_that_is_cut_off_is_repeated(used: Volume) -> None:
    """Also by a Job that would not overwrite: until then the jail is not filled."""
    used.shim("tar", "exit 2")
    code, said = used.run(OVERWRITE="1")
    assert code == 1, said
    assert not used.is_marked
    (used.bin / "tar").unlink()
    code, said = used.run(OVERWRITE="0")
    assert code == 0, said
    assert "a former replacement of files was cut off" in said
    assert_overwritten(used)


def test_a_jail_follows_another_one_that_was_filled_again(volume: Volume) -> None:
    """S177: also when it is killed right after it has replaced the files."""
    other, tool = volume.folder / "other", volume.jail / "usr/bin/tool"

    def version(text: str) -> str:
        (volume.source / "usr/bin/tool").write_text(text)
        code, said = volume.run(FOLLOW=str(other))
        assert code == 0, said
        return tool.read_text()

    other.write_text("at=1\n")
    assert [version("1"), version("2")] == ["1", "1"]
    other.write_text("at=2\n")
    assert [version("3"), version("4")] == ["3", "3"]
    volume.shim("mkdir", 'case $2 in */penstock) kill -9 $PPID ;; esac; PATH=${PATH#*:} mkdir "$@"')
    other.write_text("at=3\n")
    (volume.source / "usr/bin/tool").write_text("5")
    assert volume.run(FOLLOW=str(other))[0] == -signal.SIGKILL
    assert tool.read_text() == "5"
    (volume.bin / "mkdir").unlink()
    assert version("6") == "6"
    other.unlink()
    assert version("7") == "6"


def test_overwriting_an_empty_volume_fills_it(volume: Volume) -> None:
    code, said = volume.run(OVERWRITE="1")
    assert code == 0, said
    assert volume.names() == FILLED


def test_without_a_volume_nothing_is_written(volume: Volume) -> None:
    volume.shim("mountpoint", "exit 1")
    code, said = volume.run()
    assert code == 1
    assert "is no mount" in said
    assert not volume.names()


def added() -> Sequence[str]:
    """The capabilities that the Job's container adds, in the spelling of setpriv(1)."""
    made = populate_jail.job(of_shape(CURRENT).inputs, overwrite=False)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    return [one.lower() for one in container["securityContext"]["capabilities"]["add"]]


@pytest.mark.parametrize("dropped", ["", *added()])
def test_a_jail_filled_without_setfcap_lacks_file_capabilities(
    volume: Volume, dropped: str
) -> None:
    """S172: beside the default capabilities of CRI-O. Nothing here needs SYS_ADMIN."""
    value = bytes.fromhex("0100000200200000000000000000000000000000")
    os.setxattr(volume.source / "usr/bin/tool", "security.capability", value)
    left = [one for one in (*CRI_O, *added()) if one != dropped]
    given = ",".join(["-all", *(f"+{one}" for one in left)])
    code, said = volume.run("setpriv", f"--bounding-set={given}", f"--inh-caps={given}")
    assert code == 0, said
    found = os.listxattr(volume.jail / "usr/bin/tool")
    assert ("security.capability" in found) == (dropped != "setfcap")
