"""mpi.conf of a SlurmCluster. Source: mpi.conf(5)."""

from __future__ import annotations

from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import file_text, given


def mpi_conf(inputs: ConfigInputs) -> str:
    """Environment of PMIx."""
    return file_text(given(("PMIxEnv", inputs.cluster.spec.mpi_config.pmix_env)))
