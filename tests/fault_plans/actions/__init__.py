"""What users and faults do in a plan."""
