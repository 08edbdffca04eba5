"""The seed of tests that act at random moments."""

import os
import secrets


def seed() -> int:
    """`PENSTOCK_SEED`; without it the same one in CI, and another one each time for people."""
    told = os.environ.get("PENSTOCK_SEED")
    number = int(told) if told else 1 if os.environ.get("CI") else secrets.randbelow(2**32)
    print(f"\nPENSTOCK_SEED={number}")
    return number
