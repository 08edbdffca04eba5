"""A kubelet, and the controllers of Kubernetes that pods need, in memory."""
