"""A plan: what happens when. Made from a seed, readable, and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.testing.plans.dice import Dice

LARGEST = 4
"""Most workers that a plan asks for."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that users do or that goes wrong: how often, with what, and how it is done."""

    weight: int
    draw: Callable[[Dice], tuple[Any, ...]]
    run: Callable[..., Coroutine[Any, Any, None] | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One happening, `at` seconds after the cluster was declared."""

    at: float
    name: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.at:7.2f} {self.name}({', '.join(map(repr, self.values))})"


@dataclass(frozen=True, slots=True)
class Plan:
    """All that happens in one run."""

    seed: int
    replicas: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {step}" for step in self.steps)
        return f"plan {self.seed}: {self.replicas} workers\n{steps}"


def draw(seed: int, happenings: Mapping[str, Happening]) -> Plan:
    """The plan of a seed.

    Each plan leaves out most kinds of happenings, so that those it has meet more often.
    Source: Groce et al., "Swarm Testing", ISSTA 2012.
    """
    dice = Dice(seed)
    share = dice.choice([0.15, 0.3, 0.6])
    names = [name for name in happenings if name == "scale" or dice.random() < share]
    weights = [happenings[name].weight for name in names]
    steps: list[Step] = []
    at = dice.choice([0.0, 5.0, 15.0])
    for _ in range(dice.randint(3, 14)):
        at = round(at + dice.expovariate(1 / dice.choice([0.3, 3.0, 12.0])), 2)
        name = dice.choices(names, weights)[0]
        steps.append(Step(at, name, happenings[name].draw(dice)))
    return Plan(seed, dice.randint(1, LARGEST), tuple(steps))
