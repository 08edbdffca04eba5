#!/bin/sh
# ResumeProgram of slurm.conf: nodes get a pod. slurmctld waits for their slurmd by itself.
exec /opt/soperator/bin/power-manager resume -nodes "$1" -timeout ResumeTimeout
