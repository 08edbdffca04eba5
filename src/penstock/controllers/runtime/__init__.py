"""What every reconciler stands on: context, caches, reports, connections."""
