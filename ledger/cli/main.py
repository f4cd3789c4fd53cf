"""The `ledger` command: its groups and commands are imported only when they are called, so that `--help` is immediate.

Exit codes (specification, section 9): 0 done, 1 the input is at fault, 2 usage, 3 an alert is due, 4 the environment,
5 a broken invariant, 141 the output was closed. No traceback reaches a user; LEDGER_TRACEBACK=1 shows it to a developer.
"""

import gc
import importlib
import io
import os
import sys
import traceback
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

import click

from ledger.cli.output import echo
from ledger.errors import LedgerError

# Command, or group and command -> (module:attribute, one line of help). The line stands here so that `--help` imports nothing.
COMMANDS: dict[str, tuple[str, str]] = {
    "contract new": ("ledger.cli.new_contract:new", "Write a contract for a new customer from a template."),
    "contract check": ("ledger.cli.contract:check", "Check contract files: every error and warning, without a database."),
    "contract explain": (
        "ledger.cli.explain_contract:explain",
        "Say a contract in plain sentences, each with its clause, in English or Chinese.",
    ),
    "contract diff": ("ledger.cli.diff_contract:diff", "Say what changed in meaning from one contract file to another."),
    "contract test": ("ledger.cli.contract_test:test", "Run the examples of contract files, without a database."),
    "contract schema": ("ledger.cli.contract:schema", "Print a JSON Schema of contract files, for editors."),
    "contract add": ("ledger.cli.register:add", "Put contract versions into force."),
    "contract approve": ("ledger.cli.approve:approve", "Approve a version in a role, as it requires."),
    "contract list": ("ledger.cli.versions:list_", "List the versions: when they are in force, and what they lack."),
    "contract show": ("ledger.cli.versions:show", "Print a stored version as it was added."),
    "contract history": ("ledger.cli.versions:history", "Show who added and approved the versions of a contract."),
    "ingest": ("ledger.cli.ingest:ingest", "Load telemetry files."),
    "formats": ("ledger.cli.formats:formats", "List the formats of telemetry, and print their mappings."),
    "quarantine list": ("ledger.cli.quarantine:list_rows", "Show the rows that were refused."),
    "quarantine show": ("ledger.cli.quarantine:show", "Show a refused row with its history."),
    "quarantine export": ("ledger.cli.requeue:export", "Write refused rows as a table to repair."),
    "quarantine dismiss": ("ledger.cli.quarantine:dismiss", "Say that refused rows need nothing more."),
    "quarantine requeue": ("ledger.cli.requeue:requeue", "Send refused rows in again."),
    "void": ("ledger.cli.corrections:void", "Withdraw a request, or many."),
    "correct": ("ledger.cli.corrections:correct", "Replace what is stored of a request."),
    "explain": ("ledger.cli.explain:explain", "Show all that has happened to a request."),
    "status": ("ledger.cli.status:status", "Show what is in the database, and what waits for somebody."),
    "interval add": ("ledger.cli.interval:add", "Record open circuit breakers and model loads."),
    "interval detect": ("ledger.cli.interval:detect", "Find open circuit breakers in samples of GPU memory."),
    "interval list": ("ledger.cli.interval:list_", "Show what is recorded."),
    "settle": ("ledger.cli.settle:settle", "Settle a month: price, judge, draft the invoices."),
    "close": ("ledger.cli.close:close", "Close a month: issue its invoices, for good."),
    "reopen": ("ledger.cli.close:reopen", "Take back the draft of a month that is not closed."),
    "credit-note create": ("ledger.cli.credit_note:create", "Credit a line of an issued document, for good."),
    "credit-note lines": ("ledger.cli.credit_note:lines", "Show the lines of an issued document, and what was credited of each."),
    "credit-note list": ("ledger.cli.credit_note:list_", "List the credits on demand."),
    "numbering set": ("ledger.cli.numbering:set_", "Say how the numbers of a provider's documents are written from now on."),
    "numbering show": ("ledger.cli.numbering:show", "Show how numbers are written, and which was issued last."),
    "journal export": ("ledger.cli.journal:export", "Write what was issued as double entries for accounting software."),
    "journal chart": ("ledger.cli.journal:chart", "Print a chart of accounts to begin your own with."),
    "verify": ("ledger.cli.verify:verify", "Compute again what is kept, and compare."),
    "reconcile": ("ledger.cli.reconcile:reconcile", "Hold the ledger against the counters of vLLM; exit 3 when something differs."),
    "budget": ("ledger.cli.budget:budget", "Show the error budgets now; exit 3 when an alert is due."),
    "demo": ("ledger.cli.demo:demo", "Settle a made-up month and show its invoices."),
    "database upgrade": ("ledger.cli.database:upgrade", "Create the tables or bring them up to date."),
    "database status": ("ledger.cli.database:status", "Show the server, its version, the schema and the sizes."),
    "database url": ("ledger.cli.database:url", "Print the URL, with its password, for psql and other tools."),
    "database shell": ("ledger.cli.database:shell", "Open psql on the database."),
    "database stop": ("ledger.cli.database:stop", "Stop the server that ledger keeps itself."),
}
# Group -> one line of help.
GROUPS: dict[str, str] = {
    "contract": "Write and check contract files, read them in plain words, put them into force.",
    "quarantine": "Look at refused rows, repair and resolve them.",
    "interval": "Record spans of time that the contracts speak of.",
    "credit-note": "Credit what was issued, on demand.",
    "numbering": "Say how invoices and credit notes are numbered.",
    "journal": "Take what was issued over into accounting software.",
    "database": "Create, upgrade and look after the database.",
}
# Group -> what is typed; "" is ledger itself.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("ledger demo", "ledger contract check acme-v1.yaml", "ledger ingest gateway.jsonl", "ledger settle 2026-05"),
    "contract": ("ledger contract check acme-v1.yaml", "ledger contract add acme-v1.yaml", "ledger contract list"),
    "quarantine": ("ledger quarantine list --count", "ledger quarantine show 1"),
    "interval": ("ledger interval add breakers.csv", "ledger interval list --node gpu-17"),
    "credit-note": ('ledger credit-note create INV-2026-000001 --line 1 --amount 12.50 --reason "as agreed"', "ledger credit-note list"),
    "numbering": ("ledger numbering show",),
    "journal": ("ledger journal export --to csv 2026-06", "ledger journal chart > accounts.yaml"),
    "database": ("ledger database upgrade", "ledger --database postgresql://ledger@db.example/ledger database status"),
}
CLOSED_PIPE = 128 + 13  # as a shell says of what SIGPIPE has ended
REPORT = "please report it, with what LEDGER_TRACEBACK=1 shows in addition"


class LazyGroup(click.Group):
    """A group whose commands live in other modules and are imported on use. `path` is "" for `ledger` itself."""

    path = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The next words of all commands below this group, in the order of COMMANDS."""
        below = (words.removeprefix(self.path).split()[0] for words in COMMANDS if words.startswith(self.path))
        return list(dict.fromkeys(below))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; a group of commands is made without importing any."""
        words = self.path + cmd_name
        if words in GROUPS:
            group = LazyGroup(cmd_name, help=GROUPS[words])
            group.path = f"{words} "
            return group
        if words not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[words][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples at the end of `--help`."""
        formatter.write_paragraph()
        formatter.write_text("\b\nExamples:\n" + "\n".join(f"  {example}" for example in EXAMPLES[self.path.strip()]))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in `--help`."""
        lines = [(name, GROUPS.get(self.path + name) or COMMANDS[self.path + name][1]) for name in self.list_commands(ctx)]
        if lines:
            with formatter.section("Commands"):
                formatter.write_dl(lines)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what is no text: it could be neither stored nor found."""
        for argument in args:
            if not argument.isascii() and any("\ud800" <= character <= "\udfff" for character in argument):
                raise click.UsageError(f"{argument!a} is not UTF-8; write it in UTF-8, or rename the file")
        try:
            return super().parse_args(ctx, args)
        except BrokenPipeError:  # of --help
            _leave_pipe(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn what stops it into a message and an exit code."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except LedgerError as error:
            _fail(ctx, error, error)
        except KeyboardInterrupt:
            ctx.exit(130)
        except BrokenPipeError:
            _leave_pipe(ctx)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else "the output cannot be written: "
            cure = "make room, or name a place that can be used"
            _fail(ctx, error, LedgerError(place + (error.strerror or str(error)), cure=cure, exit_code=4))
        except AssertionError as error:
            _fail(ctx, error, LedgerError(_defect(error), cure=REPORT, exit_code=5))
        except _database_errors() as error:
            _fail_database(ctx, error)


def _database_errors() -> tuple[type[Exception], ...]:
    """The errors of the driver and of SQLAlchemy, if a command has imported them; asked only when something was raised."""
    driver, library = sys.modules.get("psycopg"), sys.modules.get("sqlalchemy.exc")
    return (*([driver.Error] if driver else []), *([library.DBAPIError] if library else []))


def _fail_database(ctx: click.Context, error: Exception) -> NoReturn:
    """What the database said in the middle of a job: it went away (4), it held a rule that we broke, or we spoke nonsense (5)."""
    import psycopg

    said = getattr(error, "orig", None) or error
    reason = next(iter(str(said).strip().splitlines()), "")
    match said:
        case psycopg.errors.InsufficientPrivilege():
            from ledger.cli.rights import missing_right_cure

            told = LedgerError(f"the database refused: {reason}", cure=missing_right_cure(ctx.obj), exit_code=4)
        case psycopg.OperationalError() | psycopg.InterfaceError():
            told = LedgerError(f"the database failed: {reason}", cure="run the command again; what was committed stays", exit_code=4)
        case psycopg.IntegrityError():
            told = LedgerError(f"the database refused a change that must not happen: {reason}", cure=REPORT, exit_code=5)
        case _:
            told = LedgerError(_defect(error), cure=REPORT, exit_code=5)
    _fail(ctx, error, told)


def _fail(ctx: click.Context, error: Exception, told: LedgerError) -> NoReturn:
    """Ends the command because of the error, with what is told of it."""
    if os.environ.get("LEDGER_TRACEBACK"):
        traceback.print_exception(error)
    with suppress(BrokenPipeError):
        echo(told.text, err=True)
    ctx.exit(told.exit_code)


def _leave_pipe(ctx: click.Context) -> NoReturn:
    """Whoever read the output has seen enough. The command did not come to its end, so its exit code is that of a program which a closed
    pipe has ended, and none that says how it went."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:  # the interpreter would try again at its end, and complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    ctx.exit(CLOSED_PIPE)


def _defect(error: BaseException) -> str:
    """What went wrong, and the last line of ledger's own code that it went through. No values: they may be a customer's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(os.path.dirname(os.path.dirname(__file__)))] or frames
    return f"a defect in ledger: {type(error).__name__} in {os.path.basename(own[-1].filename)}:{own[-1].lineno}"


def _report_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The last resort for what nothing foresaw: two lines instead of a traceback, exit code 5."""
    if os.environ.get("LEDGER_TRACEBACK"):
        traceback.print_exception(kind, error, trace)
    click.echo(f"error: {_defect(error)}\n  {REPORT}", err=True)
    sys.exit(5)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--database", metavar="URL", envvar="LEDGER_DATABASE_URL", help="PostgreSQL to use. Default: a server that ledger keeps itself."
)
@click.version_option(package_name="ledger")
@click.pass_context
def cli(ctx: click.Context, database: str | None) -> None:
    """Settle a month of LLM inference: telemetry and contracts in, invoices and SLA reports out."""
    ctx.obj = database


def main() -> None:
    """Entry point of the `ledger` script."""
    gc.set_threshold(100_000)  # a command makes much that stays and few cycles; looking for them took a tenth of a settlement
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # no code of other packages runs when a contract is read
    sys.excepthook = _report_defect
    # The zone of this machine plays no part; libraries that look it up stumble over one that does not exist.
    os.environ["TZ"] = "UTC"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # names of files need not be text
    try:
        cli(prog_name="ledger")
    finally:
        gc.freeze()  # the system takes the memory back at once; Python would first look through all that was imported
