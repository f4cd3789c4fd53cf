"""What the application may do in the database, table by table, and how the owner of the tables lets it.

Owner and application are two roles: the owner makes and alters the tables, the application reads and adds. What an update or a removal
would falsify, the application has no right to update or remove, and the triggers that refuse it are the owner's, so the application cannot
switch them off. Source: specification, section 8; decision record two-roles.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import sql

from ledger.errors import LedgerError
from ledger.store.connection import Connection, execute, fetch

_READ = ("SELECT",)
_ADD = ("SELECT", "INSERT")
_KEEP_STATE = ("SELECT", "INSERT", "UPDATE")  # triggers say of most of these which change is one
_MAKE_AGAIN = ("SELECT", "INSERT", "DELETE")

# Every table of the schema stands here; in one that does not, the application could do nothing.
RIGHTS: dict[str, tuple[str, ...]] = {
    "alembic_version": _READ,
    "ledger": _READ,
    # what was loaded, recorded and agreed
    "batch": _ADD,
    "event": _ADD,
    "void": _ADD,
    "resubmission": _ADD,
    "interval": _ADD,
    "contract_version": _ADD,
    "contract_reading": _ADD,
    "approval": _ADD,
    # what was issued
    "run": _ADD,
    "closing": _ADD,
    "issued_document": _ADD,
    "invoice_line": _ADD,
    "credit_note": _ADD,
    "journal_posting": _ADD,
    "issued_file": _ADD,
    "numbering": _ADD,
    # what waits for somebody or for its other half
    "quarantine": _KEEP_STATE,
    "observation": _KEEP_STATE,
    "formed_request": _KEEP_STATE,
    "engine_request": _KEEP_STATE,
    # what is computed from all that
    "traffic": _ADD,
    "cell": _MAKE_AGAIN,
    "delayed_cell": _MAKE_AGAIN,
    "cold_start_event": _MAKE_AGAIN,
    "version_in_force": _MAKE_AGAIN,
    "account_covered": _MAKE_AGAIN,
    "stale": (*_KEEP_STATE, "DELETE"),
    "settlement": (*_KEEP_STATE, "DELETE"),  # drafts
}
_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRights:
    """The role of a connection, and what it may do that the application may not, or cannot do that it must: rights such as `UPDATE ON run`.

    What a superuser and an owner of the tables (or who can become their owner) may do is not listed: everything.
    """

    name: str
    is_superuser: bool
    is_owner: bool
    excess: tuple[str, ...]
    missing: tuple[str, ...]


def role_rights(connection: Connection) -> RoleRights:
    """What the connected role may do in the tables that are there."""
    [(name, is_superuser)] = fetch(connection, "SELECT current_user::text, current_setting('is_superuser') = 'on'")
    tables = _tables(connection)
    owned = fetch(
        connection,
        "SELECT FROM pg_class WHERE oid = ANY (%(tables)s::regclass[]) AND pg_has_role(relowner, 'MEMBER') LIMIT 1",
        {"tables": tables},
    )
    rows = fetch(
        connection,
        "SELECT t, r, has_table_privilege(t, r) FROM unnest(%(tables)s::text[]) AS t, unnest(%(rights)s::text[]) AS r",
        {"tables": tables, "rights": list(_ALL)},
    )
    held = {(table, right) for table, right, is_held in rows if is_held}
    wanted = {(table, right) for table in tables for right in RIGHTS[table]}
    listed = {(table, right): f"{right} ON {table}" for table in tables for right in _ALL}
    has_all = is_superuser or owned != []
    return RoleRights(
        name=name,
        is_superuser=is_superuser,
        is_owner=owned != [],
        excess=() if has_all else tuple(words for right, words in listed.items() if right in held - wanted),
        missing=() if has_all else tuple(words for right, words in listed.items() if right in wanted - held),
    )


def application_roles(connection: Connection) -> list[str]:
    """The roles that were let do what the application does: those that may add events without owning the table. None for whom
    does not own it, and could give no right."""
    rows = fetch(
        connection,
        "SELECT DISTINCT rolname::text FROM pg_class, aclexplode(relacl) JOIN pg_roles ON pg_roles.oid = grantee "
        "WHERE pg_class.oid = to_regclass('event') AND privilege_type = 'INSERT' AND grantee <> relowner "
        "AND pg_has_role(relowner, 'USAGE') ORDER BY 1",
    )
    return [role for (role,) in rows]


def give_rights(connection: Connection, role: str) -> None:
    """Let the role do what the application does in the tables that are there, and nothing else; the connection is their owner's.

    Raises LedgerError if the connection is somebody else's, if there is no such role, or if no rights bind it.
    """
    tables = _tables(connection)
    _refuse_strangers(connection, tables)
    _refuse_unbound(connection, role)
    [(database, schema)] = fetch(connection, "SELECT current_database()::text, current_schema()::text")
    to = sql.Identifier(role)
    statements = [
        sql.SQL("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}").format(sql.Identifier(database), to),
        sql.SQL("REVOKE CREATE ON SCHEMA {} FROM {}").format(sql.Identifier(schema), to),
        sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), to),
        sql.SQL("REVOKE ALL ON {} FROM {}").format(_listed(tables), to),
        sql.SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {} TO {}").format(sql.Identifier(schema), to),
    ]
    for rights in dict.fromkeys(RIGHTS.values()):
        if those := [table for table in tables if RIGHTS[table] == rights]:
            statements.append(sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(", ").join(map(sql.SQL, rights)), _listed(those), to))
    if fetch(connection, "SELECT to_regprocedure('analyze_events()')::text") != [(None,)]:
        statements.append(sql.SQL("GRANT EXECUTE ON FUNCTION analyze_events() TO {}").format(to))
    for statement in statements:
        execute(connection, statement)


def _tables(connection: Connection) -> list[str]:
    """Those of the schema that are there: an earlier ledger made fewer."""
    query = "SELECT t FROM unnest(%(tables)s::text[]) AS t WHERE to_regclass(quote_ident(t)) IS NOT NULL"
    return [table for (table,) in fetch(connection, query, {"tables": list(RIGHTS)})]


def _listed(tables: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, tables))


def _refuse_strangers(connection: Connection, tables: list[str]) -> None:
    """Who does not own the tables would give nothing, and PostgreSQL would not say so."""
    query = (
        "SELECT current_user::text FROM pg_class WHERE oid = ANY (%(tables)s::regclass[]) AND NOT pg_has_role(relowner, 'USAGE') LIMIT 1"
    )
    for (name,) in fetch(connection, query, {"tables": tables}):
        raise LedgerError(
            f"the role {name} does not own the tables, and can give no rights to them",
            cure="do this as the owner: ledger --database URL database upgrade --application ROLE",
            exit_code=4,
        )


def _refuse_unbound(connection: Connection, role: str) -> None:
    found = fetch(
        connection,
        "SELECT rolsuper, pg_has_role(oid, (SELECT relowner FROM pg_class WHERE oid = to_regclass('event')), 'MEMBER') "
        "FROM pg_roles WHERE rolname = %(role)s",
        {"role": role},
    )
    if not found:
        raise LedgerError(
            f"there is no role {role} on the server",
            cure=f"let an administrator of the server run: CREATE ROLE {_quoted(role)} LOGIN PASSWORD '...'",
        )
    is_superuser, is_owner = found[0]
    if is_superuser or is_owner:
        what = "is a superuser" if is_superuser else "owns the tables, or can become their owner"
        raise LedgerError(f"the role {role} {what}: rights do not bind it", cure="make another role for the application, and name that one")


def _quoted(role: str) -> str:
    return '"' + role.replace('"', '""') + '"'
