"""Shells in which commands of pages run: at the checkout, with a cluster's kubectl, on a login."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from docs_kit.blocks import ROOT, Block
from docs_kit.run import Execute

LONGEST_S = 300


def at_checkout(environment: Mapping[str, str] | None = None) -> Execute:
    """Run commands at the top of the repository, with the project's own programs in PATH."""
    env = dict(environment or os.environ)
    env["PATH"] = f"{ROOT}/.venv/bin{os.pathsep}{env['PATH']}"
    env |= {"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}

    def execute(block: Block, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        return done.stdout

    return execute


def on_cluster(environment: Mapping[str, str], ssh: Sequence[str]) -> Execute:
    """Run commands with a cluster's kubectl; those of `in=login` by its ssh command."""
    here = at_checkout(environment)

    def execute(block: Block, command: str) -> str:
        if block.options.get("in") != "login":
            return here(block, command)
        return here(block, shlex.join([*ssh, f"{{\n{command}\n}} 2>&1"]))

    return execute
