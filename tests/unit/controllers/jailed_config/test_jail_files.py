"""Files of a jail, in a real folder, beside users who plant what they like in it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.controllers.jailed_config import jail_files
from penstock.controllers.jailed_config.jail_errors import JailError
from penstock.controllers.jailed_config.jail_files import LARGEST, JailFiles
from penstock.model.jail_file import JailFile


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "jail"
    folder.mkdir()
    return folder


def topology(content: bytes = b"SwitchName=root\n", mode: int = 0o644) -> JailFile:
    return JailFile("/etc/slurm/topology.conf", content, mode)


def everything(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def modes(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def test_a_file_is_written_with_its_mode_and_folders_of_0755(root: Path) -> None:
    JailFiles(str(root)).write([topology(mode=0o755)])
    assert everything(root) == {"etc/slurm/topology.conf": b"SwitchName=root\n"}
    assert modes(root / "etc/slurm/topology.conf") == "0755"
    assert [modes(root / "etc"), modes(root / "etc/slurm")] == ["0755", "0755"]


def test_a_settled_file_does_not_differ_and_another_content_or_mode_does(root: Path) -> None:
    files = JailFiles(str(root))
    assert files.differing([topology()]) == (topology(),)
    files.write([topology()])
    assert files.differing([topology()]) == ()
    for other in (topology(b"SwitchName=boot\n"), topology(b"short"), topology(mode=0o600)):
        assert files.differing([other]) == (other,)


def test_a_reader_that_has_the_file_open_keeps_the_old_text(root: Path) -> None:
    files = JailFiles(str(root))
    files.write([topology(b"old")])
    with (root / "etc/slurm/topology.conf").open("rb") as reader:
        files.write([topology(b"new")])
        assert reader.read() == b"old"
    assert everything(root) == {"etc/slurm/topology.conf": b"new"}


def plant_link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("at", ["etc", "etc/slurm", "etc/slurm/topology.conf"])
def test_a_planted_symbolic_link_is_named_and_never_followed(
    root: Path, elsewhere: Path, at: str
) -> None:
    (elsewhere / "slurm").mkdir()
    (elsewhere / "topology.conf").write_bytes(b"theirs")
    plant_link(root / at, elsewhere / "topology.conf" if at.endswith("conf") else elsewhere)
    files = JailFiles(str(root))
    for act in (lambda: files.write([topology()]), lambda: files.differing([topology()])):
        with pytest.raises(JailError, match=f"/{at}: it is a symbolic link, which is never foll"):
            act()
    assert everything(elsewhere) == {"topology.conf": b"theirs"}


def test_an_absolute_link_to_the_folder_itself_is_rejected_as_well(root: Path) -> None:
    (root / "real").mkdir()
    plant_link(root / "etc", Path("real"))
    with pytest.raises(JailError, match="/etc: it is a symbolic link"):
        JailFiles(str(root)).write([topology()])
    assert everything(root) == {}


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


@pytest.mark.parametrize(
    ("make", "words"),
    [(make_folder, "a folder"), (os.mkfifo, "a named pipe"), (make_socket, "a socket")],
)
def test_what_is_no_file_is_named_and_stays(
    root: Path, make: Callable[[Path], None], words: str
) -> None:
    path = root / "etc/slurm/topology.conf"
    path.parent.mkdir(parents=True)
    make(path)
    before = path.stat()
    files = JailFiles(str(root))
    for act in (
        lambda: files.write([topology()]),
        lambda: files.differing([topology()]),
        lambda: files.read(topology().path),
    ):
        with pytest.raises(JailError, match=f"/etc/slurm/topology.conf: it is {words}; remove it"):
            act()
    assert path.stat().st_ino == before.st_ino


def test_a_file_in_place_of_a_folder_is_named(root: Path) -> None:
    (root / "etc").write_text("")
    with pytest.raises(JailError, match="/etc: it is a file; remove it, so that a folder can"):
        JailFiles(str(root)).write([topology()])


@pytest.mark.parametrize("at", ["open", "rename", "fsync", "fchmod"])
def test_a_folder_that_is_replaced_meanwhile_leads_nowhere_else(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Root in a job exchanges /etc/slurm for a link to a folder elsewhere, at the worst moment."""
    (root / "etc/slurm").mkdir(parents=True)
    (elsewhere / "topology.conf").write_bytes(b"theirs")
    real = getattr(os, at)
    exchanged: list[str] = []

    def exchange(*arguments: Any, **options: Any) -> Any:
        opens_other = at == "open" and not str(arguments[0]).startswith(".penstock")
        if not exchanged and not opens_other:
            exchanged.append(at)
            (root / "etc/slurm").rename(root / "etc/moved")
            (root / "etc/slurm").symlink_to(elsewhere)
        return real(*arguments, **options)

    monkeypatch.setattr(jail_files.os, at, exchange)
    JailFiles(str(root)).write([topology()])
    assert exchanged
    assert everything(elsewhere) == {"topology.conf": b"theirs"}
    assert everything(root) == {"etc/moved/topology.conf": b"SwitchName=root\n"}


def test_a_link_that_is_planted_as_the_file_meanwhile_is_replaced(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "passwd").write_bytes(b"theirs")
    real = os.rename

    def planting(*arguments: Any, **options: Any) -> None:
        (root / "etc/slurm/topology.conf").symlink_to(elsewhere / "passwd")
        real(*arguments, **options)

    monkeypatch.setattr(jail_files.os, "rename", planting)
    JailFiles(str(root)).write([topology()])
    assert everything(elsewhere) == {"passwd": b"theirs"}
    assert not (root / "etc/slurm/topology.conf").is_symlink()


def test_a_planted_name_of_a_staged_file_is_not_written_through(
    root: Path, elsewhere: Path
) -> None:
    files = JailFiles(str(root))
    (root / "etc/slurm").mkdir(parents=True)
    (elsewhere / "passwd").write_bytes(b"theirs")
    staged = jail_files.staged_name("topology.conf")
    (root / "etc/slurm" / staged).symlink_to(elsewhere / "passwd")
    files.write([topology()])
    assert everything(elsewhere) == {"passwd": b"theirs"}
    (root / "etc/slurm" / staged).mkdir()
    with pytest.raises(JailError, match=r"/etc/slurm/topology\.conf: "):
        files.write([topology(b"other")])
    assert (root / "etc/slurm/topology.conf").read_bytes() == b"SwitchName=root\n"


def test_500_files_and_one_of_1_mib_are_written_and_settle(root: Path) -> None:
    files = JailFiles(str(root))
    many = [JailFile(f"/opt/a/{n % 20}/{n}", str(n).encode()) for n in range(499)]
    many.append(JailFile("/opt/large", b"x" * LARGEST))
    files.write(many)
    assert files.differing(many) == ()
    assert len(everything(root)) == 500


def test_a_file_above_1_mib_is_rejected_before_anything_changes(root: Path) -> None:
    with pytest.raises(JailError, match="/opt/large: its content has more than 1048576 bytes"):
        JailFiles(str(root)).write([topology(), JailFile("/opt/large", b"x" * (LARGEST + 1))])
    assert everything(root) == {}


def test_too_many_folders_are_rejected_and_descriptors_are_closed(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(JailError, match="may use at most 256 folders"):
        JailFiles(str(root)).write([JailFile(f"/{n}/file", b"") for n in range(300)])
    assert everything(root) == {}
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_mode_that_nobody_could_compare_again_is_rejected(root: Path) -> None:
    with pytest.raises(JailError, match="mode 0200 must let the owner read it"):
        JailFiles(str(root)).write([topology(mode=0o200)])


def test_a_huge_file_is_not_read(root: Path) -> None:
    files = JailFiles(str(root))
    files.write([topology()])
    os.truncate(root / "etc/slurm/topology.conf", 1 << 40)
    assert files.differing([topology()]) == (topology(),)
    assert files.read(topology().path) is None


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the jail is full; free space in it or enlarge its volume"),
        (errno.EDQUOT, "the quota of the jail is used up"),
        (errno.EROFS, "the jail is mounted read-only"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_volume_that_takes_no_more_changes_nothing_and_leaves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    files = JailFiles(str(root))
    old = [JailFile("/etc/a", b"old"), JailFile("/etc/b", b"old")]
    files.write(old)
    real, writes = os.write, iter(range(10))

    def failing(descriptor: int, data: bytes) -> int:
        if next(writes) == 1:
            raise OSError(number, os.strerror(number))
        return real(descriptor, data)

    monkeypatch.setattr(jail_files.os, "write", failing)
    with pytest.raises(JailError, match=f"^/etc/b: {words}"):
        files.write([JailFile("/etc/a", b"new"), JailFile("/etc/b", b"new")])
    assert everything(root) == {"etc/a": b"old", "etc/b": b"old"}


def test_an_absent_jail_is_named(tmp_path: Path) -> None:
    with pytest.raises(JailError, match="/absent: No such file or directory"):
        JailFiles(str(tmp_path / "absent")).write([topology()])


def test_removing_spares_folders_and_never_follows_a_link(root: Path, elsewhere: Path) -> None:
    files = JailFiles(str(root))
    (elsewhere / "b").write_bytes(b"theirs")
    files.write([JailFile("/etc/a", b"")])
    (root / "etc/b").symlink_to(elsewhere / "b")
    (root / "etc/c").mkdir()
    files.write([], removed=["/etc/a", "/etc/b", "/etc/c", "/etc/absent", "/absent/d"])
    assert sorted(path.name for path in (root / "etc").iterdir()) == ["c"]
    assert everything(elsewhere) == {"b": b"theirs"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_folder_of_somebody_else_is_reported(root: Path) -> None:
    (root / "etc/slurm").mkdir(parents=True)
    process = os.fork()
    if not process:
        words = ""
        try:
            os.chdir(root)  # the user may not pass the folders above
            os.setgid(1001)
            os.setuid(1001)
            JailFiles(".").write([topology()])
        except JailError as error:
            words = str(error)
        os._exit(0 if "/etc/slurm/topology.conf: permission denied; let the user" in words else 1)
    assert os.waitpid(process, 0)[1] == 0
