"""Billing and SLA settlement for companies that sell LLM inference."""
