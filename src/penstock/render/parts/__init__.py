"""Parts of manifests that all kinds have."""
