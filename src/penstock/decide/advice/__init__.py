"""What a declaration will run into on its Kubernetes nodes."""
