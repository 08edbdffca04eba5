#!/bin/sh
# SuspendProgram of slurm.conf: the pods of nodes end.
exec /opt/soperator/bin/power-manager suspend -nodes "$1" -timeout SuspendTimeout
