"""From requests to commands and queries."""
