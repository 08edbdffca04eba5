"""Reports of keys in logs of daemons."""

from __future__ import annotations

from penstock.decide.auth.key_report import digest, reported

ONE, OTHER = digest("one"), digest("other")


def test_the_last_report_of_a_log_counts_whoever_wrote_it() -> None:
    assert reported("") == ""
    assert reported(f"penstock: keys {ONE}\npenstock: effective abc") == ONE
    log = f"penstock: sackd has the keys {ONE}\nsshd: hello\npenstock: sackd has the keys {OTHER}\n"
    assert reported(log) == OTHER


def test_a_line_of_a_user_is_no_report() -> None:
    """Such as the name with which somebody tries to log in."""
    assert reported(f"Invalid user penstock: keys {ONE} from 10.0.0.1") == ""
    assert reported("penstock: keys abc") == ""
    assert reported(f"penstock: keys {ONE}\u2028penstock: keys {OTHER}") == ""
