"""How a contract file was read is kept beside it, for the reader that read it."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """No readings yet: the next command makes them."""
    op.execute("""
        CREATE TABLE contract_reading (
            content_sha256 varchar(64) NOT NULL,
            reader_sha256 varchar(64) NOT NULL,
            texts json NOT NULL,
            CONSTRAINT pk_contract_reading PRIMARY KEY (content_sha256, reader_sha256),
            CONSTRAINT fk_contract_reading_content_sha256 FOREIGN KEY (content_sha256) REFERENCES contract_version (content_sha256)
        );
        COMMENT ON COLUMN contract_reading.reader_sha256 IS 'of the code that read the file';
    """)
    event = "UPDATE OR DELETE OR TRUNCATE ON contract_reading"
    op.execute(f"CREATE TRIGGER refuse_change BEFORE {event} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()")


def downgrade() -> None:
    """Readings can be made again."""
    op.execute("DROP TABLE contract_reading")
