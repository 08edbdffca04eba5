"""Kind to the Kubernetes objects it needs: pure functions with byte-stable output."""
