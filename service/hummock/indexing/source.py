"""One file of a repository, as the walk hands it to the chunker."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file: its path relative to the root, with `/` between parts, and its bytes as they lie on disk."""

    path: str
    data: bytes

    def text(self) -> str:
        r"""The decoded text without byte order mark, every line end as `\n`.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8; the walk never yields such a file.
        """
        text = self.data.decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> list[str]:
        r"""The lines of `text`; only `\n` parts them, so that numbers agree with the parser's rows."""
        return self.text().split("\n")

    @property
    def suffix(self) -> str:
        """The extension in lower case with its dot, empty when the name has none."""
        name = self.path.rpartition("/")[2]
        stem, dot, extension = name.rpartition(".")
        return f".{extension.lower()}" if dot and stem else ""
