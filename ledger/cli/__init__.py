"""The command line: arguments in, a workflow called, its result printed."""
