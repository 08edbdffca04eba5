"""What an API gives to the engine that leads its workers."""
