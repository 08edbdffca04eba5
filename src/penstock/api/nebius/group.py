"""The API group `slurm.nebius.ai`: all its kinds, each with its rules.

A cluster may be without its definitions.
"""

from __future__ import annotations

from penstock.api.admission import ApiGroup, KindRules, Problem
from penstock.api.nebius import (
    active_check,
    jailed_config,
    node_configurator,
    nodeset,
    power_state,
    slurmcluster,
)
from penstock.api.nebius.common import CLUSTER_VERSION, VERSION
from penstock.api.nebius.common import GROUP as NAME


def _nothing(_: object) -> tuple[Problem, ...]:
    return ()


GROUPS = (
    ApiGroup(NAME, CLUSTER_VERSION, (KindRules(info=slurmcluster.INFO, problems=_nothing),)),
    ApiGroup(
        NAME,
        VERSION,
        tuple(
            KindRules(info=info, problems=_nothing)
            for info in (
                nodeset.INFO,
                power_state.INFO,
                active_check.INFO,
                jailed_config.INFO,
                node_configurator.INFO,
            )
        ),
    ),
)
