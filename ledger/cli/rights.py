"""What is wrong with the rights of the role that a command has connected as, and who cures it by what."""

import os
import shlex
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from ledger.store.rights import RoleRights
from ledger.workflows.author import author_name

_SHOWN = 3
_PAGE = 'docs/operators.md, "A server of your own"'


def missing_right_cure(url: str | None) -> str:
    """What gives the application every right that it needs, and no other. `url` is the one that the command was given.

    >>> missing_right_cure("postgresql://app:secret@db/ledger")
    'let the owner of the tables run, with a URL of its own: ledger database upgrade --application app'
    """
    if url is None:
        return "run: ledger database upgrade"
    user = unquote(urlsplit(url).username or "") or os.environ.get("PGUSER") or author_name()
    return f"let the owner of the tables run, with a URL of its own: ledger database upgrade --application {shlex.quote(user)}"


def role_warnings(role: RoleRights, url: str | None) -> list[str]:
    """What is not protected from the role, and what it cannot do although a command may have to; each with its cure. Empty for an
    application as it should be."""
    found = []
    if role.is_superuser or role.is_owner:
        what = "is a superuser" if role.is_superuser else "owns the tables, or can become their owner"
        found.append(
            f"warning: the role {role.name} {what}: through it closed settlements, their lines, invoices and journals can be changed and "
            "removed, since it can switch off the triggers that refuse that\n"
            "  let commands connect as a second role, which owns nothing, and run as the owner: "
            f"ledger database upgrade --application ROLE ({_PAGE})"
        )
    if role.excess:
        found.append(
            f"warning: the role {role.name} may do what the application need not: {_listed(role.excess)}; only triggers refuse it then\n"
            f"  {missing_right_cure(url)}"
        )
    if role.missing:
        found.append(
            f"warning: the role {role.name} may not do what commands have to: {_listed(role.missing)}\n  {missing_right_cure(url)}"
        )
    return found


def _listed(rights: Sequence[str]) -> str:
    more = len(rights) - _SHOWN
    return ", ".join(rights[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
