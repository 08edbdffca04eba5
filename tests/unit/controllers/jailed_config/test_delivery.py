"""The configuration of a cluster in its jail: whole, or visibly on its way, at every moment."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.controllers.jailed_config.delivery import deliver
from penstock.controllers.jailed_config.jail_errors import JailError
from penstock.controllers.jailed_config.jail_files import JailFiles
from penstock.render.config.content import content_hash

FOLDER, MANIFEST = "etc/slurm", "etc/slurm/.penstock-files"
CALLS = ("open", "stat", "read", "write", "fchmod", "fsync", "rename", "unlink", "mkdir")
OLD = {"slurm.conf": b"include a.conf", "a.conf": b"old", "cgroup.conf": b"same", "b.conf": b"b"}
NEW = {"slurm.conf": b"include c.conf", "a.conf": b"new", "cgroup.conf": b"same", "c.conf": b"c"}


class Killed(BaseException):
    """The process ends here: nothing that it would do later is done."""


@contextmanager
def killed_at(step: int) -> Any:
    """Let that system call and all later ones never happen."""
    count = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count >= step:
                raise Killed
            return real(*arguments, **options)

        return call

    with ExitStack() as stack:
        for name in CALLS:
            stack.enter_context(mock.patch.object(os, name, counted(getattr(os, name))))
        yield


def read(root: Path) -> dict[str, bytes]:
    """The visible files of the folder, as a shell's * has them."""
    folder = root / FOLDER
    found = folder.iterdir() if folder.is_dir() else ()
    return {one.name: one.read_bytes() for one in found if not one.name.startswith(".")}


def checked(root: Path) -> dict[str, bytes] | None:
    """The files that the manifest names, if each has the content of its line."""
    path = root / MANIFEST
    if not path.exists():
        return None
    found: dict[str, bytes] = {}
    for line in path.read_text().splitlines():
        sum_, name = line.split("  ")
        file = root / FOLDER / name
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != sum_:
            return None
        found[name] = file.read_bytes()
    return found


def shell(folder: Path, command: str) -> bytes:
    environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
    options = ["sh", "-c", command]
    return subprocess.run(
        options, cwd=folder, env=environment, capture_output=True, check=True
    ).stdout


def test_the_manifest_is_what_sha256sum_prints_and_its_hash_that_of_the_configuration(
    tmp_path: Path,
) -> None:
    files = {**NEW, "slurm_base.conf.noedit": "ä\n".encode(), "Z.conf": b"", "_x": b"\xff\x00"}
    deliver(JailFiles(str(tmp_path)), files)
    manifest = (tmp_path / MANIFEST).read_bytes()
    assert manifest == shell(tmp_path / FOLDER, "sha256sum -- *")
    assert shell(tmp_path / FOLDER, "sha256sum --quiet -c .penstock-files") == b""
    texts = {name: one.decode(errors="surrogateescape") for name, one in files.items()}
    assert hashlib.sha256(manifest).hexdigest() == content_hash(texts)


def test_hidden_files_and_single_keys_are_in_no_hash_and_not_delivered(tmp_path: Path) -> None:
    files = {**NEW, ".hidden": b"", "slurm.key": b"k", "jwt.key": b"k"}
    deliver(JailFiles(str(tmp_path)), files)
    assert read(tmp_path) == NEW
    texts = {name: one.decode() for name, one in files.items()}
    manifest = (tmp_path / MANIFEST).read_bytes()
    assert hashlib.sha256(manifest).hexdigest() == content_hash(texts)


def test_a_delivered_configuration_is_settled(tmp_path: Path) -> None:
    jail = JailFiles(str(tmp_path))
    assert deliver(jail, NEW) == 5
    before = {one.name: one.stat().st_ino for one in (tmp_path / FOLDER).iterdir()}
    assert deliver(jail, NEW) == 0
    assert {one.name: one.stat().st_ino for one in (tmp_path / FOLDER).iterdir()} == before


def test_only_changed_files_are_replaced_and_only_named_ones_removed(tmp_path: Path) -> None:
    jail = JailFiles(str(tmp_path))
    deliver(jail, OLD)
    (tmp_path / FOLDER / "topology.conf").write_bytes(b"a user's")
    before = (tmp_path / FOLDER / "cgroup.conf").stat().st_ino
    deliver(jail, NEW)
    assert read(tmp_path) == {**NEW, "topology.conf": b"a user's"}
    assert (tmp_path / FOLDER / "cgroup.conf").stat().st_ino == before


def test_slurm_conf_comes_after_all_that_it_includes_and_the_manifest_last(tmp_path: Path) -> None:
    renamed: list[str] = []
    real = os.rename

    def noted(source: str, target: str, **options: Any) -> None:
        renamed.append(target)
        real(source, target, **options)

    with mock.patch.object(os, "rename", noted):
        deliver(JailFiles(str(tmp_path)), NEW)
    announced, *files, manifest = renamed
    assert files == ["a.conf", "c.conf", "cgroup.conf", "slurm.conf"]
    assert announced == manifest == ".penstock-files"


@pytest.mark.parametrize(
    "forged",
    [
        b"0" * 64 + b"  ../../passwd\n",
        b"0" * 64 + b"  /etc/passwd\n",
        b"0" * 64 + b"  .bashrc\n",
        b"passwd\n",
        b"\xff\xfe\n",
        b"x" * (2**20 + 1),
    ],
)
def test_a_forged_manifest_removes_nothing_elsewhere(tmp_path: Path, forged: bytes) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    for path in ("passwd", "etc/passwd", f"{FOLDER}/.bashrc"):
        (tmp_path / path).write_text("")
    (tmp_path / MANIFEST).write_bytes(forged)
    deliver(JailFiles(str(tmp_path)), NEW)
    assert checked(tmp_path) == NEW
    assert all((tmp_path / path).exists() for path in ("passwd", "etc/passwd"))
    assert (tmp_path / FOLDER / ".bashrc").exists()


def test_a_manifest_that_is_a_link_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / MANIFEST).symlink_to("/etc/passwd")
    with pytest.raises(JailError, match=r"/etc/slurm/\.penstock-files: it is a symbolic link"):
        deliver(JailFiles(str(tmp_path)), NEW)


def test_each_point_of_a_kill_leaves_old_or_new_files_and_the_next_process_completes() -> None:
    step, completed = 0, False
    while not completed:
        step += 1
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            jail = JailFiles(name)
            deliver(jail, OLD)
            (root / FOLDER / "topology.conf").write_bytes(b"a user's")
            try:
                with killed_at(step):
                    deliver(jail, NEW)
                completed = True
            except Killed:
                pass
            found = read(root)
            assert found.pop("topology.conf") == b"a user's"
            for file, content in found.items():
                assert content in (OLD.get(file), NEW.get(file)), (step, file)
            assert checked(root) in (None, OLD, NEW), step
            if found["slurm.conf"] == NEW["slurm.conf"]:
                assert found["c.conf"] == b"c", "slurm.conf includes a file that is there"
            if found["slurm.conf"] == OLD["slurm.conf"]:
                assert found["a.conf"] in (b"old", b"new")
            # Another configuration than the one that was cut off is wanted by now.
            deliver(jail, {"slurm.conf": b"last"})
            assert read(root) == {"slurm.conf": b"last", "topology.conf": b"a user's"}, step
            assert checked(root) == {"slurm.conf": b"last"}
    assert step > 60


NAMES = st.sampled_from(["a.conf", "b.conf", "c.conf", "gres.conf"])
STATES = st.dictionaries(NAMES, st.sampled_from([b"", b"1", b"2"])).map(
    lambda one: {**one, "slurm.conf": b"\n".join(sorted(name.encode() for name in one))}
)
STEPS = st.lists(
    st.tuples(STATES, st.none() | st.integers(1, 130), st.sampled_from(["", "write", "remove"])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_whatever_happens_a_checked_manifest_names_one_whole_configuration(
    steps: list[tuple[Mapping[str, bytes], int | None, str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, jail = Path(name), JailFiles(name)
        states: list[Mapping[str, bytes]] = []
        written: dict[str, set[bytes]] = {}
        for state, kill, user in steps:
            states.append(state)
            for file, content in state.items():
                written.setdefault(file, set()).add(content)
            killed = False
            try:
                with killed_at(kill or 10**6):
                    deliver(jail, state)
            except Killed:
                killed = True
            found = read(root)
            assert all(found[file] in written[file] for file in found)
            assert checked(root) in (None, *states)
            if not killed:
                assert found == checked(root) == state
            # A user spoils one file: the next delivery must not take it for its own.
            path = root / FOLDER / "slurm.conf"
            if user == "write" and path.exists():
                path.write_bytes(b"1")
                written["slurm.conf"].add(b"1")
            elif user == "remove" and path.exists():
                path.unlink()
