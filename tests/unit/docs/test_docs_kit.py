"""Command blocks of pages are found, masked, compared and rewritten."""

from __future__ import annotations

import pytest

from docs_kit.blocks import Block, Command, PageError, read_blocks
from docs_kit.masks import masked, matches
from docs_kit.run import rewritten, run_blocks

PAGE = """# A page
```sh
$ not this one
```
```console on=quickstart retry
$ kubectl get pods \\
    -n slurm
NAME
a
$ cat <<END
> text
> END
text
```
<!-- run on=quickstart: true -->
```console not-run="needs a cloud account"
$ cloud
```
"""


def test_commands_their_lines_and_their_output_are_read() -> None:
    first, hidden, last = read_blocks("a.md", PAGE)
    assert first.options == {"on": "quickstart", "retry": ""}
    assert first.commands == (
        Command(6, "kubectl get pods \\\n    -n slurm", ("NAME", "a")),
        Command(10, "cat <<END\ntext\nEND", ("text",)),
    )
    assert hidden.commands == (Command(15, "true", shown=False),)
    assert (last.site, last.options["not-run"]) == ("", "needs a cloud account")


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("", "name its site"),
        ("on=quickstart not-run=x", "name its site"),
        ("not-run=", "name its site"),
        ("on=mars", "site mars is not one of"),
        ("on=quickstart twice", "unknown options"),
    ],
)
def test_a_block_without_its_site_is_rejected(info: str, message: str) -> None:
    with pytest.raises(PageError, match=f"a.md:1: {message}"):
        read_blocks("a.md", f"```console {info}\n$ true\n```\n")


def test_a_block_without_a_command_is_rejected() -> None:
    with pytest.raises(PageError, match=r"a.md:2: a block begins with a command"):
        read_blocks("a.md", "```console on=checkout\noutput\n```\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("slurm-restapi-7b9f8c6d4-x2k9q 1/1 Running", "slurm-restapi-85d7fdf9bc-bmv4h 1/1 Running"),
        ("a-populate-jail-vn75p Completed", "a-populate-jail-x4k2z Completed"),
        ("Thu 2026-11-26T17:18:24Z", "Thu 2025-01-02T03:04:05Z"),
        ("10.96.0.1:6443 is up", "10.178.130.7:6820 is up"),
        ("Submitted batch job 3", "Submitted batch job 41"),
        ("JobId=3 JobName=a", "JobId=12 JobName=a"),
        ("ready after 3.2 s", "ready after 15 s"),
        ("a 2m3s", "a 17s"),
        ("\x1b[1mbold\x1b[0m", "bold"),
    ],
)
def test_times_addresses_and_generated_names_do_not_count(one: str, other: str) -> None:
    assert masked([one]) == masked([other])


def test_columns_that_depend_on_the_computer_do_not_count() -> None:
    shown = ["NAME  CPUS  STATE", "a  2  idle"]
    assert matches(shown, ["NAME CPUS STATE", "a 128 idle"])
    assert not matches(shown, ["NAME CPUS STATE", "a 128 down"])


@pytest.mark.parametrize("other", ["READY 1/2", "replicas: 3", "compute-1", "node/a"])
def test_counts_and_names_do(other: str) -> None:
    assert not matches(["READY 2/2", "replicas: 2", "compute-0", "node/b"], [other])


def test_dots_stand_for_any_lines() -> None:
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert matches(["a", "..."], ["a"])
    assert not matches(["a", "...", "d"], ["a", "b"])


def test_lines_may_come_in_any_order_where_the_block_permits_it() -> None:
    assert matches(["a", "b"], ["b", "a"], unordered=True)
    assert not matches(["a", "b"], ["b", "a"])
    assert not matches(["a", "b"], ["b"], unordered=True)


def test_output_is_rewritten_below_its_command() -> None:
    other = rewritten(PAGE, "quickstart", [["x", "y", "z"], []])
    again = read_blocks("a.md", other)[0]
    assert [one.output for one in again.commands] == [("x", "y", "z"), ()]
    assert other.count("$ ") == PAGE.count("$ ")


def test_a_difference_names_the_page_the_line_and_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PENSTOCK_WRITE_DOCS", raising=False)
    block = Block("a.md", 1, {"on": "checkout"}, (Command(2, "echo a", ("a",)),))
    run_blocks([block], lambda _, command: f"{command[5:]}\n")
    with pytest.raises(AssertionError, match=r"a.md:2: \$ echo a"):
        run_blocks([block], lambda _, command: "b")


def test_a_command_is_repeated_until_state_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_kit.run.PAUSE_S", 0)
    monkeypatch.delenv("PENSTOCK_WRITE_DOCS", raising=False)
    printed = iter(["0", "1", "2"])
    block = Block("a.md", 1, {"on": "checkout", "retry": ""}, (Command(2, "x", ("2",)),))
    run_blocks([block], lambda _, command: next(printed))
    assert list(printed) == []
