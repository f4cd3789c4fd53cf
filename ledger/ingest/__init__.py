"""Telemetry files to events: mappings, event rules, quarantine, loading."""
