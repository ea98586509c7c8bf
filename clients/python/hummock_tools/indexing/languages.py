"""Node names for functions and classes in each programming language's tree-sitter grammar."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
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


def _kinds(words: str) -> frozenset[str]:
    return frozenset(words.split())


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


_SCRIPT_FUNCTIONS = _kinds(
    "function_declaration generator_function_declaration function_signature method_definition method_signature "
    "abstract_method_signature"
)
_SCRIPT_VALUED = _kinds("variable_declarator assignment_expression field_definition public_field_definition pair")
_SCRIPT_WRAPPERS = _kinds(
    "export_statement ambient_declaration lexical_declaration variable_declaration expression_statement"
)
_SCRIPT_TRANSPARENT = _kinds(
    "class_body interface_body enum_body statement_block if_statement else_clause object pair variable_declarator "
    "assignment_expression"
)
_SCRIPT_CLASSES = _kinds("class_declaration class abstract_class_declaration interface_declaration enum_declaration")
_C_TRANSPARENT = _kinds(
    "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list "
    "field_declaration_list"
)


def _script(name: str, extensions: tuple[str, ...], grammar: tuple[str, str]) -> Language:
    """JavaScript and its kin, which share their node kinds."""
    return Language(
        name=name,
        extensions=extensions,
        grammar=grammar,
        functions=_SCRIPT_FUNCTIONS,
        classes=_SCRIPT_CLASSES,
        namespaces=_kinds("internal_module module"),
        wrappers=_SCRIPT_WRAPPERS,
        transparent=_SCRIPT_TRANSPARENT,
        leading=_kinds("comment decorator"),
        valued=_SCRIPT_VALUED,
        name_of=_target_name,
    )


LANGUAGES = (
    Language(
        name="python",
        extensions=(".py", ".pyi"),
        grammar=("tree_sitter_python", "language"),
        functions=_kinds("function_definition"),
        classes=_kinds("class_definition"),
        wrappers=_kinds("decorated_definition"),
        transparent=_kinds(
            "block if_statement elif_clause else_clause try_statement except_clause finally_clause with_statement"
        ),
    ),
    Language(
        name="kotlin",
        extensions=(".kt", ".kts"),
        grammar=("tree_sitter_kotlin", "language"),
        functions=_kinds("function_declaration secondary_constructor"),
        classes=_kinds("class_declaration object_declaration companion_object"),
        # A class that delegates (`class A : B by x { … }`) parses as a call whose trailing lambda is the body.
        transparent=_kinds(
            "class_body enum_class_body statements delegation_specifiers delegation_specifier explicit_delegation "
            "call_expression infix_expression annotated_lambda lambda_literal"
        ),
    ),
    Language(
        name="java",
        extensions=(".java",),
        grammar=("tree_sitter_java", "language"),
        functions=_kinds(
            "method_declaration constructor_declaration compact_constructor_declaration "
            "annotation_type_element_declaration"
        ),
        classes=_kinds(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
        ),
        transparent=_kinds("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
    ),
    _script("typescript", (".ts", ".mts", ".cts"), ("tree_sitter_typescript", "language_typescript")),
    _script("tsx", (".tsx",), ("tree_sitter_typescript", "language_tsx")),
    _script("javascript", (".js", ".jsx", ".mjs", ".cjs"), ("tree_sitter_javascript", "language")),
    Language(
        name="go",
        extensions=(".go",),
        grammar=("tree_sitter_go", "language"),
        functions=_kinds("function_declaration method_declaration"),
        classes=_kinds("type_spec"),
        wrappers=_kinds("type_declaration"),
        name_of=_receiver_and_name,
    ),
    Language(
        name="rust",
        extensions=(".rs",),
        grammar=("tree_sitter_rust", "language"),
        functions=_kinds("function_item function_signature_item macro_definition"),
        classes=_kinds("struct_item enum_item union_item trait_item impl_item"),
        namespaces=_kinds("mod_item"),
        transparent=_kinds("declaration_list foreign_mod_item"),
        leading=_kinds("line_comment block_comment attribute_item"),
    ),
    Language(
        name="c",
        extensions=(".c",),
        grammar=("tree_sitter_c", "language"),
        functions=_kinds("function_definition"),
        classes=_kinds("struct_specifier union_specifier enum_specifier type_definition"),
        transparent=_C_TRANSPARENT,
        name_of=_declared_name,
    ),
    Language(
        name="cpp",
        # A `.h` may be either; the C++ grammar reads C as well.
        extensions=(".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx", ".ipp", ".inl"),
        grammar=("tree_sitter_cpp", "language"),
        functions=_kinds("function_definition"),
        classes=_kinds("class_specifier struct_specifier union_specifier enum_specifier type_definition"),
        namespaces=_kinds("namespace_definition"),
        wrappers=_kinds("template_declaration"),
        transparent=_C_TRANSPARENT,
        name_of=_declared_name,
    ),
)
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
