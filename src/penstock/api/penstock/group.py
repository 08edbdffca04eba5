"""The API group `penstock.dev/v1alpha1`: all its kinds, each with its rules."""

from __future__ import annotations

from penstock.api.admission import ApiGroup, KindRules
from penstock.api.penstock import partition, related_objects
from penstock.api.penstock.validation import problems

PARTITION = KindRules(
    info=partition.INFO,
    problems=problems,
    references=related_objects.references,
    uses=related_objects.uses,
    partitions=related_objects.partitions,
    warnings=related_objects.warnings,
)

GROUP = ApiGroup(partition.GROUP, partition.VERSION, (PARTITION,))
