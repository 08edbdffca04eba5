"""The API group `slinky.slurm.net/v1beta1`: all its kinds, each with its rules."""

from __future__ import annotations

from penstock.api.admission import ApiGroup, KindRules
from penstock.api.cluster.marks import ASK_FINALIZER, DRAIN_FINALIZER
from penstock.api.slinky import (
    accounting,
    admission_rules,
    controller,
    loginset,
    nodeset,
    related_objects,
    restapi,
    token,
    unsupported_fields,
    validation,
)
from penstock.api.slinky.common import GROUP as NAME
from penstock.api.slinky.common import VERSION
from penstock.api.slinky.defaults import controller_defaults
from penstock.api.slinky.labels import RESERVATION_FINALIZER

CONTROLLER = KindRules(
    info=controller.INFO,
    problems=validation.controller_problems,
    admission_problems=admission_rules.controller_problems,
    changes=admission_rules.controller_changes,
    unsupported_fields=unsupported_fields.controller_fields,
    defaults=controller_defaults,
    references=related_objects.controller_references,
    uses=related_objects.controller_uses,
    reserved_files=related_objects.OURS,
    conflicts=related_objects.controller_conflicts,
    advice=admission_rules.controller_advice,
    warnings=related_objects.controller_warnings,
    deletion_warnings=related_objects.controller_deletion_warnings,
)
NODESET = KindRules(
    info=nodeset.INFO,
    problems=validation.nodeset_problems,
    admission_problems=admission_rules.nodeset_problems,
    unsupported_fields=unsupported_fields.nodeset_fields,
    references=related_objects.nodeset_references,
    uses=related_objects.member_uses,
    partitions=related_objects.nodeset_partitions,
    conflicts=related_objects.nodeset_conflicts,
    finalizers=(DRAIN_FINALIZER, RESERVATION_FINALIZER),
)
LOGINSET = KindRules(
    info=loginset.INFO,
    problems=validation.loginset_problems,
    admission_problems=admission_rules.loginset_problems,
    unsupported_fields=unsupported_fields.loginset_fields,
    references=related_objects.loginset_references,
    uses=related_objects.member_uses,
)
RESTAPI = KindRules(
    info=restapi.INFO,
    problems=validation.restapi_problems,
    admission_problems=admission_rules.restapi_problems,
    unsupported_fields=unsupported_fields.restapi_fields,
    references=related_objects.restapi_references,
    uses=related_objects.member_uses,
    finalizers=(ASK_FINALIZER,),
)
ACCOUNTING = KindRules(
    info=accounting.INFO,
    problems=validation.accounting_problems,
    admission_problems=admission_rules.accounting_problems,
    unsupported_fields=unsupported_fields.accounting_fields,
    references=related_objects.accounting_references,
    deletion_warnings=related_objects.accounting_deletion_warnings,
)
TOKEN = KindRules(
    info=token.INFO,
    problems=validation.token_problems,
    unsupported_fields=unsupported_fields.token_fields,
    references=related_objects.token_references,
)

GROUP = ApiGroup(NAME, VERSION, (CONTROLLER, NODESET, LOGINSET, RESTAPI, ACCOUNTING, TOKEN))
