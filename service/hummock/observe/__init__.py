"""Monitoring: counts of calls and load for GetStatus and Prometheus, and spans for OpenTelemetry."""
