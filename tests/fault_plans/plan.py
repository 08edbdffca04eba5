"""A plan: what happens when. Made from a seed, readable, and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fault_plans.random_source import Dice

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
class Layout:
    """What there is beside one Controller, one RestApi and the NodeSet `compute` in `slurm`."""

    others: tuple[tuple[str, str], ...] = ()
    """Further NodeSets: namespace and name. Each namespace is a Slurm cluster of its own."""
    login: bool = False
    """Whether there is a LoginSet."""
    daemons: tuple[tuple[str, str], ...] = ()
    """Which of the NodeSets are in DaemonSet mode when they are made."""
    leased: bool = False
    """Whether processes of the operator take turns by a Lease; else there is only one."""
    claims: tuple[str, str] | None = None
    """What becomes of the workers' claims when they are scaled in, and deleted; None for none."""
    pinned: bool = False
    """Whether workers return to the machine that they ran on."""
    accounted: bool = False
    """Whether each Slurm cluster has an Accounting."""
    tokens: bool = False
    """Whether each namespace has a Token."""
    left: bool = False
    """Whether slurm-operator made the cluster, and the operator takes it over."""
    external: bool = False
    """Whether each slurmctld is external."""
    tiny: bool = False
    """Whether the workers are of the tiny API, instead of NodeSets."""
    no_kruise: bool = False
    """Whether OpenKruise's controller is gone, of a SlurmCluster that soperator left."""
    together: bool = False
    """Whether a second SlurmCluster and a Slinky cluster are in the same namespace."""
    nebius: str = ""
    """Shape of the SlurmClusters that there are instead of Controllers; empty for none."""


LAYOUTS = (
    (8, Layout()),
    (3, Layout(leased=True)),
    (2, Layout(others=(("slurm", "gpu"),), login=True)),
    (1, Layout(others=(("other", "compute"),))),
    (1, Layout(others=(("slurm", "gpu"), ("other", "compute")), login=True, leased=True)),
    (2, Layout(daemons=(("slurm", "compute"),))),
    (2, Layout(others=(("slurm", "gpu"),), daemons=(("slurm", "gpu"),))),
    (1, Layout(others=(("other", "compute"),), daemons=(("other", "compute"),), leased=True)),
)
"""With how often a plan has each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that happens in one run."""

    seed: int
    replicas: int
    steps: tuple[Step, ...]
    layout: Layout = Layout()

    def with_steps(self, more: Iterable[Step]) -> Plan:
        """The plan with further steps, each at its time."""
        steps = sorted((*self.steps, *more), key=lambda one: one.at)
        return replace(self, steps=tuple(steps))

    def __str__(self) -> str:
        steps = "\n".join(f"  {step}" for step in self.steps)
        return f"plan {self.seed}: {self.replicas} workers, {self.layout}\n{steps}"


def draw(
    seed: int,
    happenings: Mapping[str, Happening],
    *,
    swarm: bool = True,
    layout: Layout | None = None,
) -> Plan:
    """The plan of a seed.

    With `swarm` each plan leaves out most kinds of happenings, so that those it has meet more
    often.
    Source: Groce et al., "Swarm Testing", ISSTA 2012.
    """
    dice = Dice(seed)
    share = dice.choice([0.15, 0.3, 0.6])
    names = [name for name in happenings if not swarm or name == "scale" or dice.random() < share]
    weights = [happenings[name].weight for name in names]
    steps: list[Step] = []
    at = dice.choice([0.0, 5.0, 15.0])
    for _ in range(dice.randint(3, 14)):
        at = round(at + dice.expovariate(1 / dice.choice([0.3, 3.0, 12.0])), 2)
        name = dice.choices(names, weights)[0]
        steps.append(Step(at, name, happenings[name].draw(dice)))
    replicas = dice.randint(1, LARGEST)
    (drawn,) = dice.choices([one for _, one in LAYOUTS], [weight for weight, _ in LAYOUTS])
    return Plan(seed, replicas, tuple(steps), layout or drawn)


def crowded(plan: Plan, dice: Dice, happenings: Mapping[str, Happening]) -> Plan:
    """The plan, with one to four of these happenings among its steps."""
    names, weights = list(happenings), [one.weight for one in happenings.values()]
    end = plan.steps[-1].at
    more = [
        Step(round(dice.between(0.0, end), 2), name, happenings[name].draw(dice))
        for name in dice.choices(names, weights, k=dice.randint(1, 4))
    ]
    return plan.with_steps(more)


@dataclass(frozen=True, slots=True)
class Family:
    """Happenings that only some plans have, drawn by dice of their own.

    So a seed has the same other steps with the family as without it. What users do is left where
    nothing goes wrong.
    """

    name: str
    dice: int
    """Number of its dice; a new family takes one that no other has."""
    share: float | None
    """Of the plans that have it; None where `draw` decides."""
    users: Mapping[str, Happening] = field(default_factory=dict[str, Happening])
    """Happenings that users cause."""
    faults: Mapping[str, Happening] = field(default_factory=dict[str, Happening])
    """Happenings that go wrong."""
    draw: Callable[[Plan, Dice, Mapping[str, Happening]], Plan] = crowded
    """Adds the family to a plan, given its dice and its happenings."""

    @property
    def happenings(self) -> Mapping[str, Happening]:
        """All that happens, by name."""
        return {**self.users, **self.faults}

    def added(self, plan: Plan) -> Plan:
        """The plan, with this family if its seed says so."""
        dice = Dice(plan.seed + (self.dice << 40))
        if self.share is not None and dice.random() >= self.share:
            return plan
        return self.draw(plan, dice, self.happenings)
