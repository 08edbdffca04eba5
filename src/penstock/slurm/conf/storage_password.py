"""Passwords of databases that slurmdbd.conf can have."""

from __future__ import annotations


def password_problem(password: str) -> str:
    """Why Slurm cannot be given this password; empty when it can. Source: StoragePass."""
    if not password:
        return "it is empty"
    for sign, name in (("#", "a number sign (#)"), ('"', "a quote"), ("\n", "a line break")):
        if sign in password:
            return f"it has {name}, which slurmdbd.conf has no way to write"
    return "" if password.isprintable() else "it has characters that cannot be printed"
