"""PostgreSQL: the embedded server, the schema, contracts, events, runs."""
