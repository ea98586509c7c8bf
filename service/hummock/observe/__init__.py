"""What a service did and how busy it is: counts of calls for Status and Prometheus, and spans for OpenTelemetry."""
