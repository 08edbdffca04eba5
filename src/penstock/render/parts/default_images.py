"""Images of Slurm's daemons for which no object names one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Images:
    """Images of containers for which the user names none; the operator's settings.

    A side container without an image gets that of the daemon beside it: nothing more to pull.
    """

    slurmctld: str
    slurmd: str
    slurmrestd: str
    slurmdbd: str
    login: str
    munge: str = ""
    backup: str = ""

    @classmethod
    def of(cls, template: str) -> Images:
        """All of them from one text in which `{role}` stands for the daemon's name."""
        roles = ("slurmctld", "slurmd", "slurmrestd", "slurmdbd", "login", "munge", "backup")
        return cls(**{role: template.replace("{role}", role) for role in roles})
