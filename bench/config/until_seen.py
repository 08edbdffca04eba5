"""Seconds from a change until slurmctld gives the new answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bench.config.asking import asking
from bench.config.rest import TIMEOUT_S, Cluster


def until_seen(
    cluster: Cluster,
    numbers: Iterable[int],
    question: tuple[str, str],
    change: Callable[[int], float],
    answer: str,
) -> list[float]:
    """Seconds from each change, which returns when it was answered, to its effect.

    Each starts from rest: users do not edit while Slurm still takes over their last edit. It is
    asked for only meanwhile: a command each 0.1 s is work for the machine too.
    """
    found: list[float] = []
    for number in numbers:
        cluster.until_rest()
        with asking(cluster.node, cluster.pod, *question) as answers:
            answers.until_anything(timeout=TIMEOUT_S)
            answered = change(number)
            wanted = answer.format(number)
            answers.until(wanted, timeout=TIMEOUT_S)
        found.append(max(0.0, answers.moments[wanted] - answered))
    return found
