"""A settlement as people read it: tables, invoices, exports. Knows no database."""
