"""Settles every case of ../shared/cases through the command line. Not built yet."""
