"""Errors about keys."""


class KeyLostError(Exception):
    """The key of an unfinished run is missing, damaged, or may have been read by others."""
