"""Hosts in fields of users: DNS names and addresses.

Source: RFC 1123, 2.1, with the underscore that DNS has and some sites use.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_LABEL: Final = r"[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
LONGEST_HOST: Final = 253


def is_host(text: str) -> bool:
    """Whether a text is a DNS name or an address, and so has no blank, quote or line break."""
    if len(text) > LONGEST_HOST:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _NAME.fullmatch(text) is not None
    # A zone, such as %eth0, may be any text.
    return "%" not in text
