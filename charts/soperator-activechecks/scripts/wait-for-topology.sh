# Waits for topology.conf where slurm.conf has a plug-in that reads it.
set -u
folder=/mnt/jail/etc/slurm
until ls "$folder"/*.conf >/dev/null 2>&1; do
    sleep 5
done
if ! grep -qEih '^[[:space:]]*TopologyPlugin[[:space:]]*=[[:space:]]*topology/(tree|block)' "$folder"/*.conf*; then
    echo "slurm.conf has no topology of a file"
    exit 0
fi
until [ -s "$folder/topology.conf" ] || [ -s "$folder/topology.yaml" ]; do
    sleep 5
done
echo "the topology is there"
