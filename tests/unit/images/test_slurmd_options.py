"""How the slurmd image turns arguments and environment into slurmd's options."""

from types import ModuleType

import pytest

HOST = {"CPUs": "64", "ThreadsPerCore": "2", "RealMemory": "256000"}


def test_shell_quoting_and_variables_of_arguments_are_read(
    options: ModuleType, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SLINKY_TOPOLOGY", "default:leaf 1")
    monkeypatch.setenv("SLURMD_OPTIONS", "-v -v")
    conf = "'Features=gpu Topology='\"$SLINKY_TOPOLOGY\"' Weight=10'"
    found = options.words("SLURMD_OPTIONS", ["-Z", "--conf", conf])
    assert found == ["-v", "-v", "-Z", "--conf", "Features=gpu Topology=default:leaf 1 Weight=10"]


def test_an_unquoted_value_with_spaces_stays_one_word(options: ModuleType):
    assert options.words("NONE", ["-Z", "--conf", "A=1 B=2"]) == ["-Z", "--conf", "A=1 B=2"]


def test_options_in_one_argument_are_separate_words(options: ModuleType):
    assert options.words("NONE", ["-N w-0", "-v"]) == ["-N", "w-0", "-v"]


@pytest.mark.parametrize("text", ["100%", "%(ENV_X)s", "a*"])
def test_characters_special_to_others_pass_unchanged(options: ModuleType, text: str):
    assert options.words("NONE", [text]) == [text]


def test_an_unclosed_quote_is_rejected_with_the_text(options: ModuleType):
    with pytest.raises(ValueError, match="no shell words: 'Feature=x"):
        options.words("NONE", ["'Feature=x"])


def test_an_empty_parameter_does_not_take_the_next_word(slurmd: ModuleType):
    """D3."""
    given = ["-Z", "--conf", "Features=a Topology= Weight=10"]
    assert slurmd.with_conf(given, {}) == ["-Z", "--conf", "Features=a Weight=10"]


def test_limits_become_what_is_left_for_others(slurmd: ModuleType):
    """D3, feature row 51."""
    environ = {"POD_CPUS": "5", "POD_MEMORY": "1000", "POD_TOPOLOGY": "default:s1"}
    wanted = slurmd.reserved(HOST, environ)
    assert wanted == {
        "CoreSpecCount": "29",
        "MemSpecLimit": "255000",
        "Topology": "default:s1",
    }
    found = slurmd.with_conf(["-Z", "--conf", "Features=a"], wanted)
    conf = "Features=a CoreSpecCount=29 MemSpecLimit=255000 Topology=default:s1"
    assert found == ["-Z", "--conf", conf]


@pytest.mark.parametrize("environ", [{}, {"POD_CPUS": "0", "POD_MEMORY": "0"}, {"POD_CPUS": "64"}])
def test_no_limit_or_all_of_the_host_reserves_nothing(slurmd: ModuleType, environ: dict[str, str]):
    assert slurmd.reserved(HOST, environ) == {}


def test_values_of_conf_win(slurmd: ModuleType):
    given = ["-Z", "--conf=Features=a corespeccount=1", "--conf", 'Reason="two words"']
    found = slurmd.with_conf(given, {"CoreSpecCount": "9"})
    assert found == ["-Z", "--conf", 'Features=a corespeccount=1 Reason="two words"']


def test_a_static_node_is_given_no_parameters(slurmd: ModuleType):
    assert slurmd.with_conf(["-N", "w-0"], {"CoreSpecCount": "9"}) == ["-N", "w-0"]
