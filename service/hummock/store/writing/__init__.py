"""Writes: one thread, transactions that requests share, what each of them changes."""
