"""200 clusters of 5 workers under one operator, and the same while ten of them are broken."""
