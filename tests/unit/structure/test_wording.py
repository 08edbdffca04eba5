"""`make lint` finds the project's former dialect and long sentences, and counts them by folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wording.check import (
    PAGES,
    compare,
    count_by_folder,
    find_all,
    find_in_page,
    find_in_python,
    folder_of,
    lower_budget,
    read_rules,
)
from wording.terms import TERMS, words_in_name, words_in_prose

ROOT = Path(__file__).parents[3]

OFFENCES = {
    "look": [
        "One look at a NodeSet.",
        "The next\n    turn.",
        "Looked at again after a second.",
        "the events of one pass",
    ],
    "wake": ["The operator is woken by the pod."],
    "what is there": ["Keeps what was heard.", "Compares with what is there."],
    "wish": ["A wish of the user.", "Compares with what is declared."],
    "machine": ["The machine of a pod.", "Pods on one host."],
    "claim": ["Two workers have one claim."],
    "anew": ["The pod is made anew.", "The Service is made again."],
    "held": ["A template that is held.", "Let it go."],
    "tell": ["The condition tells why."],
    "say": ["The log says so."],
    "refuse": ["The webhook refuses it.", "A refusal stays."],
    "wrong as declared": ["Controller slurm is wrong as it is declared."],
    "mend": ["Mended by the next reconcile.", "Somebody puts it right."],
    "set back": ["The field is set back."],
    "alias": ["The alias has the last files."],
    "out": ["A quarter out at a time.", "Two workers are out."],
    "outside": ["An outside slurmctld.", "The slurmctld is outside."],
    "crowd": ["The crowd of pods."],
    "quiet": ["Pods in the quiet."],
    "mishap": ["A mishap of the API server."],
    "dear": ["The dearest call."],
    "shall": ["The pod shall go."],
}


def test_each_term_is_found_in_prose() -> None:
    assert set(OFFENCES) == {term.word for term in TERMS if term.prose}
    for word, texts in OFFENCES.items():
        for text in texts:
            assert word in {found for found, _ in words_in_prose(text)}, text


@pytest.mark.parametrize(
    "text",
    [
        "Look up the PVC of persistentVolumeClaim.claimName.",
        "A state machine with hostNetwork and a host name.",
        "connection refused by the registry",
        "It refuses connections on that port.",
        "An error, a refused\n    connection or a timeout.",
        "The PersistentVolumeClaim of volumeClaimTemplates.",
        "Token claims name the user; a resource claim names a device.",
        "Slurm passes the flag on, in turn.",
        "The node went out of service; output is outside of the folder.",
        "penstock local up --quiet",
        "It sets the backoff.",
        "The partition keeps its last known good configuration.",
    ],
)
def test_ordinary_english_and_upstream_names_pass(text: str) -> None:
    assert words_in_prose(text) == ()


def test_names_are_split_into_words() -> None:
    assert words_in_name("_told_before") == ("tell",)
    assert words_in_name("SetBackWatch") == ("set back",)
    assert words_in_name("OwnClaim") == ("claim",)
    assert words_in_name("Held") == ("held", "participle")
    for name in ("claim_name", "persistentVolumeClaim", "volume_claim_templates", "hostNetwork"):
        assert words_in_name(name) == (), name
    for name in ("threshold", "holder", "tellurium", "essay", "passes", "has_outsider"):
        assert words_in_name(name) == (), name


def test_an_offence_is_found_in_each_part_of_a_python_file() -> None:
    source = '''"""Module.

It is made anew.
"""

class Told:
    wishes: int
    """Whom it tells."""

async def mend(dear: int, *crowd: str) -> str:
    """A mishap."""
    # The quiet ones.
    return f"{dear} nodes shall go"
'''
    found = {(o.line, o.word) for o in find_in_python("src/penstock/held.py", source)}
    assert found == {
        (1, "held"),
        (3, "anew"),
        (6, "tell"),
        (6, "participle"),
        (7, "wish"),
        (8, "tell"),
        (10, "mend"),
        (10, "dear"),
        (10, "crowd"),
        (11, "mishap"),
        (12, "quiet"),
        (13, "shall"),
    }


def test_code_in_backquotes_and_links_and_fences_of_a_page_pass() -> None:
    page = "# A\n```sh\ntold anew\n```\nUse `told` of [x](told.md).\n\nIt is told.\n"
    assert [(o.line, o.word) for o in find_in_page("README.md", page)] == [(7, "tell")]


def test_a_sentence_of_more_than_thirty_words_in_a_message_is_found() -> None:
    thirty = " ".join(["word"] * 30)
    source = (
        f'a = "{thirty}. {thirty}."\nb = (f"{{a}} " "{thirty}")\nc = """{thirty}\n{thirty}"""\n'
    )
    assert [(o.line, o.word) for o in find_in_python("src/penstock/a.py", source)] == [
        (2, "long sentence")
    ]


def test_literals_of_tests_are_left_to_the_messages_that_they_quote() -> None:
    assert find_in_python("tests/unit/test_a.py", 'a = "the node is told anew"\n') == ()


RULES = """
[[exception]]
path = "src/penstock/local"
word = "machine"
reason = "The computer that runs the built-in node."

[budget]
"src/penstock/kube" = 2
"README.md" = 1
"""


def _kube(count: int) -> str:
    return "\n".join(["# It is told."] * count)


def test_a_count_over_the_budget_fails_and_one_below_asks_to_lower_it() -> None:
    rules = read_rules(RULES)
    local = find_in_python("src/penstock/local/node.py", "# One machine is enough.\n")
    page = find_in_page("README.md", "It is told.")
    kube = "src/penstock/kube/cache/store.py"
    assert list(compare((*local, *page, *find_in_python(kube, _kube(2))), rules)) == []
    assert list(compare((*local, *page, *find_in_python(kube, _kube(3))), rules)) == [
        "src/penstock/kube: 3 offences, budget 2: reword the new ones"
    ]
    assert list(compare((*local, *page, *find_in_python(kube, _kube(1))), rules)) == [
        "src/penstock/kube: 1 offences, budget 2: lower the budget to 1"
    ]


def test_an_exception_without_use_or_without_reason_fails() -> None:
    rules = read_rules('[[exception]]\npath = "src/penstock/local"\nreason = "A word of DNS."\n')
    assert list(compare((), rules)) == [
        "exception for all words in src/penstock/local: remove it, nothing needs it"
    ]
    with pytest.raises(ValueError, match="src/penstock/local: reason is empty"):
        read_rules('[[exception]]\npath = "src/penstock/local"\nreason = " "\n')


def test_an_exception_of_one_file_does_not_cover_a_file_that_begins_alike() -> None:
    rules = read_rules('[[exception]]\npath = "src/penstock/kube"\nreason = "a"\n')
    assert count_by_folder(find_in_python("src/penstock/kubelet/a.py", _kube(1)), rules) == {
        "src/penstock/kubelet": 1
    }


def test_budgets_are_lowered_and_never_raised() -> None:
    text = lower_budget(RULES, {"src/penstock/kube": 9})
    assert text == RULES.replace('"README.md" = 1\n', "")
    assert '"src/penstock/kube" = 1\n' in lower_budget(RULES, {"src/penstock/kube": 1})


def test_files_are_counted_by_room() -> None:
    assert folder_of("src/penstock/kube/cache/store.py") == "src/penstock/kube"
    assert folder_of("src/penstock/__init__.py") == "src/penstock"
    assert folder_of("tests/unit/kube/test_a.py") == "tests/unit"
    assert folder_of("bench/fleet/a.py") == "bench"
    assert folder_of("docs/architecture.md") == "docs/architecture.md"


def test_the_program_lists_offences_of_a_folder() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "wording", "--list", "tests/wording"],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == ""


def test_pages_of_all_folders_are_read_but_those_generated_from_code(tmp_path: Path) -> None:
    for page in (*PAGES, "docs/user/a.md", "docs/reference/b.md", "docs/compatibility.md"):
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / page).write_text("It is told.\n")
    found = {offence.path for offence in find_all(tmp_path)}
    assert found == {*PAGES, "docs/user/a.md"}
