"""`ledger formats`: what is read without a mapping of one's own, and the mappings themselves."""

from collections.abc import Iterator
from difflib import get_close_matches

import click

from ledger.cli.options import echo_json, format_option
from ledger.cli.output import echo
from ledger.errors import LedgerError
from ledger.ingest.given import Asked
from ledger.ingest.mapping import Mapping
from ledger.ingest.mapping_file import BUILT_IN, built_in_mappings

_EXAMPLE = """\b
Examples:
  ledger formats
  ledger formats show langfuse > mine.yaml
  ledger ingest --check --mapping mine.yaml export.jsonl
"""


WIDTH = 120  # characters of a line


class _Formats(click.Group):
    """`ledger formats NAME` is not there; whoever writes it is told what is."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; of another word, an error that names the formats that come near."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = built_in_mappings()
            raise _print_it(args[0]) if args[0] in known else _unknown(args[0])
        return super().resolve_command(ctx, args)


@click.group(cls=_Formats, invoke_without_command=True, epilog=_EXAMPLE)
@format_option
@click.pass_context
def formats(ctx: click.Context, output_format: str) -> None:
    """List the formats that are read by themselves: what for, what the command line has to add, and what they lack.

    A file's format is found by what it contains. Of a format that nothing can be settled from, the reason is given.
    """
    if ctx.invoked_subcommand is not None:
        return
    mappings = sorted(built_in_mappings().values(), key=lambda mapping: (mapping.refusal is not None, mapping.name))
    if output_format == "json":
        echo_json([_json(mapping) for mapping in mappings])
        return
    for mapping in mappings:
        echo(mapping.name)
        for text in _texts(mapping):
            echo(click.wrap_text(text, width=WIDTH, initial_indent="  ", subsequent_indent="  "))


@formats.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the mapping of a format, to begin one's own with.

    \b
    Example:
      ledger formats show nginx > gateway.yaml
    """
    known = built_in_mappings()
    if name not in known:
        raise _unknown(name)
    echo((BUILT_IN / f"{name}.yaml").read_text(encoding="utf-8").rstrip("\n"))


def _unknown(name: str) -> LedgerError:
    near = get_close_matches(name, built_in_mappings(), cutoff=0.5)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return LedgerError(f"there is no format {name}", cure=f"{meant}`ledger formats` lists them", exit_code=2)


def _print_it(name: str) -> LedgerError:
    return LedgerError(f"{name} is a format, and no command", cure=f"ledger formats show {name}", exit_code=2)


def _texts(mapping: Mapping) -> Iterator[str]:
    yield mapping.description
    if mapping.refusal is not None:
        yield f"Refused: {mapping.refusal}"
        return
    if mapping.asks:
        yield f"Needs {', '.join(_options(mapping))}."
    if mapping.lacks:
        yield f"Lacks {', '.join(mapping.lacks)}."


def _options(mapping: Mapping) -> list[str]:
    return [f"--{asked}" for asked in Asked if asked in mapping.asks]


def _json(mapping: Mapping) -> dict[str, object]:
    return {
        "name": mapping.name,
        "description": mapping.description,
        "needs": _options(mapping),
        "lacks": [] if mapping.refusal else list(mapping.lacks),
        "refused": mapping.refusal,
    }
