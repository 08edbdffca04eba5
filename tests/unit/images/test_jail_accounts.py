"""Users of the shared jail in the root of one worker."""

import os
from pathlib import Path
from types import ModuleType

import pytest

FILES = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
SHARED = {
    "passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1001:1001::/home/alice:/bin/sh\n"
    "nobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nsudo:x:27:alice\nalice:x:1001:\nlab:x:3000:alice,bob\n",
    "shadow": "root:!:1::::::\nalice:hash:1::::::\n",
    "gshadow": "sudo:!::alice\nalice:!::\n",
    "subuid": "alice:100000:65536\n",
    "subgid": "alice:100000:65536\n",
}
OWN = {
    "passwd": "root:x:0:0:own:/root:/bin/bash\npostgres:x:110:110::/:/bin/sh\n"
    "gone:x:1007:1007::/home/gone:/bin/sh\nnobody:x:65534:65534:own:/:/bin/false\n",
    "group": "root:x:0:\nsudo:x:27:gone,postgres\npostgres:x:110:\n",
    "shadow": "root:*:1::::::\npostgres:!:1::::::\ngone:hash:1::::::\n",
    "gshadow": "sudo:!::\n",
    "subuid": "gone:1:1\n",
    "subgid": "",
}


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """The root of a worker, and the folder etc of the shared jail."""
    jail, shared = tmp_path / "jail", tmp_path / "shared"
    (jail / "etc").mkdir(parents=True)
    shared.mkdir()
    for name in FILES:
        (jail / "etc" / name).write_text(OWN[name])
        (jail / "etc" / name).chmod(0o640)
        (shared / name).write_text(SHARED[name])
    return jail, shared


def put(path: Path, text: str) -> None:
    """Replace a file by rename, as useradd does."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def test_users_are_those_of_the_shared_jail_and_system_accounts_stay(jail_accounts: ModuleType):
    """S177."""
    found = jail_accounts.merged(OWN, SHARED)
    assert [one.split(":")[0] for one in found["passwd"].splitlines()] == [
        *("root", "postgres", "nobody", "alice")
    ]
    assert "root:x:0:0:own:/root:/bin/bash" in found["passwd"]
    assert "sudo:x:27:postgres,alice\n" in found["group"]
    assert "lab:x:3000:alice,bob\n" in found["group"]
    assert found["shadow"] == "root:*:1::::::\npostgres:!:1::::::\nalice:hash:1::::::\n"
    assert found["subuid"] == SHARED["subuid"]
    assert jail_accounts.merged(found, SHARED) == found


def test_a_user_with_the_name_of_a_system_account_is_left_out(jail_accounts: ModuleType):
    shared = {**SHARED, "passwd": "root:x:0:0::/:/\npostgres:x:1002:1002::/:/bin/sh\n"}
    found = jail_accounts.merged(OWN, shared)
    assert [one for one in found["passwd"].splitlines() if one.startswith("postgres")] == [
        "postgres:x:110:110::/:/bin/sh"
    ]


def test_a_change_of_the_shared_jail_is_followed(
    jail_accounts: ModuleType, roots: tuple[Path, Path]
):
    jail, shared = roots
    accounts, passwd = jail_accounts.Accounts(jail, shared), jail / "etc/passwd"
    assert accounts.keep()
    assert passwd.stat().st_mode & 0o7777 == 0o640
    assert "alice" in passwd.read_text()
    assert not accounts.keep()
    put(shared / "passwd", f"{SHARED['passwd']}carol:x:1003:1003::/:/bin/sh\n")
    assert accounts.keep()
    assert "carol" in passwd.read_text()
    put(shared / "passwd", SHARED["passwd"])
    assert accounts.keep()
    assert "carol" not in passwd.read_text()


def test_a_user_that_is_made_on_a_worker_is_gone(
    jail_accounts: ModuleType, roots: tuple[Path, Path]
):
    jail, shared = roots
    accounts, passwd = jail_accounts.Accounts(jail, shared), jail / "etc/passwd"
    accounts.keep()
    put(passwd, f"{passwd.read_text()}eve:x:1009:1009::/:/bin/sh\nmysql:x:111:111::/:/bin/sh\n")
    assert accounts.keep()
    assert "eve" not in passwd.read_text()
    assert "mysql" in passwd.read_text()


def test_an_empty_passwd_of_the_shared_jail_removes_nobody(
    jail_accounts: ModuleType, roots: tuple[Path, Path]
):
    jail, shared = roots
    accounts = jail_accounts.Accounts(jail, shared)
    accounts.keep()
    before = (jail / "etc/passwd").read_text()
    for spoil in (lambda: put(shared / "passwd", ""), (shared / "passwd").unlink):
        spoil()
        with pytest.raises(OSError, match="is empty"):
            accounts.keep()
    assert (jail / "etc/passwd").read_text() == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_a_user_puts_in_the_place_of_a_file_is_not_followed(
    jail_accounts: ModuleType, roots: tuple[Path, Path], kind: str
):
    jail, shared = roots
    secret = jail.parent / "secret"
    secret.write_text("secret:x:1:1::/:/\n")
    path = jail / "etc/passwd"
    path.unlink()
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(OSError):
        jail_accounts.Accounts(jail, shared).keep()
    assert secret.read_text() == "secret:x:1:1::/:/\n"


def test_a_linked_etc_is_not_followed(jail_accounts: ModuleType, roots: tuple[Path, Path]):
    jail, shared = roots
    (jail / "etc").rename(jail / "other")
    (jail / "etc").symlink_to("other")
    with pytest.raises(OSError):
        jail_accounts.Accounts(jail, shared).keep()
    assert (jail / "other/passwd").read_text() == OWN["passwd"]


def test_nothing_is_written_while_another_program_changes_accounts(
    jail_accounts: ModuleType, roots: tuple[Path, Path]
):
    jail, shared = roots
    lock = jail / "etc/.pwd.lock"
    lock.touch()
    child = os.fork()
    if child == 0:
        fd = os.open(lock, os.O_RDWR)
        os.lockf(fd, os.F_LOCK, 0)
        (jail.parent / "locked").touch()
        while not (jail.parent / "done").exists():
            os.sched_yield()
        os._exit(0)
    try:
        while not (jail.parent / "locked").exists():
            os.sched_yield()
        with pytest.raises(jail_accounts.BusyError):
            jail_accounts.Accounts(jail, shared).keep()
        assert (jail / "etc/passwd").read_text() == OWN["passwd"]
    finally:
        (jail.parent / "done").touch()
        os.waitpid(child, 0)
    assert jail_accounts.Accounts(jail, shared).keep()
