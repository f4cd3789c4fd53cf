"""`ledger contract new`: a contract for a new customer from the template of its kind. Source: specification, section 9."""

from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import click

from ledger.cli.output import echo, wrapped
from ledger.cli.output_file import check_output, force_option
from ledger.workflows.new_contract import FIELDS, KINDS, NewContract, new_contract, parse_value


def _parsed(ctx: click.Context, param: click.Parameter, value: tuple[str, ...] | str | None) -> tuple[str, ...]:
    """What is given of a field, as texts that a contract can hold; nothing is given: no text."""
    texts = (value,) if isinstance(value, str) else value or ()
    for text in texts:
        try:
            parse_value(param.opts[0].removeprefix("--"), text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}", ctx, param) from error
    return texts


def _variable(name: str) -> str:
    return f"field_{name.replace('-', '_')}"  # `from` alone is a word of Python


def _field_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, field in reversed(FIELDS.items()):
        metavar = {"from": "DAY", "until": "DAY", "currency": "CODE", "timezone": "ZONE"}.get(name, "TEXT")
        option = click.option(f"--{name}", _variable(name), metavar=metavar, multiple=field.is_list, callback=_parsed, help=field.help)
        command = option(command)
    return command


@click.command()
@click.option("--kind", type=click.Choice(KINDS), required=True, help="The kind of service; see above.")
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Of explanations and names.")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead.")
@force_option
@_field_options
def new(kind: str, language: str, output: Path | None, force: bool, **fields: tuple[str, ...]) -> None:
    """Write a complete contract for a new customer: every choice explained, with examples of every rule.

    \b
    real-time  dialogue: a person waits; end-to-end latency, dedicated capacity
    retrieval  knowledge base: a program asks; inference latency, shared capacity
    batch      may wait: inference latency, exempt while a circuit breaker is open

    What is not given stays as the template has it, and is listed. Works without a database. docs/legal.md goes on from here.

    \b
    Examples:
      ledger contract new --kind retrieval --language zh --output acme.yaml
      ledger contract new --kind real-time --id acme-bank-chat --customer "Acme Bank Co." \\
        --account acme-bank --currency EUR --timezone Europe/Paris --from 2026-07-01 --output acme.yaml
    """
    check_output(output, force=force)
    given = {name: texts for name in FIELDS if (texts := fields[_variable(name)])}
    made = new_contract(kind, language, given)
    if output is None:
        click.echo(made.content.decode("utf-8"), nl=False)
    else:
        output.write_bytes(made.content)
    for line in _told(made, language, output):
        echo(line, err=True)


def _told(made: NewContract, language: str, output: Path | None) -> list[str]:
    contract, file = made.contract, "FILE" if output is None else quote(str(output))
    until = "" if contract.effective.until is None else f" until {contract.effective.until}"
    in_language = " --language zh" if language == "zh" else ""
    lines = [
        f"{'the contract' if output is None else output}: {contract.id} version {contract.version}, {contract.parties.customer.name}",
        f"  in force from {contract.effective.start}{until}, days of {contract.calendar.timezone}, amounts in {contract.money.currency}",
    ]
    money = ", ".join(f"{name} {written} (line {line})" for name, line, written in made.money)
    lines += wrapped(f"the template's money, which nobody has agreed: {money}", first="  ")
    if made.unfilled:
        named = ", ".join(f"{name} (line {line})" for name, line in made.unfilled)
        lines += wrapped(f"still the template's: {named}; and targets, tiers, refunds and clause numbers", first="  ")
    return [
        *lines,
        "next:",
        "  1. change in it what your agreement says otherwise; every choice is explained above it",
        f"  2. ledger contract check {file}",
        f"  3. ledger contract explain {file}{in_language}",
        f"  4. ledger contract test --require-full {file}",
    ]
