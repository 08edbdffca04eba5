"""Which Kubernetes node a worker may be on."""
