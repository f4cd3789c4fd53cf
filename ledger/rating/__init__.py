"""A contract compiled to one classification plan, and the plan run by an engine to give cells."""
