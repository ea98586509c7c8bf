"""Measures how good answers are: public data sets, asked through the real service."""
