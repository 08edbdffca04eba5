"""Policy of the topology that labels of Kubernetes nodes declare for all workers of a cluster."""
