"""Preview of a change: the operator reconciles a copy of the cluster, and nothing real changes.

`cluster_copy` copies the objects and the state of Slurm that the operator reads. `dry_run` asks the
API server for the objects after `kubectl apply`. `simulated_run` runs the operator on the copy in
simulated time. `effects` and `restarts` compare before and after, and `report` prints the result.
"""
