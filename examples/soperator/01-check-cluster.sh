#!/bin/bash
# Is all of the cluster there? Namespace, SlurmCluster, pods, Services and volumes.
. "$(dirname "$0")/common.sh"

title "Namespace $NAMESPACE"
if kube get namespace "$NAMESPACE" >/dev/null; then good exists; else bad "is missing"; finish; fi

title "SlurmCluster $CLUSTER"
kube get slurmcluster "$CLUSTER"
phase=$(field .status.phase)
if [ "$phase" = Available ]; then good "phase $phase"; else bad "phase ${phase:-none}"; fi

title "Pods"
kube get pods -o wide
workers=$(field .spec.slurmNodes.worker.size)
logins=$(field .spec.slurmNodes.login.size)
pods=$(kube get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}')
expected=(controller-0)
for ((n = 0; n < ${logins:-0}; n++)); do expected+=("login-$n"); done
for ((n = 0; n < ${workers:-0}; n++)); do expected+=("worker-$n"); done
for name in "${expected[@]}"; do
    case $(grep "^$name " <<<"$pods" || true) in
    *" True") good "$name is ready" ;;
    "") bad "$name is missing" ;;
    *) bad "$name is not ready" ;;
    esac
done
for name in sconfigcontroller rest; do
    if grep -q "^$name-.* True$" <<<"$pods"; then good "$name is ready"; else bad "$name is missing or not ready"; fi
done
if [ "$(kube get job "$CLUSTER-populate-jail" -o 'jsonpath={.status.succeeded}')" = 1 ]; then
    good "the jail is filled"
else
    bad "Job $CLUSTER-populate-jail has not succeeded"
fi

title "Services"
kube get services
for name in controller login login-headless worker rest; do
    if kube get service "$CLUSTER-$name-svc" >/dev/null 2>&1; then good "$CLUSTER-$name-svc"; else bad "$CLUSTER-$name-svc is missing"; fi
done

title "Storage"
kube get pvc
while read -r name state; do
    if [ "$state" = Bound ]; then good "$name"; else bad "$name is $state"; fi
done < <(kube get pvc -o 'jsonpath={range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}')
finish
