"""Reads files of memories, of our own export and of others, as records for an import. Makes no calls."""
