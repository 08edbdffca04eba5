"""What holds at each step of a plan, and at its end."""
