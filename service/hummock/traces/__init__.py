"""What a service tells a collector of traces: a span for each call and for each stage of its recall; no content."""
