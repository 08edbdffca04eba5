"""The rebooter on a Kubernetes node: runs the reboot command once the operator allows it."""
