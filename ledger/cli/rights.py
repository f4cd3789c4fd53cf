"""Which GRANT gives a right that PostgreSQL has missed, by the words in which it says so."""

import os
import re
from urllib.parse import unquote, urlsplit

from ledger.workflows.author import author_name

# By the kind of thing: what ledger needs of it. Rows that never change are protected by triggers, not by rights.
_RIGHTS = {
    "table": "SELECT, INSERT, UPDATE, DELETE ON TABLE",
    "sequence": "USAGE, SELECT ON SEQUENCE",
    "schema": "USAGE ON SCHEMA",
    "function": "EXECUTE ON FUNCTION",
}
_DENIED = re.compile(r"permission denied for (table|sequence|schema|function) (\S+)")
_NO_TEMPORARY = re.compile(r"permission denied to create temporary tables in database (\S+)")
_NOT_OWNER = re.compile(r"must be owner of|permission denied to create|permission denied for database")


def missing_right_cure(said: str, url: str | None) -> str:
    """What the owner of the database has to run, or that it is the owner's to do. `url` is the one that the command was given.

    >>> missing_right_cure("permission denied for table event", "postgresql://app:secret@db/ledger")
    'let the owner of the tables run: GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE event TO "app"'
    """
    user = unquote(urlsplit(url or "").username or "") or os.environ.get("PGUSER") or author_name()
    role = '"' + user.replace('"', '""') + '"'
    if match := _DENIED.match(said):
        right = f"{_RIGHTS[match[1]]} {match[2]}"
    elif match := _NO_TEMPORARY.match(said):
        right = f"TEMPORARY ON DATABASE {match[1]}"
    elif _NOT_OWNER.match(said):
        return f"do this as the owner of the database; for all other commands: {_all_rights(role)}"
    else:  # in another language, perhaps
        return f"let the owner of the tables run: {_all_rights(role)}"
    return f"let the owner of the tables run: GRANT {right} TO {role}"


def _all_rights(role: str) -> str:
    return f"GRANT {_RIGHTS['table'].removesuffix('TABLE')}ALL TABLES IN SCHEMA public TO {role}"
