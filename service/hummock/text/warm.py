"""Tables over all characters, made ahead of the first text that is stored."""

from hummock.text.characters import characters
from hummock.text.tokens import EstimatedTokens


def warm() -> None:
    """Make the tables that analysing and counting need: a tenth of a second, once a process."""
    characters()
    EstimatedTokens().count("")
