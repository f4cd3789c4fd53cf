"""The arithmetic of finance: cells in, settlement out. Pure: exact numbers, no I/O, no clock, no database."""
