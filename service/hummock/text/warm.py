"""What texts need and takes long to make, made ahead of the first that needs it."""

from hummock.text.characters import characters
from hummock.text.time_words import time_intervals
from hummock.text.tokens import EstimatedTokens

_WORDS_OF_ALL_TABLES = "2020-01-01 yesterday 昨天"


def warm() -> None:
    """Make the tables of analysing, of counting and of words for times: two tenths of a second, once a process."""
    characters()
    EstimatedTokens().count("")
    time_intervals(_WORDS_OF_ALL_TABLES, 0.0)
