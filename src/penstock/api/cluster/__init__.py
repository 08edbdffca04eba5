"""Names of no API group: marks of Penstock, common labels, the reference to a cluster."""
