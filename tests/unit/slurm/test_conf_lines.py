"""The one writer of lines in Slurm's configuration files."""

from __future__ import annotations

import pytest

from penstock.slurm.conf.document import ConfError
from penstock.slurm.conf.lines import EXTRA, is_one_line, setting, text_of

SECOND = ["a\nB=c", "a\rB=c", "a\\", "a\\  ", "a\\\\\\", "a\0"]


@pytest.mark.parametrize("line", SECOND)
def test_no_line_reaches_into_another(line: str):
    """Audit A32: a line break in a value brought a PrologSlurmctld."""
    assert not is_one_line(line)
    with pytest.raises(ConfError):
        text_of([("GENERAL", [line])])


@pytest.mark.parametrize("value", [*SECOND, "a b=c", "a\tb", "a#", '"a"', "", "a\x0bb=c"])
def test_a_value_is_one_word(value: str):
    with pytest.raises(ConfError):
        setting("AccountingStorageHost", value)


def test_escaped_backslashes_end_a_line_and_the_users_lines_stand_as_they_are():
    assert text_of([("A", ["b=c\\\\"]), (EXTRA, ["x \\", "y"]), ("NONE", [])]) == (
        "#\n### A ###\nb=c\\\\\n#\n### EXTRA CONFIG ###\nx \\\ny\n"
    )
