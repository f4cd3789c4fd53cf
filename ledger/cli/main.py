"""The `ledger` command: its groups and commands are imported only when they are called, so that `--help` is immediate.

Exit codes (specification, section 9): 0 done, 1 the input is at fault, 2 usage, 3 an alert is due, 4 the environment,
5 a broken invariant. No traceback reaches a user.
"""

import importlib

import click

# Command name -> (module:attribute, one line of help). The line stands here so that `--help` imports nothing.
COMMANDS: dict[str, tuple[str, str]] = {
    "contract": ("ledger.cli.contract:contract", "Check contract files, and keep their versions."),
}


class LazyGroup(click.Group):
    """A group whose commands live in other modules and are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if COMMANDS:
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


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
    cli(prog_name="ledger")
