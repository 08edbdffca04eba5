"""The comparison of workers' roots by their reports."""

from __future__ import annotations

import pytest

from penstock.decide.jail.roots import finding, parse
from penstock.model.root_report import RootReport

BASE = "penstock: root image=i packages=p programs=b accounts=a users=u"


def report(line: str) -> RootReport:
    found = parse(line)
    assert found is not None
    return found


def changed(subject: str, *changes: str, digest: str = "other") -> RootReport:
    line = BASE.replace(f"{subject}={subject[0]}", f"{subject}={digest}")
    line = line.replace("programs=b", f"programs={digest}") if subject == "programs" else line
    return report(" ".join([line, *(f"{subject}:{one}" for one in changes)]))


@pytest.mark.parametrize("log", ["", "penstock: users changed as in the shared jail\n", "x\x00\n"])
def test_a_log_without_a_report_has_no_result(log: str):
    assert parse(log) is None


def test_the_last_report_of_a_log_counts():
    log = f"{BASE}\n{BASE.replace('packages=p', 'packages=q')} packages:+a=1\nother line\n"
    found = report(log)
    assert (found.digests["packages"], found.changes) == ("q", {"packages": ["+a=1"]})


def test_equal_roots_are_well():
    """S177."""
    found = finding({"worker-0": report(BASE), "worker-1": report(BASE)})
    assert (found.ok, found.type, found.reason) == (True, "WorkerRootsEqual", "RootsEqual")
    assert found.excluded_from_ready


def test_the_worker_that_differs_is_named_with_the_package():
    cowsay = changed("packages", "+cowsay=3.03")
    reports = {"worker-0": report(BASE), "worker-1": cowsay, "worker-2": report(BASE)}
    found = finding(reports)
    assert (found.ok, found.reason) == (False, "RootsDiffer")
    assert found.message.startswith(
        "Roots differ: worker-1 from 2 others in packages (+cowsay=3.03). Make the same change"
    )


def test_what_most_workers_have_is_lacking_on_the_one_that_differs():
    cowsay = changed("packages", "+cowsay=3.03")
    reports = {"worker-0": report(BASE), "worker-1": cowsay, "worker-2": cowsay}
    found = finding(reports).message
    assert "worker-0 from 2 others in packages (-cowsay=3.03)." in found


def test_a_change_that_both_have_is_not_named():
    one = changed("packages", "+a=1", "+b=1")
    other = changed("packages", "+a=1", digest="third")
    found = finding({"worker-0": other, "worker-1": one}).message
    assert "worker-1 from worker-0 in packages (+b=1)." in found


def test_programs_of_a_package_are_not_named_beside_it():
    line = f"{BASE} packages:+a=1 programs:+usr/bin/a"
    line = line.replace("packages=p", "packages=q").replace("programs=b", "programs=c")
    found = finding({"worker-0": report(BASE), "worker-1": report(line)}).message
    assert "in packages (+a=1)." in found
    assert "usr/bin/a" not in found


def test_more_changes_than_are_reported_are_mentioned():
    many = changed("accounts", "+a=1", "*")
    found = finding({"worker-0": report(BASE), "worker-1": many}).message
    assert "in accounts (+a=1, and more)." in found


def test_a_root_of_another_image_is_named_as_such():
    found = finding({"worker-0": report(BASE), "worker-1": changed("image")}).message
    assert "worker-1 from worker-0 in image (filled from another one)." in found


def test_a_worker_without_a_report_leaves_the_question_open():
    found = finding({"worker-0": report(BASE), "worker-1": None})
    assert (found.ok, found.reason) == (None, "RootsUnknown")
    assert "worker-1" in found.message
    cowsay = changed("packages", "+cowsay=3.03")
    found = finding({"worker-0": report(BASE), "worker-1": None, "worker-2": cowsay})
    assert found.reason == "RootsDiffer"


def test_many_differing_workers_make_a_short_message():
    reports = {f"worker-{n:03}": report(BASE) for n in range(60)}
    reports |= {
        f"worker-{n:03}": changed("packages", f"+p{n}=1", digest=f"d{n}") for n in range(40)
    }
    found = finding(reports).message
    assert "and 35 more" in found
    assert len(found) < 800
