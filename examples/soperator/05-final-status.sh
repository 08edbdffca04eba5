#!/bin/bash
# What runs now, and what next?
. "$(dirname "$0")/common.sh"

title "Kubernetes"
ready=$(kube get pods --field-selector status.phase=Running -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}')
echo "  $(grep -c True <<<"$ready" || true) of $(grep -c . <<<"$ready" || true) running pods are ready"
kube get slurmcluster "$CLUSTER"
if [ "$(field .status.phase)" = Available ]; then good "the SlurmCluster is available"; else bad "the SlurmCluster is not available"; fi

title "Slurm"
slurm sinfo -h -o '  partition %P: %D nodes %T'
jobs=$(slurm scontrol --oneliner show jobs 2>/dev/null | grep -o 'JobState=[A-Z_]*' | sort | uniq -c || true)
if [ -n "$jobs" ]; then sed 's/^ */  jobs: /; s/JobState=//' <<<"$jobs"; else echo "  no jobs"; fi

title "What to try next"
address=$(kube get nodes -o 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}')
port=$(kube get service "$CLUSTER-login-svc" -o 'jsonpath={.spec.ports[0].nodePort}')
size=$(field .spec.slurmNodes.worker.size)
[ -z "$port" ] || echo "  ssh -p $port soperator@$address"
echo "  kubectl exec -it login-0 -c sshd -n $NAMESPACE -- chroot /mnt/jail bash -l"
echo "  kubectl patch slurmcluster $CLUSTER -n $NAMESPACE --type=merge -p '{\"spec\":{\"slurmNodes\":{\"worker\":{\"size\":$((size + 1))}}}}'"
echo "  kubectl get slurmclusters -A -w"
finish
