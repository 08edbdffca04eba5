#!/bin/bash
# What does a user find on a login? Its environment, the jail's volumes, and the way to the daemons.
. "$(dirname "$0")/common.sh"

title "Container and jail of login-0"
kube exec login-0 -c sshd -- sh -c '. /etc/os-release; echo "  container: $PRETTY_NAME, $(hostname)"'
jail sh -c '. /etc/os-release; echo "  jail:      $PRETTY_NAME, $(hostname)"; echo "  accounts:  $(grep -c ":/home/" /etc/passwd) with a home"'

title "Storage of the jail"
jail df -h / /tmp
if jail sh -c 'touch /home/.probe && rm /home/.probe'; then good "/ is writable"; else bad "/ is not writable"; fi
if jail sh -c '! touch /etc/slurm/.probe 2>/dev/null'; then good "/etc/slurm is read-only"; else bad "/etc/slurm is writable"; fi

title "Network"
while read -r name port; do
    [ -n "$name" ] || continue
    if jail timeout 5 bash -c "</dev/tcp/$name/$port" 2>/dev/null; then
        good "$name:$port is reached"
    else
        bad "$name:$port is not reached"
    fi
done < <(
    echo "$CLUSTER-controller-svc 6817"
    slurm sinfo -h -N -o %N | sort -u | sed 's/$/ 6818/'
)

title "From outside"
kube get service "$CLUSTER-login-svc"
finish
