"""From the objects of each API to the model, and from the model's status back. Pure functions."""
