"""Kubernetes' own objects as Penstock reads them, and the parts that kinds have in common."""
