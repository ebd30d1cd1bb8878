"""Why a run cannot go on, apart from its arguments and its budget."""


class KeyLostError(Exception):
    """The key of an unfinished run is gone or not to be trusted."""
