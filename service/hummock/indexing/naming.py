"""How the grammars say what a symbol is called."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_NAME_CHARACTERS = 120


def plain(node: "Node | None", source: bytes) -> str:
    """The node's source on one line, at most 120 characters; empty for None."""
    if node is None:
        return ""
    return " ".join(source[node.start_byte : node.end_byte].decode(errors="replace").split())[:_MAX_NAME_CHARACTERS]


def named_field(node: "Node", source: bytes) -> str:
    """The `name` field; for a Rust `impl` the type; for Kotlin's unnamed declarations what they are."""
    name = plain(node.child_by_field_name("name"), source)
    if name:
        return name
    if node.type == "impl_item":
        return plain(node.child_by_field_name("type"), source).partition("<")[0]
    return {"companion_object": "Companion", "secondary_constructor": "constructor"}.get(node.type, "")


def receiver_and_name(node: "Node", source: bytes) -> str:
    """A Go function's name, with the receiver's type before that of a method: `Store.Get`."""
    name = plain(node.child_by_field_name("name"), source)
    receiver = plain(node.child_by_field_name("receiver"), source).strip("()")
    if not receiver:
        return name
    receiver_type = receiver.partition("[")[0].split()[-1].lstrip("*")
    return f"{receiver_type}.{name}"


def target_name(node: "Node", source: bytes) -> str:
    """The `name` field of a declaration, or the left side of an assignment: `exports.render`."""
    for field in ("name", "property", "key", "left"):
        name = plain(node.child_by_field_name(field), source)
        if name:
            return name
    return "default" if node.parent is not None and node.parent.type == "export_statement" else ""


def declared_name(node: "Node", source: bytes) -> str:
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
