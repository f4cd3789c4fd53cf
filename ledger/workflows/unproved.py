"""Which contract files have examples that do not hold: files or stored versions in, how many of how many out.

A version may be stored all the same (`contract add --examples-may-fail`); whoever reads or approves it later is told by its examples, which
are run anew. Source: specification, section 10.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ledger.contract.reader import Places
from ledger.store.contracts import StoredVersion
from ledger.workflows.contract import CheckedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproved:
    """A file of whose examples some do not hold: they fail, or could not run."""

    file: str
    not_holding: int
    examples: int


def unproved_files(files: Iterable[CheckedFile]) -> Iterator[Unproved]:
    """Those of the files, in their order; each has a contract or is left out."""
    with_examples = [file for file in files if file.contract is not None and file.contract.examples]
    if not with_examples:
        return
    from ledger.workflows.contract_examples import run_examples

    for one in run_examples(with_examples):
        assert one.checked.contract is not None, "files without a contract are left out"
        examples, holding = len(one.checked.contract.examples), sum(not example.differences for example in one.run)
        if holding < examples:
            yield Unproved(file=one.checked.file, not_holding=examples - holding, examples=examples)


def unproved_version(version: StoredVersion) -> Unproved | None:
    """The stored version, if some of its examples do not hold."""
    file = CheckedFile(file=version.file, content=version.content, contract=version.contract, places=Places(None), diagnostics=())
    return next(unproved_files([file]), None)
