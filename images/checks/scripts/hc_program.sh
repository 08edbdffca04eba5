#!/bin/sh
# slurmd runs this as HealthCheckProgram: the checks of checks.json for this context.
CHECKS_CONTEXT=hc_program
CHECKS_CONFIG=/opt/slurm_scripts/checks.json
CHECKS_OUTPUTS_BASE_DIR=/opt/soperator-outputs/local
CHECKS_RUNNER_OUTPUT=/mnt/jail$CHECKS_OUTPUTS_BASE_DIR/slurm_scripts/$SLURMD_NODENAME.check_runner.hc_program.out
PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export CHECKS_CONTEXT CHECKS_CONFIG CHECKS_OUTPUTS_BASE_DIR CHECKS_RUNNER_OUTPUT PATH
runner=/opt/slurm_scripts/check_runner.py
[ -f "$runner" ] || runner=/usr/local/libexec/penstock/checks
# An image without the runner or Python has no checks; its jobs run.
[ -e "$runner" ] && command -v python3 >/dev/null || exit 0
exec python3 -B -E -S "$runner"
