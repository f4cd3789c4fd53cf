"""Rows of two tables compared column by column in SQL, where null equals null and nothing else."""

from collections.abc import Iterable

from psycopg import sql


def equal(names: Iterable[str], one: str, other: str) -> sql.Composed:
    """The condition that the rows `one` and `other` (the tables' names in the query) agree in these columns."""
    return sql.SQL(" AND ").join(
        sql.SQL("{} IS NOT DISTINCT FROM {}").format(sql.Identifier(one, name), sql.Identifier(other, name)) for name in names
    )


def differing(names: Iterable[str], one: str, other: str) -> sql.Composed:
    """For concat_ws: the names of those columns in which the two rows do not agree, each null otherwise."""
    return sql.SQL(", ").join(
        sql.SQL("CASE WHEN {} IS DISTINCT FROM {} THEN {} END").format(
            sql.Identifier(one, name), sql.Identifier(other, name), sql.Literal(name)
        )
        for name in names
    )
