"""The base of every error that stops a job: what went wrong, what to do about it, and the exit code it ends with."""


class LedgerError(Exception):
    """A job cannot go on. `message` names the place, `cure` what the user does next ("" if there is nothing to do).

    `exit_code` as in specification, section 9: 1 the input is at fault, 2 usage, 4 the environment, 5 a broken invariant.
    """

    title = "error: "  # before the message, where a user reads it

    def __init__(self, message: str, *, cure: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure
        self.exit_code = exit_code

    @property
    def text(self) -> str:
        """What a user reads: the message as an error, and the cure below it."""
        return f"{self.title}{self.message}" + (f"\n  {self.cure}" if self.cure else "")


class FileRefused(LedgerError):
    """A file is wrong. Each line of the message is a finding: it says its place, and by itself that it is an error."""

    title = ""


class DatabaseUnavailable(LedgerError):
    """No database answers, or it cannot be used; exit code 4."""

    def __init__(self, message: str, *, cure: str) -> None:
        super().__init__(message, cure=cure, exit_code=4)
