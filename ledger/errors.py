"""The base of every error that stops a job: what went wrong, what to do about it, and the exit code it ends with."""


class LedgerError(Exception):
    """A job cannot go on. `message` names the place, `cure` what the user does next ("" if there is nothing to do).

    `exit_code` as in specification, section 9: 1 the input is at fault, 2 usage, 4 the environment, 5 a broken invariant.
    """

    def __init__(self, message: str, *, cure: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure
        self.exit_code = exit_code
