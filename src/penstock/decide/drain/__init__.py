"""Which worker is drained, why, and when its pod can be deleted."""
