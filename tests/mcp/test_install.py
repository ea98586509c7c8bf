"""`hummock mcp install`: which file it writes, that it asks first, and that nothing else in the file is touched."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock_client import DEFAULT_TARGET
from hummock_tools.cli import options
from hummock_tools.setup import documents
from hummock_tools.setup.agents import AGENTS
from hummock_tools.setup.documents import NotReadable, read, with_item, with_value, without

pytestmark = pytest.mark.long


USER_COMMAND = [sys.executable, "-P", "-m", "hummock", "mcp", "--project", "shop"]
SHARED_COMMAND = ["hummock", "mcp", "--project", "shop"]

CURSOR = """\
{
  // my servers
  "mcpServers": {
    "other": { "command": "o", "args": ["//", "/*", ",}"] }, // keep
  },
  "z": 1,
}
"""
CODEX = """\
model = "o3"  # mine

[mcp_servers.other]
command = "o"

[tui]
theme = "dark"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HUMMOCK_TARGET", DEFAULT_TARGET)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "home"


def install(client: str, *more: str, answer: str | None = None) -> Result:
    words = ["mcp", "install", "--client", client, "--project", "shop", *more]
    return CliRunner().invoke(app, words, input=answer)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def entry_in(path: Path, client: str) -> Any:
    text = path.read_text(encoding="utf-8")
    document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    for key in AGENTS[client].servers.split("."):
        document = document[key]
    return document["hummock"]


def test_every_known_client_can_be_named() -> None:
    assert [*options.AgentName] == list(AGENTS)


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("cursor", ".cursor/mcp.json"), ("vscode", ".config/Code/User/mcp.json"),
        ("claude", ".config/Claude/claude_desktop_config.json"), ("claude-code", ".claude.json"),
        ("codex", ".codex/config.toml"), ("windsurf", ".codeium/windsurf/mcp_config.json"),
        ("zed", ".config/zed/settings.json"), ("gemini", ".gemini/settings.json"),
        ("copilot", ".copilot/mcp-config.json"), ("cline", ".cline/data/settings/cline_mcp_settings.json"),
        ("junie", ".junie/mcp/mcp.json"),
    ],
)  # fmt: skip
def test_the_users_file_starts_the_server_by_whole_paths(home: Path, client: str, file: str) -> None:
    done = install(client, "--yes")
    assert done.exit_code == 0, done.output
    entry = entry_in(home / file, client)
    assert [entry["command"], *entry["args"]] == USER_COMMAND
    assert f"{home / file} written; " in done.stdout


@pytest.mark.parametrize(
    ("client", "file", "folder"),
    [
        ("cursor", ".cursor/mcp.json", "${workspaceFolder}"),
        ("vscode", ".vscode/mcp.json", "${workspaceFolder}"),
        ("claude-code", ".mcp.json", "."),
        ("codex", ".codex/config.toml", "."),
    ],
)
def test_a_shared_file_names_nothing_of_this_machine(client: str, file: str, folder: str) -> None:
    done = install(client, "--scope", "workspace", "--index", ".", "--yes")
    assert done.exit_code == 0, done.output
    entry = entry_in(Path(file), client)
    assert [entry["command"], *entry["args"]] == [*SHARED_COMMAND, "--index", folder]


@pytest.mark.parametrize(
    ("client", "folder", "said"),
    [
        *((client, ".", "has no file that a folder shares") for client in ("claude", "windsurf", "zed", "cline")),
        ("cursor", "..", "lies outside"),
    ],
)
def test_who_has_no_shared_file_or_no_folder_that_others_have_is_told_so(client: str, folder: str, said: str) -> None:
    done = install(client, "--scope", "workspace", "--index", folder, "--yes")
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_shared_file_that_this_machine_cannot_start_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "not on your PATH" in install("cursor", "--scope", "workspace", "--yes").stderr


def test_the_files_of_a_mac_lie_in_its_library(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert install("vscode", "--yes").exit_code == 0
    assert (home / "Library/Application Support/Code/User/mcp.json").exists()


def test_the_environment_moves_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "copilot"))
    assert [install(client, "--yes").exit_code for client in ("zed", "codex", "claude-code", "copilot")] == [0] * 4
    assert (tmp_path / "config/zed/settings.json").exists()
    assert (tmp_path / "codex/config.toml").exists()
    assert (tmp_path / "claude/.claude.json").exists()
    assert (tmp_path / "copilot/mcp-config.json").exists()


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [
        ("opencode.json", "", ["mcp", "servers"]),
        ("opencode.jsonc", '{"mcp": {"servers": {"other": {"type": "local"}}}, /* mine */}', ["mcp", "servers"]),
        ("opencode.json", '{"mcp": {"other": {"type": "local", "command": ["o"]}}}', ["mcp"]),
    ],
    ids=["new", "version-2", "version-1"],
)
def test_opencode_has_servers_where_its_file_has_others(home: Path, name: str, text: str, path: list[str]) -> None:
    file = write(home / ".config/opencode" / name, text)
    assert install("opencode", "--yes").exit_code == 0
    servers = documents.read(file.read_text(encoding="utf-8"))
    for key in path:
        servers = servers[key]
    assert servers["hummock"] == {"type": "local", "command": USER_COMMAND}
    assert ("/* mine */" in file.read_text(encoding="utf-8")) == ("/* mine */" in text)


@pytest.mark.parametrize("answer", ["n\n", "\n", None])
def test_nothing_is_written_unless_the_answer_is_yes(home: Path, answer: str | None) -> None:
    file = write(home / ".cursor/mcp.json", CURSOR)
    done = install("cursor", answer=answer)
    assert done.exit_code == 1
    assert str(file) in done.stderr
    assert '+    "hummock": {' in done.stderr
    assert "nothing was written" in done.stderr
    assert file.read_text(encoding="utf-8") == CURSOR


def test_comments_order_and_commas_of_json_stay(home: Path) -> None:
    file = write(home / ".cursor/mcp.json", CURSOR)
    file.chmod(0o640)
    assert install("cursor", "--yes").exit_code == 0
    text = file.read_text(encoding="utf-8")
    begin, end = text.index('    "hummock": {'), text.index('  },\n  "z"')
    assert (text[:begin] + text[end:], list(documents.read(text)["mcpServers"])) == (CURSOR, ["other", "hummock"])
    assert file.stat().st_mode & 0o777 == 0o640
    again = install("cursor")
    assert again.stdout == f"{file} is as it should be; nothing written\n"
    assert (install("cursor", "--remove", "--yes").exit_code, file.read_text(encoding="utf-8")) == (0, CURSOR)


def test_comments_and_order_of_toml_stay(home: Path) -> None:
    file = write(home / ".codex/config.toml", CODEX)
    assert install("codex", "--yes").exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert tomllib.loads(text) == {
        **tomllib.loads(CODEX),
        "mcp_servers": {
            "other": {"command": "o"},
            "hummock": {"startup_timeout_sec": 60, "command": USER_COMMAND[0], "args": USER_COMMAND[1:]},
        },
    }
    assert text.startswith('model = "o3"  # mine\n\n[mcp_servers.other]\ncommand = "o"\n')
    assert "nothing written" in install("codex").stdout
    assert (install("codex", "--remove", "--yes").exit_code, file.read_text(encoding="utf-8")) == (0, CODEX)


@pytest.mark.parametrize(
    ("client", "file", "text"), [("cursor", ".cursor/mcp.json", CURSOR), ("codex", ".codex/config.toml", CODEX)]
)
def test_a_byte_order_mark_stays_and_other_encodings_are_named(home: Path, client: str, file: str, text: str) -> None:
    path = write(home / file, f"\ufeff{text}")
    assert install(client, "--yes").exit_code == 0
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert (install(client, "--remove", "--yes").exit_code, path.read_text(encoding="utf-8")) == (0, f"\ufeff{text}")
    for content, problem in ((text.encode("utf-16"), "byte 0 is 0xff"), (b"# caf\xe9", "byte 5 is 0xe9")):
        path.write_bytes(content)
        refused = install(client, "--yes")
        assert refused.exit_code == 1
        assert f"{path} is not UTF-8: {problem}" in refused.stderr


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"hummock": {"command": "old", "env": {"A": "1"}}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.hummock]\ncommand = "old"\n[mcp_servers.hummock.env]\nA = "1"\n'),
    ],
)
def test_what_the_user_added_to_the_entry_stays(home: Path, client: str, file: str, text: str) -> None:
    path = write(home / file, text)
    assert install(client, "--yes").exit_code == 0
    entry = entry_in(path, client)
    assert (entry["command"], entry["env"]) == (sys.executable, {"A": "1"})


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("cursor", ".cursor/mcp.json", "{"),
        ("cursor", ".cursor/mcp.json", "[]"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": []}'),
        ("cursor", ".cursor/mcp.json", '{"a": 1 /* over\n two lines */\n}'),
        ("codex", ".codex/config.toml", "a = "),
        ("codex", ".codex/config.toml", "mcp_servers = 1"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(home: Path, client: str, file: str, text: str) -> None:
    path = write(home / file, text)
    done = install(client, "--yes")
    assert done.exit_code == 1
    assert str(path) in done.stderr
    assert path.read_text(encoding="utf-8") == text


def test_a_link_to_the_file_stays_a_link(home: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "dotfiles/mcp.json", "{}\n")
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor/mcp.json").symlink_to(file)
    assert install("cursor", "--yes").exit_code == 0
    assert (home / ".cursor/mcp.json").is_symlink()
    assert "hummock" in file.read_text(encoding="utf-8")


def test_yes_writes_and_neither_printing_nor_removing_nothing_does(home: Path) -> None:
    assert "does not name the server" in install("cursor", "--remove", "--yes").stdout
    assert not home.exists()
    assert install("cursor", "--print").exit_code == 0
    assert not home.exists()
    assert install("cursor", answer="y\n").exit_code == 0
    assert (home / ".cursor/mcp.json").exists()


PATH = ("mcpServers", "hummock")
ENTRY = {"command": "x", "args": ["a, b", "}"]}
TEXTS = [
    "", "{}", "{ }\n", '{"a": 1}', '{\n  "a": 1\n}\n', '{\n\t"a": 1, // note\n}\n', "{\n  // only\n}",
    '{\n  "a": 1 // note, with comma\n}\n',
    '{\n  "mcpServers": {\n    "other": {} // mine\n  },\n  "z": "// no comment"\n}\n', '{"mcpServers":{}}',
    '{\n  "mcpServers": {\n    "b": {},\n  },\n}\n', '{\n  "a": 1, /* x */ "b": 2\n}', '{"a": "\\"// , }"}',
    '// top\n{\n  "mcpServers": {\n    // none\n  }\n}\n// end\n', '\ufeff{\r\n  "a": 1\r\n}\r\n',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_goes_in_once_and_out_again(text: str) -> None:
    after = with_value(text, PATH, ENTRY)
    known = read(text)
    assert read(after) == {**known, "mcpServers": {**known.get("mcpServers", {}), "hummock": ENTRY}}
    assert (with_value(after, PATH, ENTRY), after.count("//")) == (after, text.count("//"))
    removed = read(without(after, PATH))
    assert removed == {**known, "mcpServers": known.get("mcpServers", {})}


def test_an_entry_of_before_is_replaced_where_it_stands() -> None:
    text = '{\n  "mcpServers": {\n    "hummock": {"command": "old"}, // ours\n    "b": {},\n  },\n}\n'
    after = with_value(text, PATH, ENTRY)
    assert list(read(after)["mcpServers"]) == ["hummock", "b"]
    assert "}, // ours\n" in after


ITEM = {"hooks": [{"command": "x"}]}
LISTS = [
    "", "{}", '{"hooks": {}}', '{"hooks": null}', '{"hooks": {"Stop": []}}',
    '{\n  "hooks": {\n    "Stop": null\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      {"a": 1}, // mine\n    ],\n  },\n}\n',
    '{"hooks": {"Stop": [1, [2], "//,]"]}}',
    '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t// none\n\t\t]\n\t}\n}\n',
]  # fmt: skip


@pytest.mark.parametrize("text", LISTS)
def test_an_item_goes_behind_the_others_once_and_out_again(text: str) -> None:
    path = ("hooks", "Stop")
    known = ((read(text).get("hooks") or {}).get("Stop")) or []
    after = with_item(text, path, ITEM)
    assert read(after) == {"hooks": {"Stop": [*known, ITEM]}}
    assert (with_item(after, path, ITEM), after.count("//")) == (after, text.count("//"))
    assert read(without(after, (*path, len(known)))) == {"hooks": {"Stop": known}}


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": 1}}', "{"])
def test_what_is_no_list_takes_no_item(text: str) -> None:
    with pytest.raises(NotReadable):
        with_item(text, ("hooks", "Stop"), ITEM)


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"a" 1}', '{"mcpServers": {"a": 1, "hummock": 1, "hummock": 2}}'])
def test_what_is_no_object_or_says_a_thing_twice_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        with_value(text, PATH, ENTRY)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(), JSON_VALUES, max_size=4),
    st.dictionaries(st.text(min_size=1), st.dictionaries(st.text(), JSON_VALUES, max_size=2), max_size=3),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_any_document_keeps_all_that_is_not_ours(
    others: dict[str, object], servers: dict[str, object], indent: int | str | None, is_ascii: bool
) -> None:
    document = {**others, "mcpServers": servers}
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii)
    after = json.loads(with_value(text, PATH, ENTRY))
    assert after == {**document, "mcpServers": {**servers, "hummock": ENTRY}}


@given(
    st.dictionaries(st.text(), JSON_VALUES, max_size=3),
    st.lists(JSON_VALUES, min_size=1, max_size=3),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_what_goes_into_a_list_or_a_table_comes_out_to_the_byte(
    others: dict[str, object], items: list[object], indent: int | str | None, is_last: bool
) -> None:
    ours = {"hooks": {"Stop": items}, "mcpServers": {"other": {}}}
    text = json.dumps({**others, **ours} if is_last else {**ours, **others}, indent=indent, ensure_ascii=False)
    assume({"hooks", "mcpServers"}.isdisjoint(others) and ITEM not in items)
    inside = with_value(with_item(text, ("hooks", "Stop"), ITEM), PATH, ENTRY)
    assert inside != text
    assert without(without(inside, PATH), ("hooks", "Stop", len(items))) == text
