"""Which mapping a file is read by: the one whose identifying fields it has.

Takes the fields of a file, under each delimiter that it may have, and the mappings in question; gives one, or says what comes nearest.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ledger.errors import LedgerError
from ledger.ingest.expression import field_key
from ledger.ingest.mapping import FileFormat, Mapping
from ledger.printable import brief

SHOWN_FIELDS = 12  # of a file that no format fits
NEAREST_FORMATS = 3


class Choice(NamedTuple):
    """A mapping that fits, with the fields and the delimiter (None: no CSV) under which they were found."""

    mapping: Mapping
    fields: tuple[str, ...]
    delimiter: str | None


def choose_mapping(
    path: Path, mappings: tuple[Mapping, ...], file_format: FileFormat, fields_by_delimiter: dict[str | None, tuple[str, ...]]
) -> Choice:
    """The mapping that the fields fit. Raises LedgerError if none does, or more than one."""
    fitting: list[Choice] = [
        Choice(mapping, fields, delimiter)
        for mapping in mappings
        for delimiter, fields in fields_by_delimiter.items()
        if mapping.file_format in (None, file_format)
        and (delimiter is None or mapping.delimiter in (None, delimiter))
        and set(mapping.identify) <= set(fields)
    ]
    found = _most_specific(fitting)
    if any(one.mapping.unfolding and not one.mapping.refusal for one in found):  # records of other kinds among those that are loaded
        found = [one for one in found if not one.mapping.refusal]
    if len({one.mapping.name for one in found}) == 1:
        mapping, fields, _ = found[0]
        if mapping.refusal is not None:
            raise LedgerError(f"{path}: {mapping.description.removesuffix('.')}, which cannot be settled", cure=mapping.refusal)
        _check_fields(path, mapping, fields)
        mapping.check_given(path, fields)
        return found[0]
    if found:
        names = ", ".join(sorted({one.mapping.name for one in found}))
        raise LedgerError(
            f"{path}: more than one format fits, and the file does not say which it is: {names}",
            cure="name one with --source; `ledger formats` says what each takes for granted",
        )
    raise _unknown_format(path, mappings, file_format, list(fields_by_delimiter.values()))


def _unknown_format(path: Path, mappings: tuple[Mapping, ...], file_format: FileFormat, readings: Sequence[tuple[str, ...]]) -> LedgerError:
    """No mapping fits: what the file has, the formats that come nearest, and what they miss."""
    fields = max(readings, key=len)
    shown = ", ".join(map(brief, fields[:SHOWN_FIELDS])) + (", ..." if len(fields) > SHOWN_FIELDS else "")
    near = []
    for mapping in mappings:
        reading = max(readings, key=lambda names: len(set(mapping.identify) & set(names)))
        missed = [name for name in mapping.identify if name not in reading]
        found = len(mapping.identify) - len(missed)
        if mapping.refusal is None and missed and (found or len(mappings) == 1):
            near.append((len(missed) / len(mapping.identify), -found, mapping.name, missed))
    near.sort()
    close = [one for one in near if one[0] <= 0.5] or near[:1]
    nearest = [f"{name}, which misses {', '.join(missed)}" for _, _, name, missed in close[:NEAREST_FORMATS]]
    named = f"; nearest {'is' if len(nearest) == 1 else 'are'} {'; '.join(nearest)}" if nearest else ""
    if not fields:
        problem = f"{path}: a {file_format} file in which no record can be read"
        return LedgerError(problem, cure="look at its first line, and export it again")
    return LedgerError(
        f"{path}: no format fits a {file_format} file with the fields {shown}{named}",
        cure="`ledger formats` lists the formats and what they are for; for a log of your own write a mapping and name it with --mapping",
    )


def _most_specific(fitting: list[Choice]) -> list[Choice]:
    """Those than which no other one asks for more of the same fields."""
    return [one for one in fitting if not any(set(one.mapping.identify) < set(other.mapping.identify) for other in fitting)]


def _check_fields(path: Path, mapping: Mapping, fields: tuple[str, ...]) -> None:
    """Raises LedgerError if the mapping reads what the file does not have."""
    for read in mapping.paths:
        # Read as b inside a, a field called a.b would be missing from every row, and a discount with it.
        if len(read) > 1 and read[0] not in fields and field_key(read) in fields:
            raise LedgerError(
                f"{path}: the mapping {mapping.name} reads {read[-1]} inside {field_key(read[:-1])}, "
                f"but the file has a field whose name is {field_key(read)}",
                cure=f"""write it with both quotes in the mapping: '"{field_key(read)}"'""",
            )
    lacking = [field_key(read) for read in mapping.paths if not {read[0], field_key(read)} & (set(fields) | mapping.optional)]
    if lacking:
        raise LedgerError(
            f"{path}: the mapping {mapping.name} reads {', '.join(lacking)}, which the file does not have",
            cure="correct the mapping, or list the field under optional; a name with a dash or a dot stands in both quotes: "
            """'"x-request-id"'""",
        )
