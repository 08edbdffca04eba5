"""How each key of Slurm's configuration takes effect."""

from __future__ import annotations

from penstock.slurm.conf import apply_method_table
from reference.page import Page

_INTRO = """For everyone who changes Slurm's configuration. The operator takes the step of the table
when a key changes; of several keys, the strongest step. The table is that of Slurm 26.05: before
it, partitions need a reconfigure. How to change a key: [configuration](../admin/configuration.md).
"""


def page() -> Page:
    """The table of the newest release."""
    return Page(
        "configuration-keys",
        "How does each key of Slurm's configuration take effect?",
        "which step each key of Slurm's configuration needs",
        f"{_INTRO}\n{apply_method_table.page()}",
    )
