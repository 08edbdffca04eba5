"""What the engine leads, in no API's words."""
