#!/usr/bin/env python3
"""Fails when a GPU is missing, has an uncorrectable error, or the kernel logged that it is broken.

What is read: the GPUs that the container was given, by the variable of its runtime; nvidia-smi; and
dmesg where the kernel lets the container read it. It starts nothing on a GPU.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(os.environ.get("CHECKS_ROOT") or "/")
DEVICES = ROOT / "proc/driver/nvidia/gpus"
FIELDS = (
    "uuid",
    "pci.bus_id",
    "ecc.errors.uncorrected.volatile.total",
    "remapped_rows.failure",
)
SECONDS = 6
FAILED = 1
BROKEN = {
    48: "double-bit ECC error",
    62: "internal micro-controller halted",
    64: "row remapping failed",
    79: "GPU has fallen off the bus",
    95: "uncontained ECC error",
    119: "GSP did not answer",
    120: "GSP error",
    140: "unrecovered ECC error",
}
"""Xid errors after which a GPU needs a reset or a repair. Source: NVIDIA's list of Xid errors."""
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")


def finish(details: str, status: int = 0) -> int:
    """Report details; return the exit status."""
    print(details)
    os.write(3, f"{details}\n".encode())
    return status


def output_of(*words: str) -> tuple[int, str]:
    """Exit status and output of a command; status -1 when it is absent or does not end."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
        )
    except FileNotFoundError:
        return -1, f"{words[0]} is absent"
    except subprocess.TimeoutExpired:
        return -1, f"{words[0]} did not answer in {SECONDS} s"
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


def bus(text: str) -> str:
    """A PCI address in one form: nvidia-smi has eight digits of the domain, the kernel four."""
    return ":".join([text.strip().lower()[-12:-8], *text.strip().lower().split(":")[-2:]])


def faults_of_rows(rows: Sequence[str]) -> list[str]:
    """Faults that nvidia-smi reports."""
    found: list[str] = []
    for row in rows:
        _, name, errors, remapping = (part.strip() for part in row.split(","))
        if errors.isdecimal() and int(errors):
            found.append(f"GPU {bus(name)} has {errors} uncorrected ECC errors")
        if remapping.lower() in ("1", "yes"):
            found.append(f"GPU {bus(name)} could not remap a row")
    return found


def faults_of_log(text: str, known: Sequence[str]) -> list[str]:
    """Faults of these devices that the kernel has logged, each once."""
    found: dict[str, None] = {}
    for match in XID.finditer(text):
        device, number = match[1].lower(), int(match[2])
        owner = next((one for one in known if one.startswith(device)), "")
        if number in BROKEN and owner:
            found[f"GPU {owner} logged Xid {number} ({BROKEN[number]})"] = None
    return list(found)


def given_gpus() -> list[str]:
    """UUIDs of the GPUs that the container was given; none when it was given them otherwise."""
    try:
        text = (ROOT / "proc/1/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    variables = dict(one.partition("=")[::2] for one in text.split("\0"))
    found = variables.get("NVIDIA_VISIBLE_DEVICES", "").split(",")
    return [one for one in found if one.startswith("GPU-")]


def faults_of_count(given: Sequence[str], answering: Sequence[str], tag: str) -> list[str]:
    """GPUs that the container was given, or had once, and that nvidia-smi does not list."""
    count = tag.partition("x")[0]
    wanted = len(given) or (int(count) if count.isdecimal() else 0)
    if len(answering) >= wanted:
        return []
    missing = [one for one in given if one not in answering]
    named = f" ({', '.join(missing)} is missing)" if missing and answering else ""
    return [f"{len(answering)} of {wanted} GPUs answer{named}"]


def main() -> int:
    """Compare the GPUs that answer with those of the container; return the exit status."""
    status, text = output_of(
        "nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"
    )
    if status == -1:
        return finish(f"skipped: {text}")
    rows = [line for line in text.splitlines() if line.count(",") == len(FIELDS) - 1]
    devices = sorted(path.name.lower() for path in DEVICES.glob("*"))
    if not rows and not devices:
        return finish("skipped: the node has no GPU")
    answering = [row.split(",")[0].strip() for row in rows]
    given = given_gpus()
    said = text.strip().splitlines()
    faults = [f"nvidia-smi: {said[-1] if said else f'exit {status}'}"] if status else []
    faults += faults_of_count(given, answering, os.environ.get("CHECKS_PLATFORM_TAG", ""))
    faults += faults_of_rows(rows)
    read, log = output_of("dmesg")
    if read == 0:
        # On a host that several workers share, the other ones' GPUs are not this node's.
        own = [bus(row.split(",")[1]) for row in rows]
        faults += faults_of_log(log, devices if len(devices) == max(len(given), len(own)) else own)
    else:
        print(f"the kernel's log cannot be read: {log.strip()}")
    return finish("; ".join(faults), FAILED) if faults else 0


if __name__ == "__main__":
    sys.exit(main())
