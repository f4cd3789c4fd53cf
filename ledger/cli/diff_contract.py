"""`ledger contract diff`: what changed in meaning between two contract files. Source: specification, section 9."""

import sys
from pathlib import Path

import click

from ledger.cli.contract import quoted
from ledger.cli.options import echo_json, replay_option
from ledger.documents.contract_prose.difference import FORMS, difference_json
from ledger.documents.contract_prose.languages import LANGUAGES
from ledger.documents.text_table import write_lines
from ledger.workflows.diff_contract import diff_contracts


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="en", show_default=True, help="English or Chinese.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMS, "json"]),
    default="text",
    show_default=True,
    help="text for the terminal, markdown to send, json for programs.",
)
@replay_option
@click.pass_context
def diff(ctx: click.Context, old: Path, new: Path, language: str, form: str, replayed: str | None) -> None:
    """Say what changed in meaning from one contract file to another, clause by clause, in plain sentences.

    How a value is written makes no difference: the order of keys, 100ms or 0.1s, a default that is spelled out. Works without a
    database. The exit code is 0 whether or not they differ. Files with errors are not compared: the errors are shown as `contract check`
    shows them, and the exit code is 1.

    With --replay, the recorded requests of a month are settled under both contracts, each taken as if in force for the whole month, and
    what differs in amounts, lines and breaches is shown. Neither has to be added before, and nothing is written.

    \b
    Examples:
      ledger contract diff acme-v1.yaml acme-v2.yaml
      ledger contract diff acme-v1.yaml acme-v2.yaml --language zh --format markdown
      ledger contract diff acme-v1.yaml acme-v2.yaml --replay 2026-05
    """
    compared = diff_contracts(old, new, language)
    if compared.told is None:
        for file in (compared.old, compared.new):
            if file.contract is None:
                for diagnostic in file.diagnostics:
                    write_lines(quoted(diagnostic, file.lines), sys.stderr)
        ctx.exit(1)
    if replayed is None:
        if form == "json":
            echo_json(difference_json(compared.told))
        else:
            click.echo(FORMS[form](compared.told), nl=False)
        return
    from ledger.documents.replay_table import replay_json, replay_markdown, replay_text
    from ledger.documents.replay_words import WORDS, note_text
    from ledger.store.database import open_database
    from ledger.workflows.replay import Candidate, compare_replays

    candidates = [Candidate(name=one.file, contract=one.contract) for one in (compared.old, compared.new) if one.contract]
    with open_database(ctx.obj) as database:
        (before, after), found = compare_replays(database, replayed, *candidates)
    words = WORDS[language]
    notes = [note_text(note, words) for note in found]
    if form == "json":
        echo_json(difference_json(compared.told) | {"replay": replay_json(before, after, notes)})
    else:
        tables = {"text": replay_text, "markdown": replay_markdown}[form](before, after, notes, words)
        click.echo(f"{FORMS[form](compared.told)}\n{tables}", nl=False)
