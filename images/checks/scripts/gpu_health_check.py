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
FORMAT = "--format=csv,noheader,nounits"
GPUS = "--query-gpu=uuid,pci.bus_id,ecc.errors.uncorrected.volatile.total"
ROWS = "--query-remapped-rows=gpu_uuid,remapped_rows.failure"
SECONDS = 6
BROKEN_STATUS = {
    8: "power cables",
    10: "interrupts",
    14: "infoROM",
    15: "GPU is inaccessible",
    255: "internal error",
}
"""Exit statuses of nvidia-smi that are about the device. Source: its manual page.

All others are about the command, the driver or the library: nothing is known of the device then.
"""
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


def table(text: str, columns: int) -> list[list[str]]:
    """Rows of CSV output with so many columns; other lines are messages."""
    rows = ([part.strip() for part in line.split(",")] for line in text.splitlines())
    return [row for row in rows if len(row) == columns]


def faults_of_memory(gpus: Sequence[Sequence[str]], remapped: Sequence[Sequence[str]]) -> list[str]:
    """Errors of memory that nvidia-smi counts."""
    found = [
        f"GPU {name} has {errors} uncorrected ECC errors"
        for name, _, errors in gpus
        if errors.isdecimal() and int(errors)
    ]
    failed = (name for name, failure in remapped if failure.lower() in ("1", "yes"))
    return found + [f"GPU {name} could not remap a row of memory" for name in failed]


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
    status, text = output_of("nvidia-smi", GPUS, FORMAT)
    said = text.strip().splitlines()
    words = f"nvidia-smi: {said[-1] if said else f'exit {status}'}"
    if status and status not in BROKEN_STATUS:
        return finish(f"skipped: {words if status > 0 else text}")
    gpus = table(text, 3)
    devices = sorted(path.name.lower() for path in DEVICES.glob("*"))
    if not gpus and not devices:
        return finish("skipped: the node has no GPU")
    given = given_gpus()
    faults = [f"{words} ({BROKEN_STATUS[status]})"] if status else []
    tag = os.environ.get("CHECKS_PLATFORM_TAG", "")
    faults += faults_of_count(given, [row[0] for row in gpus], tag)
    rows_status, rows = output_of("nvidia-smi", ROWS, FORMAT)
    faults += faults_of_memory(gpus, table(rows, 2) if rows_status == 0 else [])
    read, log = output_of("dmesg")
    if read == 0:
        # On a host that several workers share, the other ones' GPUs are not this node's.
        own = [bus(row[1]) for row in gpus]
        faults += faults_of_log(log, devices if len(devices) == max(len(given), len(own)) else own)
    else:
        print(f"the kernel's log cannot be read: {log.strip()}")
    return finish("; ".join(faults), FAILED) if faults else 0


if __name__ == "__main__":
    sys.exit(main())
