"""Searches in a view: filters, the nearest rows, words, names, token vectors."""
