"""Reports of the root of one worker."""

import os
from pathlib import Path
from types import ModuleType

import pytest


def stanza(name: str, version: str = "1", status: str = "install ok installed") -> str:
    return f"Package: {name}\nStatus: {status}\nVersion: {version}\nDescription: a: b\n c\n"


def root(path: Path) -> Path:
    for folder in ("etc", "var/lib/dpkg", "usr/bin", "usr/local/bin"):
        (path / folder).mkdir(parents=True)
    (path / "usr/sbin").symlink_to("bin")
    (path / "etc/passwd").write_text("root:x:0:0::/:/\nalice:x:1001:1::/:/\n")
    (path / "etc/group").write_text("root:x:0:\nsudo:x:27:alice\n")
    (path / "etc/soperator-jail-populated").write_text("at=1\n")
    (path / "var/lib/dpkg/status").write_text(stanza("a"))
    (path / "usr/bin/ls").touch()
    return path


def words(report: str) -> dict[str, str]:
    first, second, *rest = report.split(" ")
    assert (first, second) == ("penstock:", "root")
    return dict(one.split("=", 1) for one in rest if ":" not in one.partition("=")[0])


def changes(report: str) -> list[str]:
    return [one for one in report.split(" ")[2:] if ":" in one.partition("=")[0]]


def differing(first: str, second: str) -> set[str]:
    left, right = words(first), words(second)
    assert left.keys() == right.keys()
    return {name for name in left if left[name] != right[name]}


def test_only_installed_packages_count(jail_report: ModuleType):
    text = "\n".join(
        [stanza("a", "1:2-3"), stanza("b", status="deinstall ok config-files"), stanza("c")]
    )
    assert jail_report.packages(text) == {"a=1:2-3", "c=1"}


def test_equal_roots_have_equal_reports(jail_report: ModuleType, tmp_path: Path):
    found = [jail_report.Reporter(root(tmp_path / name)).report() for name in ("a", "b")]
    assert found[0] == found[1]
    assert set(words(found[0])) == {"image", "packages", "programs", "accounts", "users"}
    assert changes(found[0]) == []


def test_a_report_names_what_was_installed_since_the_root_was_filled(
    jail_report: ModuleType, tmp_path: Path
):
    """S177: also by another process, and not when it is removed again."""
    path = root(tmp_path / "jail")
    reporter = jail_report.Reporter(path)
    first = reporter.report()
    assert reporter.report() == ""
    status = path / "var/lib/dpkg/status"
    status.write_text("\n".join([stanza("a"), stanza("cowsay", "3.03")]))
    second = reporter.report()
    assert differing(first, second) == {"packages"}
    assert changes(second) == ["packages:+cowsay=3.03"]
    assert jail_report.Reporter(path).report() == second
    status.write_text(stanza("a"))
    assert reporter.report() == first


def test_a_root_that_was_filled_again_has_no_changes(jail_report: ModuleType, tmp_path: Path):
    path = root(tmp_path / "jail")
    reporter = jail_report.Reporter(path)
    first = reporter.report()
    (path / "var/lib/dpkg/status").write_text(stanza("b"))
    (path / "etc/soperator-jail-populated").write_text("at=2\n")
    second = reporter.report()
    assert differing(first, second) == {"image", "packages"}
    assert changes(second) == []


def test_users_and_system_accounts_are_two_subjects(jail_report: ModuleType, tmp_path: Path):
    path = root(tmp_path / "jail")
    reporter = jail_report.Reporter(path)
    first = reporter.report()
    with (path / "etc/passwd").open("a") as file:
        file.write("bob:x:1002:1::/:/\n")
    second = reporter.report()
    assert differing(first, second) == {"users"}
    with (path / "etc/passwd").open("a") as file:
        file.write("postgres:x:110:110::/:/\n")
    third = reporter.report()
    assert differing(second, third) == {"accounts"}
    assert changes(third) == ["accounts:+postgres=110"]


def test_links_to_the_clients_of_slurm_and_places_of_users_are_no_changes(
    jail_report: ModuleType, tmp_path: Path
):
    path = root(tmp_path / "jail")
    reporter = jail_report.Reporter(path)
    first = reporter.report()
    (path / "usr/local/bin/srun").symlink_to("/opt/penstock/slurm/bin/srun")
    (path / "etc/group").write_text("root:x:0:\nsudo:x:27:alice,alice2\n")
    second = reporter.report()
    assert differing(first, second) == {"accounts"}
    assert changes(second) == ["accounts:+group:sudo=27:alice2", "accounts:-group:sudo=27"]
    (path / "usr/local/bin/own").symlink_to("/opt/own")
    assert changes(reporter.report())[0] == "programs:+usr/local/bin/own"


def test_a_report_is_short_and_of_one_line(jail_report: ModuleType, tmp_path: Path):
    path = root(tmp_path / "jail")
    reporter = jail_report.Reporter(path)
    reporter.report()
    for number in range(9):
        (path / f"usr/bin/tool {number}\r{'x' * 200}").touch()
    (path / "usr/bin/two\nlines").touch()
    found = reporter.report()
    assert found.splitlines() == [found]
    assert len(changes(found)) == 6
    assert changes(found)[-1] == "programs:*"
    assert len(found) < 1000


@pytest.mark.parametrize("path", ["var/lib/dpkg/status", "usr/bin"])
def test_a_link_of_a_user_is_not_followed(jail_report: ModuleType, tmp_path: Path, path: str):
    jail = root(tmp_path / "jail")
    before = jail_report.Reporter(jail).report()
    (jail / path).rename(tmp_path / "moved")
    (jail / path).symlink_to(tmp_path / "moved")
    assert differing(before, jail_report.Reporter(jail).report())


def test_a_pipe_in_the_place_of_a_file_does_not_stop_it(jail_report: ModuleType, tmp_path: Path):
    jail = root(tmp_path / "jail")
    (jail / "var/lib/dpkg/status").unlink()
    os.mkfifo(jail / "var/lib/dpkg/status")
    assert jail_report.Reporter(jail).report()
