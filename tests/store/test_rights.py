"""The application may do in each table what it has to, and nothing else; what is closed it can neither change nor remove."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from ledger.errors import LedgerError
from ledger.store.database import Database, connect
from ledger.store.home import APPLICATION, OWNER
from ledger.store.migration import upgrade
from ledger.store.rights import RIGHTS, application_roles, give_rights, role_rights
from ledger.store.schema import metadata
from tests.store.new_role import new_role, url_of

SEALED = [table for table, rights in RIGHTS.items() if not {"UPDATE", "DELETE"} & {*rights}]


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection]:
    """A connection of the owner, each statement for good."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        yield connection


def test_every_table_of_the_schema_has_its_rights() -> None:
    assert set(RIGHTS) == {*metadata.tables, "alembic_version"}


def test_what_was_agreed_loaded_and_issued_is_only_added_to() -> None:
    issued = {"run", "closing", "issued_document", "invoice_line", "credit_note", "journal_posting", "issued_file", "numbering"}
    told = {"batch", "event", "void", "resubmission", "interval", "contract_version", "contract_reading", "approval"}
    assert {*SEALED} >= issued | told


@pytest.mark.parametrize("table", SEALED)
def test_the_application_can_neither_change_nor_remove_a_sealed_row_nor_switch_off_what_refuses_it(database: Database, table: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        first = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attidentity = '' ORDER BY attnum LIMIT 1"
        [column] = connection.execute(first, [table]).fetchone() or ()
        names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        for change in (
            "UPDATE {table} SET {column} = {column}",
            "DELETE FROM {table}",
            "TRUNCATE {table} CASCADE",
            "SELECT FROM {table} FOR UPDATE",
            "ALTER TABLE {table} DISABLE TRIGGER ALL",
            "ALTER TABLE {table} DISABLE TRIGGER USER",
            "ALTER TABLE {table} ADD other integer",
            "CREATE TRIGGER other BEFORE INSERT ON {table} EXECUTE FUNCTION refuse_change()",
            "CREATE RULE other AS ON INSERT TO {table} DO INSTEAD NOTHING",
            "LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
            "DROP TABLE {table} CASCADE",
        ):
            with pytest.raises(InsufficientPrivilege) as refused, connection.transaction():
                connection.execute(sql.SQL(change).format(**names))
            assert refused.value.sqlstate == "42501"


@pytest.mark.parametrize(
    "attempt",
    [
        "SET session_replication_role = replica",
        "DROP TRIGGER refuse_change ON closing",
        "DROP FUNCTION refuse_change() CASCADE",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TABLE other (n integer)",
        "DROP SCHEMA public CASCADE",
        "CREATE ROLE other SUPERUSER",
        "CREATE DATABASE other",
        f"SET ROLE {OWNER}",
        f"GRANT {OWNER} TO {APPLICATION}",
        f"ALTER ROLE {APPLICATION} SUPERUSER",
        f"ALTER ROLE {OWNER} PASSWORD 'known'",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('postmaster.pid')",
        "ALTER SYSTEM SET fsync = off",
    ],
)
def test_the_application_cannot_become_more_than_it_is(database: Database, attempt: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        with pytest.raises(InsufficientPrivilege) as refused:
            connection.execute(attempt.encode())
        assert refused.value.sqlstate == "42501"


def test_what_looks_at_new_events_looks_at_the_owners_table_whatever_else_is_called_so(database: Database, owner_url: str) -> None:
    with psycopg.connect(database.url) as connection:
        connection.execute("CREATE TEMPORARY TABLE event (n integer)")
        connection.execute("SELECT analyze_events()")
    with psycopg.connect(owner_url) as connection:
        looked_at = (
            "SELECT relnamespace::regnamespace::text FROM pg_class "
            "WHERE relname = 'event' AND pg_stat_get_last_analyze_time(oid) IS NOT NULL"
        )
        assert connection.execute(looked_at).fetchall() == [("public",)]


def test_the_tests_themselves_are_the_application(database: Database) -> None:
    with database.begin() as connection:
        role = role_rights(connection)
    assert (role.name, role.is_superuser, role.is_owner, role.excess, role.missing) == (APPLICATION, False, False, (), ())


def test_giving_rights_takes_away_those_that_are_too_wide_and_can_be_repeated(owner: psycopg.Connection) -> None:
    with new_role(owner) as role:
        owner.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(sql.Identifier(role)))
        for _ in range(2):
            with owner.transaction():
                give_rights(owner, role)
        given = owner.execute(
            "SELECT relname, privilege_type FROM pg_class, aclexplode(relacl) WHERE grantee = %s::regrole AND relkind = 'r'", [role]
        ).fetchall()
        assert sorted(given) == sorted((table, right) for table, rights in RIGHTS.items() for right in rights)


def test_an_upgrade_gives_the_applications_what_is_new_to_them(owner: psycopg.Connection, owner_url: str) -> None:
    engine = connect(owner_url)
    with new_role(owner) as role:
        owner.execute(sql.SQL("GRANT INSERT ON event TO {}").format(sql.Identifier(role)))
        upgrade(engine, is_test=True)
        assert application_roles(owner) == sorted([APPLICATION, role])
        assert owner.execute("SELECT has_table_privilege(%s, 'issued_file', 'SELECT')", [role]).fetchone() == (True,)
    engine.dispose()


def test_who_is_not_the_owner_gives_no_rights(database: Database) -> None:
    with database.begin() as connection:
        assert application_roles(connection) == []
    with pytest.raises(LedgerError, match=f"the role {APPLICATION} does not own the tables, and can give no rights"):
        upgrade(database.engine, is_test=True, applications=[APPLICATION])


def test_a_role_that_rights_do_not_bind_or_that_is_not_there_is_refused(owner: psycopg.Connection, owner_url: str) -> None:
    engine = connect(owner_url)

    def refusal(role: str) -> str:
        with pytest.raises(LedgerError) as refused:
            upgrade(engine, is_test=True, applications=[role])
        return refused.value.text

    assert refusal(OWNER).startswith(f"error: the role {OWNER} is a superuser: rights do not bind it\n")
    assert refusal('no"body').endswith("""run: CREATE ROLE "no""body" LOGIN PASSWORD '...'""")
    with new_role(owner) as role, new_role(owner) as tables_owner:
        owner.execute(f"ALTER TABLE event OWNER TO {tables_owner}; GRANT {tables_owner} TO {role}".encode())
        for one in (tables_owner, role):
            assert re.match(rf"error: the role {one} owns the tables, or can become their owner: rights", refusal(one))
        owner.execute(f"REASSIGN OWNED BY {tables_owner} TO {OWNER}".encode())
    engine.dispose()


def test_a_role_that_can_become_the_owner_counts_as_one(owner: psycopg.Connection, owner_url: str) -> None:
    with new_role(owner) as role:
        owner.execute(f"GRANT {OWNER} TO {role}; GRANT SELECT ON alembic_version, ledger TO {role}".encode())
        with psycopg.connect(url_of(role, owner_url)) as connection:
            found = role_rights(connection)
        assert (found.is_superuser, found.is_owner) == (False, True)
