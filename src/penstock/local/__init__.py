"""A real Kubernetes on this machine, for trying and testing, with nothing installed by hand."""
