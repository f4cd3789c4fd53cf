"""Who does something, unless a name is given: the user who runs ledger."""

import getpass
import os


def author_name() -> str:
    """The name of the user who runs ledger; `user 1000` where the system has no name for that number, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
