"""S056: what is told of a directory that sssd cannot use. The lines are sssd's own."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import conditions
from penstock.decide.auth import directory
from penstock.decide.auth.directory import DirectoryState

HEAD = "(2026-11-22 18:06:55): [be[example]]"
DENIED = f"""\
{HEAD} [simple_bind_done] (0x0400): [RID#4] Bind result: Invalid credentials(49), no errmsg set
{HEAD} [sdap_cli_resolve_and_connect_done] (0x0040): [RID#4] Unable to establish connection \
[1432158227]: Authentication Failed
{HEAD} [sdap_id_op_connect_done] (0x0040): [RID#4] Failed to connect, going offline (5 [I/O error])
"""
CONNECTED = (
    f"{HEAD} [sdap_cli_resolve_and_connect_done] (0x0400): [RID#9] Connection established.\n"
)
RESULT = f"{HEAD} [sdap_get_generic_op_finished] (0x0400): [RID#4] Search result: "
ABSENT = f"{RESULT}No such object(32), no errmsg set, base: [dc=wrong,dc=org]\n"
PRESENT = f"{RESULT}Success(0), no errmsg set, base: [dc=wrong,dc=org]\n"
BIND = (
    "Bind result: Invalid credentials(49), no errmsg set; "
    "Unable to establish connection: Authentication Failed"
)
SEARCH = "Search result: No such object(32), no errmsg set, base: [dc=wrong,dc=org]"


def test_a_refused_bind_is_told_in_sssds_words_until_there_is_a_connection() -> None:
    said = DirectoryState().after(DENIED)
    assert said.words == BIND
    assert said.after("sshd: Accepted publickey for root\n") == said
    assert said.after(DENIED) == said
    assert said.after(DENIED + CONNECTED).words == ""


def test_an_image_that_shows_no_traces_still_tells_that_it_was_refused() -> None:
    lines = DENIED.splitlines(keepends=True)[1:]
    assert DirectoryState().after("".join(lines)).words == BIND.partition("; ")[2]


def test_a_search_base_that_does_not_exist_is_told_until_it_does() -> None:
    said = DirectoryState().after(ABSENT)
    assert said.words == SEARCH
    assert said.after(DENIED).words == f"{BIND}; {SEARCH}"
    assert said.after(PRESENT).words == ""


def test_a_search_base_of_a_former_file_counts_no_more() -> None:
    """The sidecar of a SlurmCluster stays, and starts sssd again with another file."""
    again = "sssd: sssd.conf or a certificate has changed; starting again with it\n"
    assert DirectoryState().after(ABSENT).after(again).words == ""
    assert DirectoryState().after(again + ABSENT).words == SEARCH
    named = f"(0x0400): [RID#4] Search result: No such object(32), base: [{again.strip()}]\n"
    assert DirectoryState().after(ABSENT + named).words.startswith(SEARCH)


def test_the_condition_names_the_secret_and_the_event_is_sent_once() -> None:
    told = directory.findings("sssd", {"login-b": BIND, "login-a": BIND, "login-c": ""}, ())
    shown = {one.type: one for one in conditions(told)}
    assert shown["Ready"].status == "True"
    failing = shown[directory.FAILING]
    assert failing.status == "True"
    assert f"sssd of login-a reports: {BIND}" in failing.message
    assert "login-b" not in failing.message
    assert "Secret sssd" in failing.message
    assert directory.news(told, ()) == failing.message
    assert directory.news(told, (failing,)) == ""


def test_it_goes_back_and_is_not_there_where_nothing_was_wrong() -> None:
    before = conditions(directory.findings("sssd", {"login-a": BIND}, ()))
    after = directory.findings("sssd", {"login-b": ""}, before)
    assert {one.type: one.status for one in conditions(after)}[directory.FAILING] == "False"
    assert directory.news(after, before) == ""
    assert directory.findings("sssd", {"login-a": ""}, ()) == []


def test_only_users_who_are_elsewhere_are_listened_for() -> None:
    """The chart's sssd.conf has the users of the image's own files."""
    assert directory.asks("[domain/x]\nid_provider = ldap\n")
    assert directory.asks("[domain/x]\n id_provider=ad\n")
    assert not directory.asks("[domain/DEFAULT]\nid_provider = proxy\n")
    assert not directory.asks("")


def test_a_bind_that_succeeds_ends_an_error_of_the_connection() -> None:
    rejected = "(0x0400): Bind result: Invalid credentials(49), no errmsg set\n"
    failed = "(0x0020): Unable to establish connection [1]: Authentication Failed\n"
    known = DirectoryState().after(rejected + failed)
    assert known.words.startswith("Bind result: Invalid credentials(49)")
    assert known.after("(0x0400): Bind result: Success(0), no errmsg set\n").words == ""
