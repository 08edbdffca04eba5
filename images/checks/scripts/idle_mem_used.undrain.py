#!/usr/bin/env python3
"""Passes once the memory of an idle node is free again, by the rule of idle_mem_used.drain.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DRAIN = Path(__file__).with_name("idle_mem_used.drain.py")

if __name__ == "__main__":
    os.set_inheritable(3, True)
    os.execv(sys.executable, [sys.executable, "-B", "-S", str(DRAIN)])
