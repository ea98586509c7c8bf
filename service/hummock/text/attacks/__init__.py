"""Texts that are made to be obeyed by a model that reads them: what they say, how they hide it, and who finds them."""
