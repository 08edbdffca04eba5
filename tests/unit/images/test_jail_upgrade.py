"""Three folders in the place of two images and a jail, and the program that upgrades it."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.api.penstock.jail_upgrade import JailUpgrade, JailUpgradeSpec
from penstock.model.jail import UpgradeAction
from penstock.render.nebius import jail_upgrade
from support.nebius_clusters import CURRENT, of_shape

PROGRAM = Path(__file__).parents[3] / "images/entrypoints/jail_upgrade.py"
STATUS = "var/lib/dpkg/status"
INFO = "var/lib/dpkg/info"
Content = str | Callable[[Path], None]


@dataclass(frozen=True)
class Roots:
    """The image that a jail was filled from, the image of the upgrade, and the jail."""

    old: Path
    new: Path
    jail: Path

    def run(self, action: str, *arguments: str, status: int = 0) -> dict[str, Any]:
        """The result of the program; `lines` are those of its list."""
        named = [f"--{one}={getattr(self, one)}" for one in ("old", "new", "jail")]
        done = subprocess.run(
            [sys.executable, PROGRAM, action, "--id=first", *named, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        *lines, last = done.stdout.splitlines()
        return {**json.loads(last), "lines": lines}


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    found = Roots(*(tmp_path / one for one in ("old", "new", "jail")))
    for one in (found.old, found.new, found.jail):
        (one / "etc").mkdir(parents=True)
    return found


def fill(root: Path, files: Mapping[str, Content]) -> None:
    for path, content in files.items():
        at = root / path
        at.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            at.write_text(content)
        else:
            content(at)


def link(target: str) -> Callable[[Path], None]:
    return lambda at: at.symlink_to(target)


def content(root: Path) -> dict[str, tuple[int, int, int, str | None]]:
    """Mode, owner and content of each path, but for the upgrade's own."""
    found: dict[str, tuple[int, int, int, str | None]] = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            about = path.lstat()
            text = None
            if stat.S_ISLNK(about.st_mode):
                text = str(path.readlink())
            elif stat.S_ISREG(about.st_mode):
                text = path.read_text()
            shown = str(path.relative_to(root))
            if not shown.startswith("var/lib/penstock"):
                found[shown] = (about.st_mode, about.st_uid, about.st_gid, text)
    found.pop("var/lib", None)
    found.pop("var", None)
    return found


OLD: dict[str, Content] = {
    "etc/motd": "hello",
    "etc/tuned": "default",
    "etc/gone": "x",
    "usr/bin/tool": "1",
    "usr/bin/alias": link("tool"),
    "usr/lib/plugin/a": "a",
    "usr/lib/plugin/b": "b",
    "usr/lib/moved/one": "1",
    "usr/share/doc/tool": "text",
}
NEW: dict[str, Content] = {
    "etc/motd": "hello",
    "etc/tuned": "better default",
    "usr/bin/tool": "2",
    "usr/bin/alias": link("tool2"),
    "usr/bin/tool2": "two",
    "usr/lib/plugin": "a file now",
    "usr/lib/moved": link("elsewhere"),
    "usr/lib/elsewhere/one": "1",
    "usr/share/doc/tool": "more text",
}


def test_what_users_left_alone_becomes_that_of_the_new_image(roots: Roots) -> None:
    for root in (roots.old, roots.jail):
        fill(root, OLD)
    fill(roots.new, NEW)
    before = content(roots.jail)
    listed = roots.run("compare")
    assert content(roots.jail) == before
    done = roots.run("apply", f"--expect={listed['digest']}")
    assert content(roots.jail) == content(roots.new)
    assert done["lines"] == listed["lines"]
    roots.run("undo")
    assert content(roots.jail) == before


def test_what_users_changed_added_or_removed_stays_and_is_listed(roots: Roots) -> None:
    for root in (roots.old, roots.jail):
        fill(root, OLD)
    fill(roots.new, NEW)
    (roots.jail / "etc/tuned").write_text("mine")
    (roots.jail / "etc/motd").write_text("mine too")
    (roots.jail / "usr/share/doc/tool").unlink()
    fill(roots.jail, {"usr/lib/plugin/own": "users", "opt/users/data": "users"})
    done = roots.run("apply")
    assert {"! /etc/tuned", "! /usr/share/doc/tool", "! /usr/lib/plugin"} < set(done["lines"])
    assert done["kept"] == 3
    assert (roots.jail / "etc/tuned").read_text() == "mine"
    assert (roots.jail / "etc/motd").read_text() == "mine too"
    assert not (roots.jail / "usr/share/doc/tool").exists()
    assert [one.name for one in (roots.jail / "usr/lib/plugin").iterdir()] == ["own"]
    assert (roots.jail / "opt/users/data").read_text() == "users"
    assert (roots.jail / "usr/bin/tool").read_text() == "2"


def test_what_users_changed_after_the_upgrade_stays_when_it_is_undone(roots: Roots) -> None:
    for root in (roots.old, roots.jail):
        fill(root, OLD)
    fill(roots.new, NEW)
    roots.run("apply")
    (roots.jail / "usr/bin/tool").write_text("users")
    undone = roots.run("undo")
    assert undone["kept"] == 1
    assert (roots.jail / "usr/bin/tool").read_text() == "users"
    assert (roots.jail / "usr/lib/plugin/b").read_text() == "b"
    assert not (roots.jail / "usr/bin/tool2").exists()
    assert "nothing to put back" in roots.run("undo", status=3)["error"]


def test_a_folder_that_users_replaced_by_a_link_is_not_followed(
    roots: Roots, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    fill(outside, {"tool": "not the jail's"})
    for root in (roots.old, roots.new):
        fill(root, {"opt/tools/tool": root.name, "opt/tools/lib/x": root.name})
    (roots.jail / "opt").mkdir()
    (roots.jail / "opt/tools").symlink_to(outside)
    done = roots.run("apply")
    assert done["lines"] == ["! /opt/tools/lib/x", "! /opt/tools/tool"]
    assert content(outside) == {"tool": (0o100644, os.getuid(), os.getgid(), "not the jail's")}


def test_owners_modes_and_names_of_one_inode_are_those_of_the_image(roots: Roots) -> None:
    for root in (roots.old, roots.new, roots.jail):
        fill(root, {"usr/bin/one": "1", "usr/bin/same": "1"})
        (root / "usr/bin/one").chmod(0o755)
    (roots.new / "usr/bin/one").chmod(0o4755)
    os.chown(roots.new / "usr/bin/same", 12, 34)
    fill(roots.new, {"usr/bin/two": "2"})
    (roots.new / "usr/bin/three").hardlink_to(roots.new / "usr/bin/two")
    (roots.new / "usr/bin").chmod(0o750)
    os.mkfifo(roots.new / "usr/pipe")
    done = roots.run("apply")
    assert content(roots.jail) == content(roots.new)
    names = [roots.jail / "usr/bin" / one for one in ("two", "three")]
    assert names[0].stat().st_ino == names[1].stat().st_ino
    assert (done["added"], done["changed"], done["removed"]) == (3, 3, 0)


def test_an_image_that_changed_after_the_list_is_not_applied(roots: Roots) -> None:
    fill(roots.old, OLD)
    fill(roots.new, NEW)
    fill(roots.jail, OLD)
    listed = roots.run("compare")
    (roots.new / "usr/bin/tool").write_text("3")
    before = content(roots.jail)
    failed = roots.run("apply", f"--expect={listed['digest']}", status=3)
    assert "its tag has moved" in failed["error"]
    assert content(roots.jail) == before


def package(name: str, version: str, more: str = "", state: str = "install ok installed") -> str:
    return (
        f"Package: {name}\nStatus: {state}\nArchitecture: amd64\nVersion: {version}\n{more}"
        "Description: text\n more: of it\n\n"
    )


def with_packages(root: Path, packages: Mapping[str, str], more: Mapping[str, str] = {}) -> None:
    """A root with these packages: each has one program, which has its version."""
    texts = [package(name, version, more.get(name, "")) for name, version in packages.items()]
    fill(root, {STATUS: "".join(texts)})
    for name, version in packages.items():
        listing = f"/.\n/usr\n/usr/bin\n/usr/bin/{name}\n/etc/{name}.conf\n"
        fill(root, {f"{INFO}/{name}.list": listing, f"usr/bin/{name}": version})
        fill(root, {f"etc/{name}.conf": "default"})


def programs(root: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in (root / "usr/bin").iterdir()}


def installed(root: Path) -> dict[str, str]:
    """Versions by the status file."""
    found: dict[str, str] = {}
    for paragraph in (root / STATUS).read_text().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if line[0] != " ")
        found[fields["Package"]] = fields["Version"]
    return found


def test_packages_of_the_jail_and_of_the_image_are_whole_after_it(roots: Roots) -> None:
    with_packages(roots.old, {"libc": "1", "ssh": "1", "gone": "1", "needed": "1", "bash": "1"})
    with_packages(roots.new, {"libc": "2", "ssh": "3", "extra": "1", "bash": "2"})
    own = {"libc": "1", "ssh": "2", "needed": "1", "bash": "10", "htop": "5", "gone": "1"}
    depends = {"htop": "Depends: libc (>= 1), other | needed\n"}
    with_packages(roots.jail, own, depends)
    before = content(roots.jail)
    done = roots.run("apply")
    expected = {"libc": "2", "ssh": "3", "extra": "1", "bash": "10", "htop": "5", "needed": "1"}
    assert installed(roots.jail) == expected
    assert programs(roots.jail) == expected
    assert not (roots.jail / INFO / "gone.list").exists()
    assert "package ssh: 2 -> 3" in done["lines"]
    assert "package bash: stays as the jail has it" in done["lines"]
    assert done["first"] == ["extra 1", "gone removed", "libc 2", "ssh 3"]
    roots.run("undo")
    assert content(roots.jail) == before


def test_a_package_that_users_removed_stays_away(roots: Roots) -> None:
    with_packages(roots.old, {"libc": "1", "nano": "1"})
    with_packages(roots.new, {"libc": "2", "nano": "2"})
    fill(roots.new, {"usr/share/nano/new": "x"})
    listing = roots.new / INFO / "nano.list"
    listing.write_text(listing.read_text() + "/usr/share/nano/new\n")
    with_packages(roots.jail, {"libc": "1"})
    roots.run("apply")
    assert installed(roots.jail) == {"libc": "2"}
    assert programs(roots.jail) == {"libc": "2"}
    assert not (roots.jail / "usr/share/nano/new").exists()


def test_a_package_that_came_after_the_upgrade_stays_when_it_is_undone(roots: Roots) -> None:
    for root in (roots.old, roots.jail):
        with_packages(root, {"libc": "1"})
    with_packages(roots.new, {"libc": "2", "extra": "1"})
    roots.run("apply")
    status = roots.jail / STATUS
    status.write_text(status.read_text() + package("htop", "5"))
    roots.run("undo")
    assert installed(roots.jail) == {"libc": "1", "htop": "5"}
    assert programs(roots.jail) == {"libc": "1"}


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.9", "1.10"), ("1.0~rc1", "1.0"), ("9-1", "1:1-1"), ("1-1", "1-1+b1"), ("1.0", "1.0a")],
)
def test_the_higher_version_of_a_package_is_the_one_that_dpkg_takes(
    roots: Roots, lower: str, higher: str
) -> None:
    for image, users, taken in ((higher, lower, higher), (lower, higher, higher)):
        with_packages(roots.old, {"tool": "0"})
        with_packages(roots.new, {"tool": image})
        with_packages(roots.jail, {"tool": users})
        roots.run("apply", f"--id={image}{users}".replace("~", "-").replace(":", "-"))
        assert installed(roots.jail) == {"tool": taken}
        assert programs(roots.jail) == {"tool": taken}


def test_configuration_that_users_edited_stays_beside_a_newer_package(roots: Roots) -> None:
    more = {"ssh": "Conffiles:\n /etc/ssh.conf 0123\n"}
    for root, version in ((roots.old, "1"), (roots.new, "3"), (roots.jail, "2")):
        with_packages(root, {"ssh": version}, more)
    (roots.new / "etc/ssh.conf").write_text("new default")
    (roots.jail / "etc/ssh.conf").write_text("edited")
    roots.run("apply")
    assert (roots.jail / "etc/ssh.conf").read_text() == "edited"
    assert programs(roots.jail) == {"ssh": "3"}


def test_accounts_of_both_are_there_after_it(roots: Roots) -> None:
    root = "root:x:0:0::/root:/bin/sh\n"
    fill(roots.old, {"etc/passwd": root, "etc/shadow": "root:*:1::::::\n"})
    added = "messagebus:x:101:101::/:/bin/false\n"
    fill(
        roots.new,
        {"etc/passwd": root + added, "etc/shadow": "root:*:2::::::\nmessagebus:!:1::::::\n"},
    )
    users = root + "alice:x:1001:1001::/home/alice:/bin/bash\n"
    fill(
        roots.jail, {"etc/passwd": users, "etc/shadow": "root:secret:1::::::\nalice:hash:1::::::\n"}
    )
    roots.run("apply")
    assert (roots.jail / "etc/passwd").read_text() == users + added
    shadow = (roots.jail / "etc/shadow").read_text()
    assert shadow.startswith("root:secret:1")
    assert "messagebus:!" in shadow
    (roots.jail / "etc/passwd").write_text(users + added + "bob:x:1002:1002::/home/bob:/bin/bash\n")
    roots.run("undo")
    assert (
        roots.jail / "etc/passwd"
    ).read_text() == users + "bob:x:1002:1002::/home/bob:/bin/bash\n"


def test_a_database_of_rpm_that_both_changed_is_rejected(roots: Roots) -> None:
    for root, text in ((roots.old, "1"), (roots.new, "2"), (roots.jail, "users")):
        fill(root, {"var/lib/rpm/rpmdb.sqlite": text})
    assert "changed by rpm" in roots.run("apply", status=3)["error"]
    assert not (roots.jail / "var/lib/penstock").exists()


def test_files_that_differ_in_content_alone_are_replaced_and_put_back(roots: Roots) -> None:
    for root, text in ((roots.old, "1"), (roots.new, "2"), (roots.jail, "1")):
        fill(root, {"usr/bin/tool": text})
        os.utime(root / "usr/bin/tool", (1, 1))
    roots.run("apply")
    assert programs(roots.jail) == {"tool": "2"}
    roots.run("undo")
    assert programs(roots.jail) == {"tool": "1"}


def test_an_upgrade_waits_for_apt_and_for_another_upgrade(roots: Roots) -> None:
    fill(roots.old, OLD)
    fill(roots.new, NEW)
    fill(roots.jail, {**OLD, "var/lib/dpkg/lock-frontend": "", ".filling.lock": ""})
    holder = """
import fcntl, sys
with open(sys.argv[1], "r+") as apt, open(sys.argv[2], "r+") as other:
    fcntl.lockf(apt, fcntl.LOCK_EX)
    fcntl.flock(other, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.readline()
    fcntl.flock(other, fcntl.LOCK_UN)
    print("one", flush=True)
    sys.stdin.readline()
"""
    locks = [roots.jail / one for one in ("var/lib/dpkg/lock-frontend", ".filling.lock")]
    named = [f"--{one}={getattr(roots, one)}" for one in ("old", "new", "jail")]
    with subprocess.Popen(
        [sys.executable, "-c", holder, *locks],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as apt:
        assert apt.stdin is not None
        assert apt.stdout is not None
        assert apt.stdout.readline() == "locked\n"
        with subprocess.Popen([sys.executable, PROGRAM, "apply", "--id=first", *named]) as upgrade:
            for _ in range(2):
                with pytest.raises(subprocess.TimeoutExpired):
                    upgrade.wait(0.5)
                assert not (roots.jail / "usr/bin/tool2").exists()
                print("go on", file=apt.stdin, flush=True)
            assert upgrade.wait(20) == 0
    assert (roots.jail / "usr/bin/tool2").exists()


def capabilities(action: UpgradeAction) -> list[str]:
    """Those of the container, in the spelling of setpriv(1)."""
    inputs, given = of_shape(CURRENT).inputs, JailUpgrade(spec=JailUpgradeSpec())
    made = jail_upgrade.job(inputs, given, action, "old")
    (container,) = made["spec"]["template"]["spec"]["containers"]
    return [one.lower() for one in container["securityContext"]["capabilities"]["add"]]


def with_capabilities(roots: Roots, action: UpgradeAction, names: Sequence[str]) -> bool:
    """Whether the program ends well with no other capabilities."""
    named = [f"--{one}={getattr(roots, one)}" for one in ("old", "new", "jail")]
    given = "-all," + ",".join(f"+{one}" for one in names)
    program = [sys.executable, str(PROGRAM), action.value, "--id=first", *named]
    command = ["setpriv", f"--bounding-set={given}", f"--inh-caps={given}", *program]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill_for_all(roots: Roots) -> None:
    """Files of the new image that need each capability."""
    fill(roots.old, {"home2/file": "1"})
    fill(roots.new, {"home2/file": "2", "home2/setgid": "x", "home2/capable": "x"})
    fill(roots.jail, {"home2/file": "1"})
    for root in (roots.old, roots.new, roots.jail):
        for path in ("home2/file", "home2"):
            os.chown(root / path, 1001, 1001)
        (root / "home2/file").chmod(0o600)
        (root / "home2").chmod(0o1700)
    os.chown(roots.new / "home2/setgid", 1001, 1002)
    (roots.new / "home2/setgid").chmod(0o2755)
    value = bytes.fromhex("0100000200040000000000000000000000000000")
    os.setxattr(roots.new / "home2/capable", "security.capability", value)
    os.mknod(roots.new / "home2/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))


@pytest.mark.parametrize(
    ("action", "dropped"),
    [
        *((UpgradeAction.COMPARE, one) for one in ("", *capabilities(UpgradeAction.COMPARE))),
        *((UpgradeAction.APPLY, one) for one in ("", *capabilities(UpgradeAction.APPLY))),
    ],
)
def test_no_capability_can_be_taken_away(roots: Roots, action: UpgradeAction, dropped: str) -> None:
    """S172."""
    fill_for_all(roots)
    left = [one for one in capabilities(action) if one != dropped]
    is_whole = with_capabilities(roots, action, left)
    if action is UpgradeAction.APPLY:
        is_whole = is_whole and content(roots.jail) == content(roots.new)
    assert is_whole == (not dropped)


KILLED = """
import os, sys
sys.path.insert(0, {folder!r})
import upgrade_apply
limit = int(sys.argv.pop(1))
upgrade_apply.BATCH = 2
calls = 0
rename = os.rename
def counted(*arguments, **named):
    global calls
    calls += 1
    if calls > limit:
        os._exit(9)
    rename(*arguments, **named)
upgrade_apply.os.rename = counted
import jail_upgrade
jail_upgrade.main(sys.argv[1:])
"""


@pytest.mark.parametrize("limit", range(7))
def test_a_run_that_is_killed_is_continued_and_undone_by_the_next(roots: Roots, limit: int) -> None:
    for root in (roots.old, roots.jail):
        fill(root, OLD)
        with_packages(root, {"libc": "1", "ssh": "1"})
    fill(roots.new, NEW)
    with_packages(roots.new, {"libc": "2", "ssh": "2"})
    before = content(roots.jail)

    def killed(action: str) -> None:
        program = KILLED.format(folder=str(PROGRAM.parent))
        named = [f"--{one}={getattr(roots, one)}" for one in ("old", "new", "jail")]
        done = subprocess.run(
            [sys.executable, "-c", program, str(limit), action, "--id=first", *named], check=False
        )
        assert done.returncode == 9

    killed("apply")
    roots.run("apply")
    assert content(roots.jail) == content(roots.new)
    killed("undo")
    roots.run("undo")
    assert content(roots.jail) == before
