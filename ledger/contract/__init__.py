"""The language of legal: a contract file as frozen types, read strictly. Pure: no I/O, no clock, no database."""
