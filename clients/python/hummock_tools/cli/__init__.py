"""Commands that call the service, and what they share."""
