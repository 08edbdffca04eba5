"""The key of slurm.conf that a misspelt word most resembles."""

from __future__ import annotations

import difflib
import re

from penstock.slurm.conf.apply_method import Table
from penstock.slurm.conf.apply_method_table import TABLE
from penstock.slurm.conf.document import RECORDS
from penstock.slurm.conf.includes import SLURM_CONF

_LEAST = 0.65
"""Similarity, from 0 to 1, below which two words have little in common."""
_WORD = re.compile(r"\w+")


def similar_key(line: str, words: str, table: Table = TABLE) -> str:
    """Return the key of slurm.conf that is most like a word of a rejected line; empty for none.

    `words` are Slurm's: only a word that it quotes from the line counts. Lines of nodes and
    partitions have keys of their own, and names that users choose.
    """
    inside = [one.lower() for one in _WORD.findall(line.partition("#")[0])]
    if not inside or inside[0] in RECORDS:
        return ""
    known = {key.lower(): key for row in table.rows if row.file == SLURM_CONF for key in row.keys}
    quoted = {one.lower() for one in _WORD.findall(words)} & set(inside) - known.keys()
    found = [
        (difflib.SequenceMatcher(None, one, key).ratio(), known[key])
        for one in sorted(quoted)
        for key in difflib.get_close_matches(one, list(known), 1, _LEAST)
    ]
    return max(found, default=(0.0, ""))[1]
