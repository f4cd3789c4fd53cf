"""A contract in plain sentences, each with its clause: facts in, a text for a lawyer out, one module for each language."""
