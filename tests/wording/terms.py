"""Words that this project used as terms of its own, and the upstream term for each.

A pattern matches the former use only: ordinary English and field names of Kubernetes and Slurm
(`claimName`, `hostNetwork`, "connection refused") pass.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word to avoid.

    `prose` is searched in sentences, without regard to case. `names` are matched against the words
    of an identifier, which are separated by underscores or capitals; a phrase of two words has a
    blank between them.
    """

    word: str
    instead: str
    prose: str = ""
    names: tuple[str, ...] = ()


TERMS = (
    Term(
        "look",
        "reconcile",
        r"\b(a|an|one|each|every|this|that|next|last|first|another) (look|turn|pass|round)(es|s)?\b"
        r"|\blook(s|ed|ing)? (at (it |them )?)?again\b",
        ("look", "looked", "looks", "look again"),
    ),
    Term("wake", "requeue", r"\b(wakes?|woke|woken|waking)\b", ("wake", "woken", "wakes")),
    Term(
        "what is there",
        "observed state",
        r"\bwhat (is|was) (there|heard|seen)\b|\bview of things\b|\b(heard|hears?)\b",
        ("heard", "hear"),
    ),
    Term(
        "wish",
        "desired state",
        r"\bwhat (is|was|are|were|stands) (wanted|declared|asked for)\b|\bwish(es|ed)?\b",
        ("wish", "wishes", "wished"),
    ),
    Term(
        "machine",
        "Kubernetes node",
        r"(?<!state )(?<!virtual )\bmachines?\b(?! readable)(?!-)"
        r"|\b(the|a|each|every|one|its|this) host\b(?! ?(name|list|net|key|path|port|part))",
        ("machine", "machines"),
    ),
    Term(
        "claim",
        "PVC",
        r"(?<!token )(?<!JWT )(?<!resource )(?<!pods )(?<!ever )\bclaims?\b(?! templates?)",
        ("claim", "claims"),
    ),
    Term(
        "anew",
        "recreate, again",
        r"\banew\b|\b(made|makes?|making) (it |them |one )?again\b",
        ("anew", "remade", "remake"),
    ),
    Term(
        "held",
        "keep, adopted",
        r"\bheld\b(?! by (the|another) process)|\blet(s|ting)? (it |them )?(go|be)\b",
        ("held", "hold", "holds"),
    ),
    Term(
        "tell",
        "report, set condition, emit",
        r"\b(tells?|told|telling)\b",
        ("told", "tell", "tells"),
    ),
    Term("say", "report, name, define", r"\b(says?|said|saying)\b", ("says", "said", "say")),
    Term(
        "refuse",
        "reject",
        r"(?<!connection )(?<!connections )(?<!connection is )\brefus(e|es|ed|al|als|ing)\b"
        r"(?!( the)? connections?)",
        ("refuse", "refused", "refuses", "refusal", "refusals"),
    ),
    Term(
        "wrong as declared",
        "invalid",
        r"\b(wrong|valid) as (it is|they are|is|are)? ?declared\b"
        r"|\bas (it is|they are) declared\b",
    ),
    Term(
        "mend", "fix", r"\bmend(s|ed|ing)?\b|\bput(s|ting)? (it |them )?right\b", ("mend", "mended")
    ),
    Term(
        "set back",
        "overridden field",
        r"\bset(s|ting)? (\w+ )?back\b",
        ("setback", "setbacks", "set back", "set backs"),
    ),
    Term("alias", "active configuration", r"\bthe alias\b"),
    Term(
        "out",
        "draining for update",
        r"\b(is|are|be|as|was|were|workers?|nodes?) out\b(?! of)|\bout at a time\b",
    ),
    Term(
        "outside",
        "external",
        r"\b(an?|the|of) outside\b(?! of)"
        r"|\b(slurmctld|slurmdbd|issuers?|daemons?|machines?) (may be |is |are )?outside\b",
        ("outside",),
    ),
    Term("crowd", "aggregates", r"\bcrowd(s|ed)?\b", ("crowd",)),
    Term("quiet", "plan cache", r"(?<!-)\bquiet\b", ("quiet",)),
    Term("mishap", "fault", r"\bmishaps?\b", ("mishap", "mishaps")),
    Term("dear", "cost", r"\bdear(er|est)?\b", ("dear", "dearest")),
    Term(
        "shall", "plain English", r"\b(shall|whence|thereby|hither|thither|beware)\b", ("beware",)
    ),
)

PARTICIPLES = frozenset(
    {
        *("Asked", "Brought", "Declared", "Given", "Gone", "Heard", "Held", "Kept"),
        *("Left", "Looked", "Made", "Seen", "Told", "Triggered", "Wanted"),
    }
)
"""One-word class names that do not name a thing."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LOOKBEHIND = re.compile(r"(\(\?<![^)]*\))")


def _over_lines(prose: str) -> re.Pattern[str]:
    """Compile a pattern so that its blanks match line breaks; a lookbehind has a fixed width."""
    parts = _LOOKBEHIND.split(prose)
    spread = (p if _LOOKBEHIND.match(p) else p.replace(" ", r"\s+") for p in parts)
    return re.compile("".join(spread).replace(r"\s+?", r"\s*"), re.IGNORECASE)


_PROSE = tuple((term, _over_lines(term.prose)) for term in TERMS if term.prose)
# Identifiers of upstream APIs that contain one of the words.
_UPSTREAM = re.compile(
    r"persistent volume claims?|volume claims?|resource claims?|existing claim"
    r"|claim (name|templates?)"
)


def words_in_name(name: str) -> tuple[str, ...]:
    """Return the terms to avoid in an identifier: `_let_go`, `TokenSpec`, `claim_name`."""
    words = _UPSTREAM.sub(" ", " ".join(_WORD.findall(name)).lower())
    padded = f" {' '.join(words.split())} "
    found = [t.word for t in TERMS if any(f" {each} " in padded for each in t.names)]
    if name.lstrip("_") in PARTICIPLES:
        found.append("participle")
    return tuple(dict.fromkeys(found))


def words_in_prose(text: str) -> tuple[tuple[str, int], ...]:
    """Return each term to avoid in a text, with the index of its first character."""
    return tuple((term.word, hit.start()) for term, find in _PROSE for hit in find.finditer(text))


def instead_of(word: str) -> str:
    """Return the term to use in place of `word`."""
    if word == "participle":
        return "a noun for the thing"
    return next(term.instead for term in TERMS if term.word == word)
