"""What the last decision about one worker set observed, so that the next one repeats less.

A settled fleet gives each decision thousands of pods of which one has changed. A worker is the
same object while its inputs are unchanged, so one that needed no action needs none now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.decide.observed.worker import Worker
from penstock.decide.observed.workers import ObservedWorkers
from penstock.model.worker_slot import NodePlacements


@dataclass(slots=True)
class PlanCache:
    """For one worker set. It changes what a decision costs, never the decision.

    `placements` are the last ones in DaemonSet mode, with their inputs. `settled` are workers that
    needed no action under these `inputs`.
    """

    observed: ObservedWorkers | None = None
    placements: tuple[tuple[object, ...], NodePlacements] | None = None
    inputs: tuple[object, ...] = ()
    settled: set[Worker] = field(default_factory=set[Worker])

    def observe(self, observed: ObservedWorkers, *inputs: object) -> None:
        """Take in what a decision observes; settled workers are kept under the same inputs.

        Workers that are replaced are dropped: each has its own pod and Slurm node, which would
        double the memory of a fleet that changes as a whole.
        """
        former, self.observed = self.observed, observed
        if inputs != self.inputs:
            self.inputs = inputs
            self.settled = set()
        elif former is not None and len(former.all) == len(observed.all):
            pairs = zip(former.all, observed.all, strict=True)
            self.settled.difference_update([old for old, new in pairs if old is not new])
        else:
            self.settled.intersection_update(observed.all)

    def unsettled(self, workers: Iterable[Worker]) -> list[Worker]:
        """Those of these workers that may need an action."""
        settled = self.settled
        return [one for one in workers if one not in settled]
