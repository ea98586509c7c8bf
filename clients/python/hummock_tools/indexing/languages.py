"""Programming languages by their tree-sitter grammars, and the outline of a file in one of them."""

from __future__ import annotations

import importlib
import re
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_MAX_NAME_CHARACTERS = 120
NameOf: TypeAlias = Callable[["Node", bytes], str]


def plain(node: Node | None, source: bytes) -> str:
    """The node's source on one line, at most 120 characters; empty for None."""
    if node is None:
        return ""
    return " ".join(source[node.start_byte : node.end_byte].decode(errors="replace").split())[:_MAX_NAME_CHARACTERS]


def _named_field(node: Node, source: bytes) -> str:
    """The `name` field; for a Rust `impl` the type; for Kotlin's unnamed declarations what they are."""
    name = plain(node.child_by_field_name("name"), source)
    if name:
        return name
    if node.type == "impl_item":
        return plain(node.child_by_field_name("type"), source).partition("<")[0]
    return {"companion_object": "Companion", "secondary_constructor": "constructor"}.get(node.type, "")


def _receiver_and_name(node: Node, source: bytes) -> str:
    """A Go function's name, with the receiver's type before that of a method: `Store.Get`."""
    name = plain(node.child_by_field_name("name"), source)
    receiver = plain(node.child_by_field_name("receiver"), source).strip("()")
    if not receiver:
        return name
    receiver_type = receiver.partition("[")[0].split()[-1].lstrip("*")
    return f"{receiver_type}.{name}"


def _target_name(node: Node, source: bytes) -> str:
    """The `name` field of a declaration, or the left side of an assignment: `exports.render`."""
    for field in ("name", "property", "key", "left"):
        name = plain(node.child_by_field_name(field), source)
        if name:
            return name
    return "default" if node.parent is not None and node.parent.type == "export_statement" else ""


def _declared_name(node: Node, source: bytes) -> str:
    """A C or C++ name, from the inside of its declarator: of `int *ns::A::size(int)` it is `ns.A.size`."""
    name = node.child_by_field_name("name")
    inner = node.child_by_field_name("declarator")
    while name is None and inner is not None:
        deeper = inner.child_by_field_name("declarator")
        if deeper is None and inner.type in {"parenthesized_declarator", "reference_declarator"}:
            deeper = inner.named_children[0] if inner.named_children else None
        if deeper is None:
            name = inner
        inner = deeper
    return plain(name, source).replace("::", ".")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Language:
    """A language: its grammar, and the node kinds that make symbols.

    Attributes:
        grammar: Module and function that give the grammar; the module is imported on first use only.
        functions: Kinds that become one fragment each.
        classes: Kinds whose members become fragments when the whole is too large for one.
        namespaces: Kinds that prefix the names within and are otherwise looked through.
        wrappers: Kinds around one symbol (decorators, `export`, `template<…>`) whose lines belong to it.
        transparent: Kinds that are looked through: bodies, conditionals, blocks.
        leading: Kinds that belong to the symbol right below them: comments and, in some grammars, attributes.
        valued: Kinds that count as a function only when they hold one: `const f = () => …`.
        name_of: The symbol's own name, given its node and the file's source; empty when it has none.
    """

    name: str
    extensions: tuple[str, ...]
    grammar: tuple[str, str]
    functions: frozenset[str]
    classes: frozenset[str]
    namespaces: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    transparent: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset({"comment", "line_comment", "block_comment"})
    valued: frozenset[str] = frozenset()
    name_of: NameOf = _named_field


_NAMINGS: Mapping[str, NameOf] = {
    "field": _named_field,
    "receiver and name": _receiver_and_name,
    "target": _target_name,
    "declarator": _declared_name,
}


def _languages() -> Iterator[Language]:
    table = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
    for name, said in table.items():
        extensions, (module, function) = said.pop("extensions").split(), said.pop("grammar").split()
        known = table[said.pop("like")] if "like" in said else said
        kinds = {key: frozenset(words.split()) for key, words in known.items() if key != "named_by"}
        name_of = _NAMINGS[known.get("named_by", "field")]
        yield Language(name=name, extensions=tuple(extensions), grammar=(module, function), name_of=name_of, **kinds)


LANGUAGES = tuple(_languages())
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}
_BY_NAME = {language.name: language for language in LANGUAGES}


def language_of(suffix: str) -> Language | None:
    """The language of files with this extension (lower case, with its dot), or None."""
    return _BY_EXTENSION.get(suffix)


@cache
def parser_for(language: Language) -> Parser | None:
    """A parser for the language, or None where the extra `code` is not installed."""
    module_name, function_name = language.grammar
    try:
        from tree_sitter import Language as Grammar
        from tree_sitter import Parser

        module = importlib.import_module(module_name)
    except ImportError:
        return None
    return Parser(Grammar(getattr(module, function_name)()))


def without_grammar(names: Iterable[str]) -> list[str]:
    """Named languages that are known but cannot be parsed here, sorted; their files are cut into line windows."""
    known = (_BY_NAME[name] for name in set(names) if name in _BY_NAME)
    return sorted(language.name for language in known if parser_for(language) is None)


# Looking through more nested nodes than this would only serve a file written to exhaust the stack.
_MAX_DEPTH = 60
_MAX_SIGNATURE_CHARACTERS = 240
# A megabyte of real code takes a tenth of this; 300 kB of `a{` read as JavaScript took 6.5 s. It is the time of the
# thread, so that a busy machine cuts a file no differently.
_PARSE_CPU_S = 1.0
_SLICE_BYTES = 64 * 1024
_BODY_KINDS = frozenset(
    ["function_body", "class_body", "enum_class_body", "block", "statement_block", "compound_statement"]
)
_PARAMETER_KINDS = frozenset(["function_value_parameters", "formal_parameters", "parameters"])
_ANNOTATION_KINDS = frozenset(
    ["annotation", "marker_annotation", "modifiers", "parameter_modifiers", "decorator", "attribute_item"]
)
_SELF = re.compile(r"^\((?:self|cls|&(?:'\w+ )?(?:mut )?self|mut self)(?:, |(?=\)))")
_BESIDE_BRACKET = re.compile(r"(?<=[(\[]) | (?=[)\],])|,(?= ?\))")
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "class"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A function or class: its rows (from 0, both inclusive, with the comments above it) and its members in order.

    `path` is the dotted name from the outermost namespace in; `title` adds a function's parameters to it, by which
    overloads differ. No two symbols of one list share a row.
    """

    path: str
    title: str
    signature: str
    first_row: int
    last_row: int
    members: tuple[Symbol, ...] = ()


def outline(source: bytes, language: Language) -> tuple[Symbol, ...] | None:
    r"""The outermost symbols of a source (UTF-8, `\n` line ends) in order of rows; None without its grammar.

    Broken code is no error: what the parser could make out is there, the rest is in no symbol. None also where the
    parser gives up.
    """
    parser = parser_for(language)
    if parser is None:
        return None
    root = _parsed(parser, source)
    return None if root is None else tuple(_disjoint(_Reader(source, language).symbols(root, "", 0)))


def _parsed(parser: Parser, source: bytes) -> Node | None:
    """The syntax tree, or None where making it takes more than a second of this thread."""
    deadline_s = time.thread_time() + _PARSE_CPU_S

    def slice_at(offset: int, point: object) -> bytes:
        return source[offset : offset + _SLICE_BYTES]

    try:
        return parser.parse(slice_at, progress_callback=lambda *_: time.thread_time() > deadline_s).root_node
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
            previous = replace(previous, last_row=symbol.last_row, members=())
    if previous is not None:
        yield previous


@dataclass(frozen=True, slots=True)
class _Reader:
    source: bytes
    language: Language

    def symbols(self, node: Node, prefix: str, depth: int) -> Iterator[Symbol]:
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

    def _symbols_of(self, node: Node, first_row: int, prefix: str, depth: int) -> Iterator[Symbol]:
        language = self.language
        inner = self._unwrapped(node)
        if inner is not None:
            yield self._symbol(node, inner, first_row, prefix, depth)
        elif node.type in language.namespaces:
            name = language.name_of(node, self.source)
            yield from self.symbols(node, _joined(prefix, name), depth + 1)
        elif node.type == "ERROR" or node.type in language.transparent or node.type in language.wrappers:
            yield from self.symbols(node, prefix, depth + 1)

    def _unwrapped(self, node: Node) -> Node | None:
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

    def _may_hold(self, node: Node) -> bool:
        language = self.language
        kinds = (language.functions, language.classes, language.wrappers, language.valued)
        return any(node.type in each for each in kinds) or node.type in _FUNCTION_VALUES

    def _is_class(self, node: Node) -> bool:
        if node.type not in self.language.classes:
            return False
        # In C, `struct s x;` and `typedef int t;` name types that are defined elsewhere.
        defined = node.child_by_field_name("type") if node.type == "type_definition" else node
        is_c = node.type.endswith("_specifier") or node.type == "type_definition"
        return not is_c or (defined is not None and defined.child_by_field_name("body") is not None)

    def _is_function_value(self, node: Node) -> bool:
        if node.type in _FUNCTION_VALUES:
            return node.parent is not None and node.parent.type == "export_statement"
        return node.type in self.language.valued and _held_function(node) is not None

    def _symbol(self, outer: Node, node: Node, first_row: int, prefix: str, depth: int) -> Symbol:
        path = _joined(prefix, self.language.name_of(node, self.source))
        is_class = node.type in self.language.classes
        members = tuple(_disjoint(self.symbols(node, path, depth + 1))) if is_class else ()
        last_row = max(_last_row(outer), first_row)
        title = path if is_class else f"{path}{self._parameters(node)}"
        signature = self._signature(outer, node)
        return Symbol(
            path=path, title=title, signature=signature, first_row=first_row, last_row=last_row, members=members
        )

    def _parameters(self, node: Node) -> str:
        """The parameter list of a function on one line, without comments, annotations and `self`."""
        found = _parameters_of(node)
        if found is None:
            return ""
        text, at = b"", found.start_byte
        for start, end in self._unnamed(found, 0):
            text += self.source[at:start] + b" "
            at = end
        line = " ".join((text + self.source[at : found.end_byte]).decode(errors="replace").split())
        return _SELF.sub("(", _BESIDE_BRACKET.sub("", line))

    def _unnamed(self, node: Node, depth: int) -> Iterator[tuple[int, int]]:
        """Where the comments and annotations of a parameter list are, in order: first byte, and the one after them."""
        for child in node.children:
            if child.type in self.language.leading or child.type in _ANNOTATION_KINDS:
                yield child.start_byte, child.end_byte
            elif depth < _MAX_DEPTH:
                yield from self._unnamed(child, depth + 1)

    def _signature(self, outer: Node, node: Node) -> str:
        """The source from the symbol's start to its body on one line, or its first line where it has no body."""
        body = _body(node)
        end = body.start_byte if body is not None else outer.end_byte
        text = self.source[outer.start_byte : end].decode(errors="replace")
        if body is None:
            text = text.strip().partition("\n")[0]
        return " ".join(text.split()).rstrip(" {=:")[:_MAX_SIGNATURE_CHARACTERS]

    def _begins_its_row(self, node: Node) -> bool:
        row_start = self.source.rfind(b"\n", 0, node.start_byte) + 1
        return not self.source[row_start : node.start_byte].strip()


def _held_function(node: Node) -> Node | None:
    """The function that a declaration or an assignment gives a name."""
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    return value if value is not None and value.type in _FUNCTION_VALUES else None


def _body(node: Node) -> Node | None:
    node = _held_function(node) or node
    body = node.child_by_field_name("body")
    return body or next((child for child in node.children if child.type in _BODY_KINDS), None)


def _parameters_of(node: Node) -> Node | None:
    node = _held_function(node) or node
    while True:
        found = node.child_by_field_name("parameters") or next(
            (child for child in node.children if child.type in _PARAMETER_KINDS), None
        )
        inner = node.child_by_field_name("declarator")
        if found is not None or inner is None:
            return found
        node = inner


def _last_row(node: Node) -> int:
    """The last row on which the node has text: some nodes end at the start of the row after."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name
