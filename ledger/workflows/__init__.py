"""One module for each thing a person does: add a contract, ingest, settle."""
