"""How good the answers are: data sets of others, asked through the real service."""
