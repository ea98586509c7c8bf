"""What a service tells Prometheus: counts and times of calls, and its state; no content, no names of projects."""
