"""Environment variables."""

from __future__ import annotations

from penstock.catalog.variable import VARIABLES
from reference.page import Page, code, table


def page() -> Page:
    """One table."""
    body = "\n".join(
        [
            "For platform engineers. In containers of a pod they come from `env` of the container "
            "in the object's spec, unless the operator sets them.\n",
            table(
                ("Variable", "Read by", "Default", "Meaning"),
                ((code(v.name), v.read_by, code(v.default), v.meaning) for v in VARIABLES),
            ),
        ]
    )
    return Page("variables", "Environment variables", "environment variables", body)
