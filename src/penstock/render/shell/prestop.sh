# Tells Slurm that this node goes. One that drains already says why: that reason is kept.
node=$(hostname)
if timeout 10 scontrol show node "$node" 2>/dev/null | grep -q '^ *State=[^ ]*DRAIN'; then
  exit 0
fi
timeout 10 scontrol update nodename="$node" state=down reason='slurm-operator: Pod is terminating'
# A slurmctld that went first, as at an uninstall, has to hear nothing: a hook that fails is an event.
exit 0
