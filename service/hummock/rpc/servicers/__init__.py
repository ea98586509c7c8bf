"""One servicer a service: parse, call, present."""
