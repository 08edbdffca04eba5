"""Types and reasons of conditions."""

from __future__ import annotations

from penstock.catalog.condition_reason import ConditionReason
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons import SUBJECTS
from reference.messages import patterns
from reference.page import Page, cell, code, table


def page() -> Page:
    """Both tables, the reasons by their subject."""
    parts = [
        "For everyone who reads `kubectl describe`. `Ready` is `True` when an object has its "
        "desired state. While it has not, `Reconciling` is `True` where the operator gets there "
        "by itself, and `Stalled` where somebody has to act.\n",
        "## Types\n",
        table(
            ("Type", "On", "Normal", "Meaning"),
            ((code(one), one.kinds, one.normal, one.meaning) for one in ConditionType),
        ),
        "\n## Reasons\n",
        "A reason with a link needs a person: its runbook has the cure, and "
        "`penstock explain REASON` prints it.\n",
    ]
    for subject in SUBJECTS:
        title = (subject.__doc__ or "").split("\n")[0].rstrip(".;")
        parts += [f"### {title}\n", *(_reason(one) for one in subject), ""]
    return Page("conditions", "Conditions", "types and reasons of conditions", "\n".join(parts))


def _reason(one: ConditionReason) -> str:
    name = f"[{code(one)}](../runbooks/{one}.md)" if one.needs_person else code(one)
    lines = [f"- {name}: {one.meaning} *Next:* {one.next_step}"]
    lines += [f"  - {code(cell(text.replace('`', chr(39))))}" for text in patterns().get(one, ())]
    return "\n".join(lines)
