# Shared by the scripts beside it. Their settings, each by a variable of the environment:
#   NAMESPACE, CLUSTER   the SlurmCluster (correct-cpu-cluster in the namespace of that name)
#   KUBE_CONTEXT         a context of kubectl (the current one)
#   SLURM_USER           the account of the jail that submits jobs (soperator if it exists, else root)
set -euo pipefail
NAMESPACE=${NAMESPACE:-correct-cpu-cluster}
CLUSTER=${CLUSTER:-correct-cpu-cluster}
FAILED=0

kube() { kubectl ${KUBE_CONTEXT:+--context "$KUBE_CONTEXT"} -n "$NAMESPACE" "$@"; }
title() { printf '\n== %s\n' "$*"; }
good() { printf '  ok      %s\n' "$*"; }
bad() {
    printf '  FAILED  %s\n' "$*"
    FAILED=1
}

# A field of the SlurmCluster by its path, or nothing.
field() { kube get slurmcluster "$CLUSTER" -o "jsonpath={$1}"; }

# A command beside slurmctld, and one in the jail of the login pod. Neither reads standard input.
slurm() { kube exec controller-0 -c slurmctld -- "$@"; }
jail() { kube exec login-0 -c sshd -- chroot /mnt/jail "$@"; }

# Standard input as a script of the user in the jail.
as_user() {
    local user=${SLURM_USER:-}
    [ -n "$user" ] || user=$(jail sh -c 'id -un soperator 2>/dev/null || echo root')
    kube exec -i login-0 -c sshd -- chroot /mnt/jail su - "$user" -c "bash -s -- $*"
}

# The end of a script: its status says whether all checks succeeded.
finish() {
    if [ "$FAILED" -ne 0 ]; then
        printf '\n%s: something is wrong, see FAILED above.\n' "$(basename "$0")"
        exit 1
    fi
}
