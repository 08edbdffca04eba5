"""What can go wrong with the built-in node, in words for its user."""


class LocalError(Exception):
    """The built-in node cannot do what was asked; the message has the cause and the next step."""
