"""Who does something: the user of the operating system, unless another name is given."""

import getpass


def author_name(given: str | None = None) -> str:
    """The given name, or that of the user who runs ledger."""
    return given or getpass.getuser()
