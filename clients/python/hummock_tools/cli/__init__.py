"""Commands that call the service, and their shared parts."""
