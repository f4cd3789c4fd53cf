"""What the tables have in common: names of constraints, text ordered by code point, instants in UTC."""

from sqlalchemy import DateTime, MetaData, String

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Name = String(collation="C")
Instant = DateTime(timezone=True)
