"""Which of sssd's lines are shown. The lines are those of sssd 2.12 with a real OpenLDAP."""

import importlib
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

ENTRYPOINTS = Path(__file__).parents[3] / "images/entrypoints"
CONF = """
[domain/example]
id_provider = ldap
ldap_search_base = dc=Wrong,dc=org
ldap_sudo_search_base = ou=sudoers,dc=wrong,dc=org
"""
HEAD = "(2026-11-22 18:00:49): [be[example]]"
ROOT = (
    f"{HEAD} [sdap_get_generic_ext_step] (0x0400): [RID#4] ldap_search_ext called: server: "
    "[127.0.0.1:389] filter: [(objectclass=*)] base: []; msgid = 1"
)
RESULT = f"{HEAD} [sdap_get_generic_op_finished] (0x0400): [RID#4] Search result: "
SUCCESS, ABSENT = f"{RESULT}Success(0), no errmsg set", f"{RESULT}No such object(32), no errmsg set"
BOUND = f"{HEAD} [simple_bind_done] (0x0400): [RID#4] Bind result: Success(0), no errmsg set"
DENIED = (
    f"{HEAD} [simple_bind_done] (0x0400): [RID#4] Bind result: Invalid credentials(49), no errmsg"
)
REFUSED = (
    f"{HEAD} [sdap_cli_resolve_and_connect_done] (0x0040): [RID#4] Unable to establish connection "
    "[1432158227]: Authentication Failed"
)
CONNECTED = f"{HEAD} [sdap_cli_resolve_and_connect_done] (0x0400): [RID#4] Connection established."
OTHER = f"{HEAD} [sdap_save_user] (0x0400): [RID#4] Save user"

Show = Callable[..., list[str]]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    monkeypatch.syspath_prepend(str(ENTRYPOINTS))
    yield importlib.import_module("sssd_lines")
    sys.modules.pop("sssd_lines", None)


@pytest.fixture
def show(module: Any, tmp_path: Path) -> Show:
    conf = tmp_path / "sssd.conf"
    conf.write_text(CONF)
    lines = module.Lines(conf)
    return lambda *given: [line for one in given if (line := lines(one)) is not None]


def search(base: str) -> str:
    return ROOT.replace("base: []", f"base: [{base}]")


def test_sssds_own_output_is_shown_and_its_traces_are_not(show: Show) -> None:
    said = f"{HEAD} [server_setup] (0x3f7c0): Starting with debug level = 0x0470"
    assert show(said, ROOT, SUCCESS, BOUND, CONNECTED, OTHER, "[RID#4] Save user") == [said]


def test_a_rejected_bind_is_shown_and_the_connection_after_it(show: Show) -> None:
    assert show(ROOT, SUCCESS, DENIED, REFUSED) == [DENIED, REFUSED]
    assert show(BOUND, CONNECTED, CONNECTED) == [CONNECTED]


def test_a_search_base_that_does_not_exist_is_shown_once_and_when_it_is_there(show: Show) -> None:
    wrong = "dc=wrong,dc=org"
    assert show(search(wrong), ABSENT, search(wrong), ABSENT) == [f"{ABSENT}, base: [{wrong}]"]
    assert show(search(wrong), SUCCESS) == [f"{SUCCESS}, base: [{wrong}]"]
    assert show(search(wrong), SUCCESS) == []


def test_an_entry_or_another_base_that_is_missing_is_no_mistake(show: Show) -> None:
    """Of groups that name members who are gone, and of directories without sudo rules."""
    for base in ("uid=gone,dc=wrong,dc=org", "ou=sudoers,dc=wrong,dc=org"):
        assert show(search(base), ABSENT) == []


def test_a_level_of_the_users_own_is_left(module: Any) -> None:
    assert module.asks_for_level("[nss]\ndebug_level = 9\n", [])
    assert module.asks_for_level(CONF, ["-d9"])
    assert module.asks_for_level(CONF, ["--debug-level=9"])
    assert not module.asks_for_level(CONF, ["--logger=files"])
