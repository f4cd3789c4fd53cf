"""What is issued: sealed documents, closed periods with their lines, credit notes, journal, files. A run says which voids it saw."""

from alembic import op

revision = "0013"
down_revision = "0012"

# Of earlier runs only their number is known, which tells nothing.
SEEN = """
ALTER TABLE void ADD void_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT uq_void_void_id UNIQUE;
ALTER TABLE run ALTER voids DROP NOT NULL, ALTER voids TYPE int8multirange USING NULL;
COMMENT ON COLUMN run.voids IS 'by void_id; null: not recorded';
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON run FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

# A column's new type may not be computed by a subquery, but by a function.
COUNTED = """
DROP TRIGGER refuse_change ON run;
CREATE FUNCTION pg_temp.numbers(int8multirange) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(sum(upper(span) - lower(span)), 0)::bigint FROM unnest($1) AS span
$$;
ALTER TABLE run ALTER voids TYPE bigint USING pg_temp.numbers(voids), ALTER voids SET NOT NULL;
DROP FUNCTION pg_temp.numbers;
COMMENT ON COLUMN run.voids IS NULL;
ALTER TABLE void DROP void_id;
"""

TABLES = """
CREATE TABLE issued_document (
    tax_id varchar COLLATE "C" NOT NULL,
    number_text varchar COLLATE "C" NOT NULL,
    series text NOT NULL,
    year smallint NOT NULL,
    number integer NOT NULL,
    position bigint NOT NULL,
    currency varchar(3) NOT NULL,
    minor_digits smallint NOT NULL,
    total_minor numeric(38, 0) NOT NULL,
    issued_at timestamptz NOT NULL,
    issued_on date NOT NULL,
    author text NOT NULL,
    content text NOT NULL,
    previous_seal varchar(64),
    seal varchar(64) NOT NULL CONSTRAINT uq_issued_document_seal UNIQUE,
    sealed bytea NOT NULL,
    issued_in bigint NOT NULL,
    CONSTRAINT pk_issued_document PRIMARY KEY (tax_id, number_text),
    CONSTRAINT uq_issued_document_tax_id_series_year_number UNIQUE (tax_id, series, year, number),
    CONSTRAINT uq_issued_document_tax_id_position UNIQUE (tax_id, position),
    CONSTRAINT ck_issued_document_series CHECK (series = 'invoice' AND total_minor >= 0 OR series = 'credit_note' AND total_minor <= 0),
    CONSTRAINT ck_issued_document_number CHECK (number >= 1 AND year = extract(year FROM issued_on) AND number_text <> ''),
    CONSTRAINT ck_issued_document_position CHECK (position >= 1 AND (position = 1) = (previous_seal IS NULL)),
    CONSTRAINT ck_issued_document_seal CHECK (seal = encode(sha256(sealed), 'hex')),
    CONSTRAINT ck_issued_document_minor_digits CHECK (minor_digits BETWEEN 0 AND 4)
);
COMMENT ON COLUMN issued_document.tax_id IS 'of the provider';
COMMENT ON COLUMN issued_document.number_text IS 'the number as it is printed';
COMMENT ON COLUMN issued_document.number IS '1, 2, 3 ... in the series and year';
COMMENT ON COLUMN issued_document.position IS '1, 2, 3 ... in the provider''s chain of seals';
COMMENT ON COLUMN issued_document.issued_on IS 'in the contract''s zone';
COMMENT ON COLUMN issued_document.content IS 'canonical JSON; of a closed period that of specification section 9';
COMMENT ON COLUMN issued_document.previous_seal IS 'null: the provider''s first';
COMMENT ON COLUMN issued_document.sealed IS 'the bytes whose SHA-256 is the seal';
COMMENT ON COLUMN issued_document.issued_in IS 'transaction of the server; its parts come in the same';

CREATE TABLE closing (
    contract_id varchar COLLATE "C" NOT NULL,
    period varchar(7) NOT NULL,
    previous_period varchar(7),
    tax_id varchar COLLATE "C" NOT NULL,
    number_text varchar COLLATE "C" NOT NULL,
    run_id bigint NOT NULL,
    digest varchar(64) NOT NULL,
    basis jsonb NOT NULL,
    contract_hashes jsonb NOT NULL,
    carried_out_minor numeric(38, 0) NOT NULL,
    CONSTRAINT pk_closing PRIMARY KEY (contract_id, period),
    CONSTRAINT uq_closing_tax_id_number_text UNIQUE (tax_id, number_text),
    CONSTRAINT fk_closing_run_id FOREIGN KEY (run_id) REFERENCES run (run_id),
    CONSTRAINT fk_closing_tax_id_number_text FOREIGN KEY (tax_id, number_text) REFERENCES issued_document (tax_id, number_text),
    CONSTRAINT fk_closing_contract_id_previous_period FOREIGN KEY (contract_id, previous_period) REFERENCES closing (contract_id, period),
    CONSTRAINT ck_closing_period CHECK (period ~ '^[0-9]{4}-(0[1-9]|1[0-2])$' AND previous_period < period),
    CONSTRAINT ck_closing_carried_out_minor CHECK (carried_out_minor >= 0)
);
CREATE UNIQUE INDEX uq_closing_previous_period ON closing (contract_id, coalesce(previous_period, ''));
COMMENT ON COLUMN closing.previous_period IS 'closed before it; null: the contract''s first';
COMMENT ON COLUMN closing.run_id IS 'what was seen';
COMMENT ON COLUMN closing.basis IS 'what else the figures follow from: the days of their months, credit notes carried in';
COMMENT ON COLUMN closing.contract_hashes IS 'content hash of each version in force, by version';

CREATE TABLE invoice_line (
    contract_id varchar COLLATE "C" NOT NULL,
    period varchar(7) NOT NULL,
    position integer NOT NULL,
    kind text NOT NULL,
    of_period varchar(7),
    of_kind text,
    version integer,
    model varchar COLLATE "C",
    variant varchar COLLATE "C",
    queue varchar COLLATE "C",
    forfeited boolean NOT NULL,
    band varchar COLLATE "C",
    token varchar COLLATE "C",
    multiplier numeric,
    rate numeric,
    quantity numeric(38, 0),
    amount_minor numeric(38, 0) NOT NULL,
    tax_rate numeric NOT NULL,
    credits_outside_scope boolean NOT NULL,
    causes jsonb,
    causes_total integer,
    CONSTRAINT pk_invoice_line PRIMARY KEY (contract_id, period, position),
    CONSTRAINT fk_invoice_line_contract_id_period FOREIGN KEY (contract_id, period) REFERENCES closing (contract_id, period),
    CONSTRAINT fk_invoice_line_contract_id_of_period FOREIGN KEY (contract_id, of_period) REFERENCES closing (contract_id, period),
    CONSTRAINT ck_invoice_line_kind CHECK (
        kind IN ('usage', 'true_up', 'credit', 'cap', 'adjustment') AND of_kind IN ('usage', 'true_up', 'credit', 'cap')),
    CONSTRAINT ck_invoice_line_adjustment CHECK (
        num_nulls(of_period, of_kind, causes, causes_total) = CASE kind WHEN 'adjustment' THEN 0 ELSE 4 END AND of_period < period),
    CONSTRAINT ck_invoice_line_position CHECK (position >= 1)
);
COMMENT ON COLUMN invoice_line.position IS '1, 2, 3 ... as they stand on the invoice';
COMMENT ON COLUMN invoice_line.of_period IS 'of an adjustment: the closed month';
COMMENT ON COLUMN invoice_line.causes IS 'of an adjustment: [kind, ref] of each that is named';

CREATE TABLE credit_note (
    tax_id varchar COLLATE "C" NOT NULL,
    number_text varchar COLLATE "C" NOT NULL,
    contract_id varchar COLLATE "C" NOT NULL,
    period varchar(7) NOT NULL,
    line_position integer NOT NULL,
    tokens numeric(38, 0),
    net_minor numeric(38, 0) NOT NULL,
    tax_minor numeric(38, 0) NOT NULL,
    reason text NOT NULL,
    CONSTRAINT pk_credit_note PRIMARY KEY (tax_id, number_text),
    CONSTRAINT fk_credit_note_tax_id_number_text FOREIGN KEY (tax_id, number_text) REFERENCES issued_document (tax_id, number_text),
    CONSTRAINT fk_credit_note_contract_id_period_line_position FOREIGN KEY (contract_id, period, line_position)
        REFERENCES invoice_line (contract_id, period, position),
    CONSTRAINT ck_credit_note_tokens CHECK (tokens > 0),
    CONSTRAINT ck_credit_note_net_minor CHECK (net_minor >= 0 AND (net_minor > 0 OR tokens IS NOT NULL)),
    CONSTRAINT ck_credit_note_tax_minor CHECK (tax_minor >= 0),
    CONSTRAINT ck_credit_note_reason CHECK (reason <> '')
);
CREATE INDEX ix_credit_note_contract_id_period ON credit_note (contract_id, period);
COMMENT ON COLUMN credit_note.period IS 'of the closed period whose line it credits';
COMMENT ON COLUMN credit_note.tokens IS 'null: by amount';

CREATE TABLE journal_posting (
    tax_id varchar COLLATE "C" NOT NULL,
    number_text varchar COLLATE "C" NOT NULL,
    position integer NOT NULL,
    account varchar COLLATE "C" NOT NULL,
    amount_minor numeric(38, 0) NOT NULL,
    memo text NOT NULL,
    CONSTRAINT pk_journal_posting PRIMARY KEY (tax_id, number_text, position),
    CONSTRAINT fk_journal_posting_tax_id_number_text FOREIGN KEY (tax_id, number_text) REFERENCES issued_document (tax_id, number_text)
);
COMMENT ON COLUMN journal_posting.amount_minor IS 'debit positive; currency and date are the document''s';

CREATE TABLE issued_file (
    tax_id varchar COLLATE "C" NOT NULL,
    number_text varchar COLLATE "C" NOT NULL,
    name varchar COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    sha256 varchar(64) NOT NULL,
    CONSTRAINT pk_issued_file PRIMARY KEY (tax_id, number_text, name),
    CONSTRAINT fk_issued_file_tax_id_number_text FOREIGN KEY (tax_id, number_text) REFERENCES issued_document (tax_id, number_text),
    CONSTRAINT ck_issued_file_sha256 CHECK (sha256 = encode(sha256(content), 'hex'))
);

CREATE TABLE numbering (
    numbering_id bigint GENERATED ALWAYS AS IDENTITY,
    tax_id varchar COLLATE "C" NOT NULL,
    series text NOT NULL,
    format text NOT NULL,
    set_at timestamptz NOT NULL,
    author text NOT NULL,
    CONSTRAINT pk_numbering PRIMARY KEY (numbering_id),
    CONSTRAINT ck_numbering_series CHECK (series IN ('invoice', 'credit_note')),
    CONSTRAINT ck_numbering_format CHECK (format ~ '[{]year[}]' AND format ~ '[{]number[^}]*[}]')
);
CREATE INDEX ix_numbering_tax_id_series ON numbering (tax_id, series, numbering_id);
"""

APPEND_ONLY = ("issued_document", "closing", "invoice_line", "credit_note", "journal_posting", "issued_file", "numbering")

# Numbers and seals follow on the last ones. Two transactions that do not see each other are held apart by the unique constraints.
ISSUE_IN_ORDER = """
CREATE FUNCTION issue_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head issued_document;
    numbered integer;
BEGIN
    SELECT * INTO head FROM issued_document WHERE tax_id = new.tax_id ORDER BY issued_document.position DESC LIMIT 1;
    IF new.position <> coalesce(head.position, 0) + 1 OR new.previous_seal IS DISTINCT FROM head.seal THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('%s does not follow on the last document of %s in its chain of seals', new.number_text, new.tax_id);
    END IF;
    SELECT max(number) INTO numbered FROM issued_document WHERE (tax_id, series, year) = (new.tax_id, new.series, new.year);
    IF new.number <> coalesce(numbered, 0) + 1 THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = format(
            'number %s of %s, series %s of %s, does not follow on %s', new.number, new.tax_id, new.series, new.year, coalesce(numbered, 0));
    END IF;
    new.issued_in := pg_current_xact_id()::text::bigint;
    RETURN new;
END $$;
CREATE TRIGGER issue_in_order BEFORE INSERT ON issued_document FOR EACH ROW EXECUTE FUNCTION issue_in_order();
"""

CLOSE_IN_ORDER = """
CREATE FUNCTION close_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    latest text;
BEGIN
    SELECT max(period) INTO latest FROM closing WHERE contract_id = new.contract_id;
    IF new.period <= latest THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('%s of %s cannot be closed: %s is closed', new.period, new.contract_id, latest);
    ELSIF new.previous_period IS DISTINCT FROM latest THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = format(
            '%s of %s was closed last, and not %s', coalesce(latest, 'nothing'), new.contract_id, coalesce(new.previous_period, 'nothing'));
    ELSIF EXISTS (SELECT FROM run WHERE run_id = new.run_id AND voids IS NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('%s of %s cannot be closed by a run of which is not known what it saw', new.period, new.contract_id);
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER close_in_order BEFORE INSERT ON closing FOR EACH ROW EXECUTE FUNCTION close_in_order();
"""

# What is checked at the end of the transaction that issues a document holds for ever, since nothing is added to it later.
ISSUE_AT_ONCE = """
CREATE FUNCTION issue_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_document issued_document;
BEGIN
    IF TG_TABLE_NAME = 'invoice_line' THEN
        SELECT issued_document.* INTO of_document FROM issued_document JOIN closing USING (tax_id, number_text)
            WHERE (contract_id, period) = (new.contract_id, new.period);
    ELSE
        SELECT * INTO of_document FROM issued_document WHERE (tax_id, number_text) = (new.tax_id, new.number_text);
    END IF;
    IF of_document.issued_in IS DISTINCT FROM pg_current_xact_id()::text::bigint THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = format(
            'a row of %s is added only to a document that is issued in the same transaction', TG_TABLE_NAME);
    END IF;
    RETURN new;
END $$;
"""
PARTS = ("closing", "invoice_line", "credit_note", "journal_posting", "issued_file")

# What is wrong with a document that closes a period, and with one that credits a line of it; null: nothing, or it does the other.
CLOSING_PROBLEM = """
CREATE FUNCTION closing_problem(issued issued_document) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    closed closing;
    said jsonb := issued.content::jsonb;
    units numeric := 10::numeric ^ issued.minor_digits::numeric;
    notes jsonb;
BEGIN
    SELECT * INTO closed FROM closing WHERE (tax_id, number_text) = (issued.tax_id, issued.number_text);
    IF closed.contract_id IS NULL THEN
        RETURN NULL;
    END IF;
    notes := coalesce(closed.basis -> 'credit_notes', '[]');
    RETURN CASE
        WHEN (said ->> 'contract', said ->> 'period', said ->> 'state', said ->> 'currency')
            IS DISTINCT FROM (closed.contract_id::text, closed.period::text, 'closed', issued.currency::text)
            THEN 'its content is of another contract, period, state or currency'
        WHEN (issued.series = 'credit_note') <> (issued.total_minor < 0) THEN 'its series is not that of its total'
        WHEN ((said #>> '{totals,total}')::numeric * units, (said #>> '{totals,carried_out}')::numeric * units)
            IS DISTINCT FROM (issued.total_minor, closed.carried_out_minor)
            THEN 'its content has other totals'
        WHEN (said #>> '{totals,net}')::numeric * units IS DISTINCT FROM (
            SELECT coalesce(sum(amount_minor), 0) FROM invoice_line WHERE (contract_id, period) = (closed.contract_id, closed.period))
            THEN 'its lines do not sum to its net'
        WHEN jsonb_array_length(notes) <> (SELECT count(*) FROM credit_note WHERE contract_id = closed.contract_id
            AND notes @> jsonb_build_array(jsonb_build_object('tax_id', tax_id, 'number', number_text)))
            THEN 'what it carries in are not credit notes of its contract'
        WHEN EXISTS (SELECT FROM closing earlier, jsonb_array_elements(earlier.basis -> 'credit_notes') AS note
            WHERE earlier.contract_id = closed.contract_id AND earlier.period < closed.period AND notes @> jsonb_build_array(note))
            THEN 'a credit note that it carries in was carried in before'
        WHEN (said #>> '{totals,carried_in}')::numeric * units IS DISTINCT FROM
            coalesce((SELECT carried_out_minor FROM closing
                WHERE (contract_id, period) = (closed.contract_id, closed.previous_period)), 0)
            + (SELECT coalesce(sum(net_minor + tax_minor), 0) FROM credit_note WHERE contract_id = closed.contract_id
                AND notes @> jsonb_build_array(jsonb_build_object('tax_id', tax_id, 'number', number_text)))
            THEN 'it does not carry in what was left and the credit notes since'
        WHEN EXISTS (SELECT FROM settlement WHERE (contract_id, period) = (closed.contract_id, closed.period))
            THEN 'its period still has a draft'
    END;
END $$;
"""

CREDIT_NOTE_PROBLEM = """
CREATE FUNCTION credit_note_problem(issued issued_document) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    note credit_note;
    credited issued_document;
    line invoice_line;
    said jsonb := issued.content::jsonb;
    units numeric := 10::numeric ^ issued.minor_digits::numeric;
BEGIN
    SELECT * INTO note FROM credit_note WHERE (tax_id, number_text) = (issued.tax_id, issued.number_text);
    IF note.contract_id IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT issued_document.* INTO credited FROM issued_document JOIN closing USING (tax_id, number_text)
        WHERE (contract_id, period) = (note.contract_id, note.period);
    SELECT * INTO line FROM invoice_line
        WHERE (contract_id, period, position) = (note.contract_id, note.period, note.line_position);
    RETURN CASE
        WHEN (issued.series, issued.tax_id, issued.currency, issued.minor_digits)
            IS DISTINCT FROM ('credit_note', credited.tax_id, credited.currency, credited.minor_digits)
            THEN 'it is of another series, provider or currency than the document that it credits'
        WHEN (said ->> 'credit_note', said ->> 'contract', said ->> 'period', said ->> 'invoice', said ->> 'currency',
                (said #>> '{line,position}')::integer, (said ->> 'tokens')::numeric)
            IS DISTINCT FROM (issued.number_text::text, note.contract_id::text, note.period::text, credited.number_text::text,
                issued.currency::text, note.line_position, note.tokens)
            THEN 'its content is of another number, document, line or currency'
        WHEN ((said #>> '{credit,net}')::numeric * units, (said #>> '{credit,tax}')::numeric * units,
                (said #>> '{credit,total}')::numeric * units)
            IS DISTINCT FROM (note.net_minor, note.tax_minor, -issued.total_minor)
            OR note.net_minor + note.tax_minor <> -issued.total_minor
            THEN 'its content has other totals'
        WHEN EXISTS (SELECT FROM credit_note
            WHERE (contract_id, period, line_position) = (note.contract_id, note.period, note.line_position)
            HAVING sum(net_minor) > line.amount_minor OR sum(tokens) > line.quantity)
            THEN 'more is credited than its line has'
        WHEN (SELECT sum(net_minor) FROM credit_note WHERE (contract_id, period) = (note.contract_id, note.period)) > (
            SELECT sum(amount_minor) FROM invoice_line
            WHERE contract_id = note.contract_id AND (period = note.period OR of_period = note.period))
            THEN 'more is credited than its document comes to with the later adjustments'
    END;
END $$;
"""

ISSUE_WHOLE = """
CREATE FUNCTION issue_whole() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    purposes integer;
    posted numeric;
    wrong text;
BEGIN
    SELECT count(*) INTO purposes FROM (SELECT tax_id, number_text FROM closing UNION ALL SELECT tax_id, number_text FROM credit_note) one
        WHERE (tax_id, number_text) = (new.tax_id, new.number_text);
    SELECT sum(amount_minor) INTO posted FROM journal_posting WHERE (tax_id, number_text) = (new.tax_id, new.number_text);
    wrong := CASE
        WHEN purposes <> 1 THEN 'it does not either close a period or credit a line'
        WHEN posted <> 0 THEN 'its postings do not sum to 0'
        WHEN posted IS NULL AND new.total_minor <> 0 THEN 'it has no postings'
        WHEN NOT EXISTS (SELECT FROM issued_file WHERE (tax_id, number_text) = (new.tax_id, new.number_text)) THEN 'it has no files'
        ELSE coalesce(closing_problem(new), credit_note_problem(new))
    END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('%s of %s is not whole: %s', new.number_text, new.tax_id, wrong);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER issue_whole AFTER INSERT ON issued_document DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION issue_whole();
"""

DRAFT_WHILE_OPEN = """
CREATE FUNCTION draft_while_open() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM closing WHERE (contract_id, period) = (new.contract_id, new.period)) THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation',
            MESSAGE = format('%s of %s is closed: it has no draft', new.period, new.contract_id);
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER draft_while_open BEFORE INSERT OR UPDATE ON settlement FOR EACH ROW EXECUTE FUNCTION draft_while_open();
"""

TRIGGERED = ("issue_in_order", "close_in_order", "issue_at_once", "issue_whole", "draft_while_open")
ASKED = ("closing_problem", "credit_note_problem")

# Without it a temporary table of the same name would be looked at instead.
LOOKS_HERE = """
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION {function} SET search_path = %I, pg_temp', current_schema());
END $$;
"""

ISSUED_STAYS = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM issued_document) THEN
        RAISE EXCEPTION USING ERRCODE = 'restrict_violation', MESSAGE = 'documents are issued: the schema cannot go back to before them';
    END IF;
END $$;
"""


def upgrade() -> None:
    """Create the tables and what holds in them; nothing is issued yet."""
    op.execute(SEEN)
    op.execute(TABLES)
    for table in APPEND_ONLY:
        event = f"UPDATE OR DELETE OR TRUNCATE ON {table}"
        op.execute(f"CREATE TRIGGER refuse_change BEFORE {event} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()")
    for rule in (ISSUE_IN_ORDER, CLOSE_IN_ORDER, ISSUE_AT_ONCE, CLOSING_PROBLEM, CREDIT_NOTE_PROBLEM, ISSUE_WHOLE, DRAFT_WHILE_OPEN):
        op.execute(rule)
    for table in PARTS:
        op.execute(f"CREATE TRIGGER issue_at_once BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION issue_at_once()")
    for function in (*(f"{name}()" for name in TRIGGERED), *(f"{name}(issued_document)" for name in ASKED)):
        op.execute(LOOKS_HERE.format(function=function))


def downgrade() -> None:
    """Drop them, unless something is issued. A run then has the number of voids that it saw; of earlier ones it is lost."""
    op.execute(ISSUED_STAYS)
    op.execute("DROP TRIGGER draft_while_open ON settlement")
    op.execute("DROP FUNCTION " + ", ".join(f"{name}(issued_document)" for name in ASKED))  # which know a row of the table by its type
    op.execute("DROP TABLE numbering, issued_file, journal_posting, credit_note, invoice_line, closing, issued_document")
    op.execute("DROP FUNCTION " + ", ".join(TRIGGERED))
    op.execute(COUNTED)
