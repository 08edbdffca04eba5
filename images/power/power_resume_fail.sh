#!/bin/sh
# ResumeFailProgram of slurm.conf: nodes did not start within ResumeTimeout.
exec /opt/soperator/bin/power-manager suspend -nodes "$1" -timeout SuspendTimeout
