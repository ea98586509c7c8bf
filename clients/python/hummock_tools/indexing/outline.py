"""The symbols of a source file as a tree, read off its syntax tree."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hummock_tools.indexing.languages import Language, parser_for

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# Looking through more nested nodes than this would only serve a file written to exhaust the stack.
_MAX_DEPTH = 60
_MAX_SIGNATURE_CHARACTERS = 240
# A megabyte of real code takes a tenth of this; 300 kB of `a{` read as JavaScript took 6.5 s. It is the time of the
# thread, so that a busy machine cuts a file no differently.
_PARSE_CPU_S = 1.0
_SLICE_BYTES = 64 * 1024
_BODY_KINDS = frozenset(
    {"function_body", "class_body", "enum_class_body", "block", "statement_block", "compound_statement"}
)
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "class"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A function or class: its rows (from 0, both inclusive, with the comments above it) and its members in order.

    `path` is the dotted name from the outermost namespace in. No two symbols of one list share a row.
    """

    path: str
    signature: str
    first_row: int
    last_row: int
    members: tuple["Symbol", ...] = ()


def outline(source: bytes, language: Language) -> tuple[Symbol, ...] | None:
    r"""The outermost symbols of a file in order of rows; None where its grammar is not installed or gives up on it.

    Broken code is no error: what the parser could make out is there, the rest is in no symbol.

    Args:
        source: UTF-8 with `\n` line ends.
        language: The language that the source is written in.
    """
    parser = parser_for(language)
    if parser is None:
        return None
    root = _parsed(parser, source)
    return None if root is None else tuple(_disjoint(_Reader(source, language).symbols(root, "", 0)))


def _parsed(parser: "Parser", source: bytes) -> "Node | None":
    """The syntax tree, or None where making it takes more than a second of this thread."""
    deadline_s = time.thread_time() + _PARSE_CPU_S

    def is_overdue(offset: int, has_error: bool) -> bool:
        return time.thread_time() > deadline_s

    def slice_at(offset: int, point: object) -> bytes:
        return source[offset : offset + _SLICE_BYTES]

    try:
        return parser.parse(slice_at, progress_callback=is_overdue).root_node
    except ValueError:  # how the binding says that the callback ended it
        parser.reset()
        return None


def _disjoint(symbols: Iterator[Symbol]) -> Iterator[Symbol]:
    """Join a symbol that begins on the last row of the one before it to that one, so that rows have one owner."""
    previous: Symbol | None = None
    for symbol in sorted(symbols, key=lambda found: (found.first_row, -found.last_row)):
        if previous is None or symbol.first_row > previous.last_row:
            if previous is not None:
                yield previous
            previous = symbol
        elif symbol.last_row > previous.last_row:
            previous = Symbol(
                path=previous.path,
                signature=previous.signature,
                first_row=previous.first_row,
                last_row=symbol.last_row,
            )
    if previous is not None:
        yield previous


@dataclass(frozen=True, slots=True)
class _Reader:
    source: bytes
    language: Language

    def symbols(self, node: "Node", prefix: str, depth: int) -> Iterator[Symbol]:
        """Symbols directly below the node, nodes that are looked through opened."""
        if depth > _MAX_DEPTH:
            return
        leading_row: int | None = None
        next_row = -1  # the row a leading run must reach, for the comment to belong to what follows
        for child in node.named_children:
            if child.type in self.language.leading and self._begins_its_row(child):
                is_run = leading_row is not None and child.start_point.row <= next_row
                leading_row = leading_row if is_run else child.start_point.row
                next_row = _last_row(child) + 1
                continue
            first_row = child.start_point.row
            if leading_row is not None and first_row <= next_row:
                first_row = leading_row
            leading_row = None
            yield from self._symbols_of(child, first_row, prefix, depth)

    def _symbols_of(self, node: "Node", first_row: int, prefix: str, depth: int) -> Iterator[Symbol]:
        language = self.language
        inner = self._unwrapped(node)
        if inner is not None:
            yield self._symbol(node, inner, first_row, prefix, depth)
        elif node.type in language.namespaces:
            name = language.name_of(node, self.source)
            yield from self.symbols(node, _joined(prefix, name), depth + 1)
        elif node.type == "ERROR" or node.type in language.transparent or node.type in language.wrappers:
            yield from self.symbols(node, prefix, depth + 1)

    def _unwrapped(self, node: "Node") -> "Node | None":
        """The function or class that the node is, or that it wraps alone; None for any other node."""
        language = self.language
        for _ in range(_MAX_DEPTH):
            if node.type in language.functions or self._is_class(node) or self._is_function_value(node):
                return node
            if node.type not in language.wrappers:
                return None
            held = [child for child in node.named_children if self._may_hold(child)]
            if len(held) != 1:
                return None
            node = held[0]
        return None

    def _may_hold(self, node: "Node") -> bool:
        language = self.language
        kinds = (language.functions, language.classes, language.wrappers, language.valued)
        return any(node.type in each for each in kinds) or node.type in _FUNCTION_VALUES

    def _is_class(self, node: "Node") -> bool:
        if node.type not in self.language.classes:
            return False
        # In C, `struct s x;` and `typedef int t;` name types that are defined elsewhere.
        defined = node.child_by_field_name("type") if node.type == "type_definition" else node
        is_c = node.type.endswith("_specifier") or node.type == "type_definition"
        return not is_c or (defined is not None and defined.child_by_field_name("body") is not None)

    def _is_function_value(self, node: "Node") -> bool:
        if node.type in _FUNCTION_VALUES:
            return node.parent is not None and node.parent.type == "export_statement"
        if node.type not in self.language.valued:
            return False
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        return value is not None and value.type in _FUNCTION_VALUES

    def _symbol(self, outer: "Node", node: "Node", first_row: int, prefix: str, depth: int) -> Symbol:
        path = _joined(prefix, self.language.name_of(node, self.source))
        is_class = node.type in self.language.classes
        members = tuple(_disjoint(self.symbols(node, path, depth + 1))) if is_class else ()
        return Symbol(
            path=path,
            signature=self._signature(outer, node),
            first_row=first_row,
            last_row=max(_last_row(outer), first_row),
            members=members,
        )

    def _signature(self, outer: "Node", node: "Node") -> str:
        """The source from the symbol's start to its body on one line, or its first line where it has no body."""
        body = _body(node)
        end = body.start_byte if body is not None else outer.end_byte
        text = self.source[outer.start_byte : end].decode(errors="replace")
        if body is None:
            text = text.strip().partition("\n")[0]
        return " ".join(text.split()).rstrip(" {=:")[:_MAX_SIGNATURE_CHARACTERS]

    def _begins_its_row(self, node: "Node") -> bool:
        row_start = self.source.rfind(b"\n", 0, node.start_byte) + 1
        return not self.source[row_start : node.start_byte].strip()


def _body(node: "Node") -> "Node | None":
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if value is not None and value.type in _FUNCTION_VALUES:
        node = value
    body = node.child_by_field_name("body")
    if body is not None:
        return body
    return next((child for child in node.children if child.type in _BODY_KINDS), None)


def _last_row(node: "Node") -> int:
    """The last row on which the node has text: some nodes end at the start of the row after."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name
