"""Coverage-guided fuzzing of what reads texts of strangers (`make fuzz`)."""
