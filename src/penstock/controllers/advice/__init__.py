"""What users are told of fields that another controller overrides."""
