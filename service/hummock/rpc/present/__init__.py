"""From results to replies."""
