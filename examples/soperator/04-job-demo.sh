#!/bin/bash
# Do jobs run? An ordinary one on all nodes, and one in a container where the cluster has Pyxis.
. "$(dirname "$0")/common.sh"

if [ "$(field .spec.slurmNodes.worker.size)" = 0 ]; then
    title "No job"
    echo "  skipped: spec.slurmNodes.worker.size is 0"
    exit 0
fi
nodes=$(slurm sinfo -h -t idle,mix,alloc -o %D | awk '{ n += $1 } END { print n + 0 }')
if [ "$nodes" -eq 0 ]; then
    bad "no node can run a job"
    finish
fi

title "An ordinary job on $nodes nodes"
answer=$(as_user "$nodes" <<'SCRIPT' || true
cd ~
cat >ordinary.sh <<'JOB'
#!/bin/bash
echo "batch on $(hostname) as $(id -un) in $(pwd)"
srun --label sh -c 'echo "$(hostname): $(nproc) CPUs, $(sed -n "s/^PRETTY_NAME=//p" /etc/os-release)"'
JOB
id=$(sbatch --parsable --nodes="$1" --ntasks-per-node=1 --time=10:00 --output=job_%j.out --wait ordinary.sh)
cat "job_$id.out"
scontrol show job "$id" | sed -n 's/.*JobState=\([A-Z_]*\).*/job '"$id"' is \1/p'
SCRIPT
)
echo "$answer"
if grep -q "is COMPLETED" <<<"$answer"; then good "it completed"; else bad "it did not complete"; fi
if [ "$(grep -c ' CPUs, ' <<<"$answer")" -eq "$nodes" ]; then good "all nodes printed"; else bad "not all nodes printed"; fi

title "A job in a container"
IMAGE=${CONTAINER_IMAGE:-}
# Not in a pipe: grep ends at the first match, and the end of its writer would count as no match.
if ! grep -q -- --container-image <<<"$(jail srun --help 2>&1)"; then
    echo "  skipped: this cluster's jail has no Pyxis, so srun has no --container-image"
elif [ -z "$IMAGE" ]; then
    echo "  skipped: name an image in CONTAINER_IMAGE, such as a file of squashfs in the jail"
else
    answer=$(as_user "$IMAGE" <<'SCRIPT' || true
cd ~
cat >container.sh <<'JOB'
#!/bin/bash
srun --container-image="$1" sed -n 's/^PRETTY_NAME=/in the container: /p' /etc/os-release
JOB
id=$(sbatch --parsable --nodes=1 --ntasks=1 --time=10:00 --output=job_%j.out --wait container.sh "$1")
cat "job_$id.out"
scontrol show job "$id" | sed -n 's/.*JobState=\([A-Z_]*\).*/job '"$id"' is \1/p'
SCRIPT
)
    echo "$answer"
    if grep -q "is COMPLETED" <<<"$answer"; then good "it completed"; else bad "it did not complete"; fi
    if grep -q "in the container" <<<"$answer"; then good "it printed"; else bad "it did not print"; fi
fi
finish
