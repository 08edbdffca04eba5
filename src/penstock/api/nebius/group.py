"""The API group `slurm.nebius.ai`: all its kinds, each with its rules.

A cluster may be without its definitions.
"""

from __future__ import annotations

from penstock.api.admission import ApiGroup, KindRules
from penstock.api.nebius import (
    active_check,
    check_rules,
    cluster_validation,
    jailed_config,
    name_rules,
    node_configurator,
    nodeset,
    power_state,
    related_objects,
    slurmcluster,
    unsupported_fields,
    validation,
)
from penstock.api.nebius.common import CLUSTER_VERSION, VERSION
from penstock.api.nebius.common import GROUP as NAME
from penstock.api.nebius.labels import ACTIVE_CHECK_FINALIZER

SLURM_CLUSTER = KindRules(
    info=slurmcluster.INFO,
    problems=cluster_validation.cluster_problems,
    admission_problems=cluster_validation.cluster_admission_problems,
    unsupported_fields=unsupported_fields.cluster_fields,
    references=related_objects.cluster_references,
    uses=related_objects.cluster_uses,
    partitions=related_objects.cluster_partitions,
    warnings=related_objects.cluster_warnings,
    deletion_warnings=related_objects.cluster_deletion_warnings,
)
NODE_SET = KindRules(
    info=nodeset.INFO,
    problems=validation.nodeset_problems,
    admission_problems=validation.nodeset_admission_problems,
    unsupported_fields=unsupported_fields.nodeset_fields,
    references=related_objects.nodeset_references,
    uses=related_objects.nodeset_uses,
    conflicts=name_rules.node_set_conflicts,
    advice=validation.nodeset_advice,
)
POWER_STATE = KindRules(
    info=power_state.INFO,
    problems=validation.power_state_problems,
    references=related_objects.power_state_references,
)
ACTIVE_CHECK = KindRules(
    info=active_check.INFO,
    problems=check_rules.active_check_problems,
    unsupported_fields=unsupported_fields.active_check_fields,
    references=related_objects.active_check_references,
    uses=related_objects.active_check_uses,
    conflicts=check_rules.active_check_conflicts,
    advice=check_rules.active_check_advice,
    finalizers=(ACTIVE_CHECK_FINALIZER,),
)
JAILED_CONFIG = KindRules(
    info=jailed_config.INFO,
    problems=validation.jailed_config_problems,
    references=related_objects.jailed_config_references,
)
NODE_CONFIGURATOR = KindRules(
    info=node_configurator.INFO,
    problems=validation.node_configurator_problems,
    unsupported_fields=unsupported_fields.node_configurator_fields,
)

GROUPS = (
    ApiGroup(NAME, CLUSTER_VERSION, (SLURM_CLUSTER,)),
    ApiGroup(
        NAME,
        VERSION,
        (NODE_SET, POWER_STATE, ACTIVE_CHECK, JAILED_CONFIG, NODE_CONFIGURATOR),
    ),
)
"""SlurmCluster has a version of its own."""
