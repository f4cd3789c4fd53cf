"""What was loaded of a file's content before: the chunks behind which a load goes on, or why it is refused.

Takes an open file and the batches of its content. Rows that a second load would read differently become conflicts, and rows that the
file's name identifies would be new ones under another name: nobody wants either without saying so. Source: specification, section 2.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace

from ledger.errors import LedgerError
from ledger.ingest.given import Asked, Given
from ledger.ingest.mapping import Mapping, filled_sha256
from ledger.ingest.reading.record_file import RecordFile, file_stem
from ledger.instant import second_text
from ledger.store.connection import Connection
from ledger.store.events import Batch, committed_batches


def committed_chunks(connection: Connection, records: RecordFile, *, chunk_rows: int, again: bool) -> dict[int, Batch]:
    """The first batch of each chunk of this content that was loaded under this mapping and, where it identifies rows, this name.

    Raises LedgerError if the content was loaded in another way alone, unless it is to be loaded `again`. A load asks before it begins and,
    with the content locked, in the transaction of its first chunk: of two that begin together the second is refused then.
    """
    mapping = records.mapping
    before = committed_batches(connection, records.sha256)
    alike = [batch for batch in before if batch.mapping_sha256 == mapping.sha256]
    if not again and before and not alike:
        _refuse_other_reading(records, before[-1])
    if mapping.is_identified_by_file:
        named = [batch for batch in alike if file_stem(batch.source) == file_stem(records.name)]
        if not again and alike and not named:
            _refuse_other_name(records, alike[0])
        alike = named
    return {batch.chunk: batch for batch in reversed(alike) if batch.chunk_rows == chunk_rows}


def _refuse_other_reading(records: RecordFile, then: Batch) -> None:
    mapping = records.mapping
    given = mapping.given if then.given is None else Given.of_texts(then.given)
    if then.mapping == mapping.name and (lacked := _lacked(given, mapping.given)):
        options = " ".join(f"--set {asked}={shlex.quote(value)}" for asked, value in lacked.items())
        rows = f"--file {shlex.quote(then.source)} --refused-for missing_field"
        command = f"ledger quarantine requeue {rows} {options} --reason TEXT --dry-run"
        raise LedgerError(
            f"{records.name}: this content was loaded {_other_reading(then, mapping)}; {_load(then)}",
            cure=f"its rows without {' and '.join(lacked)} were refused, and nothing was billed of them: they wait in quarantine\n"
            f"  {command} shows what they would be\n"
            "  --again loads the file once more, and leaves those rows in quarantine",
        )
    account = given.account
    are_others = account != mapping.given.account or (mapping.is_identified_by_file and file_stem(then.source) != file_stem(records.name))
    raise LedgerError(
        f"{records.name}: this content was loaded {_other_reading(then, mapping)}; {_load(then)}",
        cure="--again loads all of it, as new requests that are billed besides those"
        if are_others
        else "rows of one id that the two read differently will be conflicts, and those of another id new; --again loads it all the same",
    )


def _lacked(before: Given, now: Given) -> dict[Asked, str]:
    """What is given now to rows that have none, and was not then: such rows were refused. Empty if anything else differs."""
    if replace(before, account=now.account, model=now.model) != now:
        return {}
    if any(one not in (None, other) for one, other in ((before.account, now.account), (before.model, now.model))):
        return {}
    return {asked: value for asked, value in now.shown().items() if asked not in before.shown()}


def _refuse_other_name(records: RecordFile, then: Batch) -> None:
    raise LedgerError(
        f"{records.name}: this content was loaded {_load(then)}, and the format {records.mapping.name} makes ids of the file's name: "
        "each request would be billed twice",
        cure=f"--name {shlex.quote(then.source)} loads what that load may have left; --again loads all of it, as new requests",
    )


def _load(batch: Batch) -> str:
    return f"as {batch.source} by {batch.author} at {second_text(batch.loaded_at)} (load {batch.batch_id})"


def _other_reading(then: Batch, mapping: Mapping) -> str:
    """How the mapping then differs from this one, in words."""
    if then.mapping != mapping.name:
        return f"under another mapping ({then.mapping})"
    if then.given is None:
        return f"under another text of the mapping {mapping.name}, or with other options"
    given = Given.of_texts(then.given)
    options = f"with other options: {', '.join(_differing(given, mapping.given))}" if given != mapping.given else ""
    if filled_sha256(mapping.text_sha256, given) == then.mapping_sha256:
        return options
    return f"under another text of the mapping {mapping.name}" + (f", and {options}" if options else "")


def _differing(then: Given, now: Given) -> Iterator[str]:
    before, after = then.shown(), now.shown()
    for asked in Asked:
        match before.get(asked), after.get(asked):
            case None, str(given):
                yield f"no --{asked} then, {given} now"
            case str(given), other if other != given:
                yield f"--{asked} {given} then, {other or 'none'} now"
