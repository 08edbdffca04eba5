"""All kinds of `slinky.slurm.net/v1beta1`, in one place."""

from __future__ import annotations

from penstock.api.slinky import accounting, controller, loginset, nodeset, restapi, token

KINDS = (
    controller.INFO,
    nodeset.INFO,
    loginset.INFO,
    restapi.INFO,
    accounting.INFO,
    token.INFO,
)
