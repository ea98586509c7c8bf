"""`hummock setup`: what it writes for which agent, that it asks, and that it can be undone to the byte."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock_client import DEFAULT_TARGET
from hummock_tools.setup import config_files, documents
from hummock_tools.setup.agents import AGENTS

pytestmark = pytest.mark.long

WORKS_IN_FOLDER = [name for name, each in AGENTS.items() if each.folder_arguments() is not None]
NEEDS_PROJECT = [name for name in AGENTS if name not in WORKS_IN_FOLDER]
SERVER = [sys.executable, "-P", "-m", "hummock", "mcp"]
JSON = """\
{
  // mine
  "theme": "dark",
  "mcpServers": {
    "other": { "command": "o" }, // keep
  },
}
"""
TOML = """\
model = "o3"  # mine

[mcp_servers.other]
command = "o"
"""
HOOKS = """\
{
  "version": 1,
  "hooks": {
    // mine
    "Stop": [
      { "hooks": [{ "type": "command", "command": "bell" }] }, // rings
    ],
    "beforeSubmitPrompt": [{ "command": "spell" }],
  },
}
"""
RULES = "# Mine\n\nBe short."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, whose user has no agent, and hummock-hook on the PATH."""
    moved = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME")
    for name in (*moved, "HUMMOCK_HTTP_PORT", "HUMMOCK_PROJECT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    hook = tmp_path / "my bin/hummock-hook"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n", encoding="utf-8")
    hook.chmod(0o755)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HUMMOCK_TARGET", DEFAULT_TARGET)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(hook.parent))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def setup(*words: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["setup", *words], input=answer)


def setup_json(*words: str) -> dict[str, Any]:
    done = setup("--json", *words)
    assert done.exit_code == 0, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def everything(home: Path) -> dict[str, bytes | None]:
    """Files by path, with their bytes, and folders; without what setup keeps for itself."""
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in sorted(home.rglob("*"))
        if ".local" not in path.relative_to(home).parts
    }


def own_files(home: Path, name: str) -> list[Path]:
    """Files that a user of an agent has: servers, hooks and rules, with comments where the agent takes them."""
    known = AGENTS[name]
    text = (
        JSON.replace("mcpServers", known.servers)
        if "." not in known.servers
        else '{\n  // mine\n  "theme": "dark"\n}\n'
    )
    files = [write(home / known.user_file, TOML if known.user_file.endswith(".toml") else text)]
    if known.hooks and home / known.hooks.file not in files:
        files.append(write(home / known.hooks.file, HOOKS))
    if known.rules_file:
        files.append(write(home / known.rules_file, RULES))
    return files


def read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else documents.read(text)


def server_in(home: Path, name: str) -> list[str]:
    known = AGENTS[name]
    document = read(home / known.user_file)
    for key in known.servers.split("."):
        document = document[key]
    entry = document["hummock"]
    return list(entry["command"]) if known.takes_one_list else [entry["command"], *entry["args"]]


@pytest.mark.parametrize("name", WORKS_IN_FOLDER)
@pytest.mark.parametrize("prepare", [lambda home, name: [], own_files], ids=["empty-home", "own-files"])
def test_an_agent_gets_its_parts_once_and_loses_them_to_the_byte(
    home: Path, name: str, prepare: Callable[[Path, str], list[Path]]
) -> None:
    known = AGENTS[name]
    prepare(home, name)
    before = everything(home)
    done = setup("--agent", name, "--yes")
    assert done.exit_code == 0, done.output
    assert server_in(home, name) == [*SERVER, *(known.folder_arguments() or ())]
    if known.hooks:
        lists = read(home / known.hooks.file)["hooks"]
        for event in known.hooks.events:
            assert ["hummock-hook" in json.dumps(each) for each in lists[event]].count(True) == 1
    if known.rules_file:
        assert "Before you grep" in (home / known.rules_file).read_text(encoding="utf-8")
    if known.skills_folder:
        assert (home / known.skills_folder / "hummock/SKILL.md").is_file()
    written = everything(home)
    for path, content in before.items():
        for kept in (b"// mine", b"// keep", b"// rings", b"# mine", b'"bell"', b'"spell"', b'"o"', b"Be short."):
            assert (content or b"").count(kept) <= (written[path] or b"").count(kept), f"{kept!r} of {path} is gone"

    again = setup("--agent", name, "--yes")
    assert (again.exit_code, again.stdout) == (0, "everything is as it should be; nothing written\n")
    assert everything(home) == written

    undone = setup("--undo", "--yes")
    assert undone.exit_code == 0, undone.output
    assert everything(home) == before
    assert setup("--undo", "--yes").stdout == "nothing of it is left\n"


@pytest.mark.parametrize("name", WORKS_IN_FOLDER)
def test_undo_keeps_what_its_user_wrote_in_between(home: Path, name: str) -> None:
    mine = {".md": ("Be short.", "Be kind."), ".toml": ("# mine", "# still mine")}
    ends = {".md": "\nNo emoji.\n", ".toml": "\n# more\n\n[tui]\ntheme = 1\n"}
    texts = {path: path.read_text(encoding="utf-8") for path in own_files(home, name)}
    assert setup("--agent", name, "--yes").exit_code == 0
    for path in texts:
        was, new = mine.get(path.suffix, ("// mine", "// still mine"))
        text = path.read_text(encoding="utf-8").replace(was, new)
        write(path, text + ends.get(path.suffix, "// more\n"))
    assert setup("--undo", "--yes").exit_code == 0
    for path, text in texts.items():
        was, new = mine.get(path.suffix, ("// mine", "// still mine"))
        gap = "\n" if path.suffix == ".md" else ""
        assert path.read_text(encoding="utf-8") == text.replace(was, new) + gap + ends.get(path.suffix, "// more\n")


def test_undo_leaves_the_rest_of_an_edited_file_byte_for_byte(home: Path) -> None:
    file = write(home / ".cursor/mcp.json", JSON)
    hooks = write(home / ".cursor/hooks.json", HOOKS)
    assert setup("--agent", "cursor", "--yes").exit_code == 0
    for path in (file, hooks):
        write(path, path.read_text(encoding="utf-8").replace("// mine", "// still mine") + "// end\n")
    assert setup("--undo", "--yes").exit_code == 0
    for path, text in ((file, JSON), (hooks, HOOKS)):
        assert path.read_text(encoding="utf-8") == text.replace("// mine", "// still mine") + "// end\n"


def test_a_file_that_was_made_stays_if_its_user_put_something_in(home: Path) -> None:
    assert setup("--agent", "gemini", "--yes").exit_code == 0
    file = home / ".gemini/settings.json"
    text = documents.with_value(file.read_text(encoding="utf-8"), ["theme"], "dark")
    write(file, text)
    assert setup("--undo", "--yes").exit_code == 0
    assert read(file) == {"theme": "dark"}
    assert not (home / ".gemini/GEMINI.md").exists()


def test_text_files_of_our_own_stay_once_their_user_changed_them(home: Path) -> None:
    skill = home / ".claude/skills/hummock/SKILL.md"
    theirs = write(home / ".claude/commands/recall.md", "My own command.\n")
    first = setup("--agent", "claude-code", "--yes")
    assert first.exit_code == 0
    assert f"{theirs} is a file of your own" in first.stderr
    write(skill, "Mine now.\n")
    assert setup("--agent", "claude-code", "--yes").exit_code == 0
    undone = setup("--undo", "--yes")
    assert (undone.exit_code, f"{skill} was changed by you; it stays" in undone.stderr) == (0, True)
    assert everything(home)[".claude/skills/hummock/SKILL.md"] == b"Mine now.\n"
    assert theirs.read_text(encoding="utf-8") == "My own command.\n"
    assert not (home / ".claude/commands/why.md").exists()


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("cursor", ".cursor/mcp.json", "{"),
        ("cursor", ".cursor/hooks.json", '{"hooks": {"sessionStart": {}}}'),
        ("gemini", ".gemini/settings.json", '{"mcpServers": []}'),
        ("codex", ".codex/config.toml", "a = "),
        ("codex", ".codex/AGENTS.md", "<!-- hummock: begin -->\nno end\n"),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {"servers": 1}}'),
    ],
)
def test_a_broken_file_is_named_and_untouched_and_the_others_are_written(
    home: Path, name: str, path: str, text: str
) -> None:
    file = write(home / path, text)
    done = setup("--agent", name, "--agent", "claude-code", "--yes")
    assert done.exit_code == 1
    assert str(file) in done.stderr
    assert "1 file left alone" in done.stderr
    assert file.read_text(encoding="utf-8") == text
    assert server_in(home, "claude-code") == SERVER
    assert setup("--undo", "--yes").exit_code == 0
    assert [each for each, content in everything(home).items() if content is not None] == [path]


def test_a_changed_command_replaces_the_one_before(home: Path) -> None:
    own_files(home, "codex")
    before = everything(home)
    assert setup("--agent", "codex", "--yes").exit_code == 0
    assert setup("--agent", "codex", "--project", "my shop", "--target", "localhost:1", "--yes").exit_code == 0
    assert server_in(home, "codex") == [*SERVER, "--project", "my shop", "--target", "localhost:1"]
    (item,) = read(home / ".codex/hooks.json")["hooks"]["SessionStart"]
    assert shlex.split(item["hooks"][0]["command"]) == [
        *("env", "HUMMOCK_PROJECT=my shop", "HUMMOCK_TARGET=localhost:1"),
        str(home.parent / "my bin/hummock-hook"),
    ]
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == before


def test_an_entry_that_was_there_already_is_not_ours_to_take_out(home: Path) -> None:
    words = ["mcp", "install", "--client", "junie", "--project", "shop", "--yes"]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = everything(home)
    assert setup("--agent", "junie", "--project", "shop", "--yes").stdout.startswith("everything is as it should be")
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == before


def test_hooks_of_the_users_own_wiring_are_left_as_they_are(home: Path) -> None:
    mine = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "hummock-hook", "timeout": 5}]}]}}'
    file = write(home / ".codex/hooks.json", mine)
    assert setup("--agent", "codex", "--yes").exit_code == 0
    lists = read(file)["hooks"]
    assert lists["Stop"] == [{"hooks": [{"type": "command", "command": "hummock-hook", "timeout": 5}]}]
    assert set(lists) == {"Stop", "SessionStart", "UserPromptSubmit", "PostToolUse"}


def test_it_says_what_is_left_to_do(home: Path) -> None:
    done = setup("--agent", "codex", "--agent", "opencode", "--yes")
    codex, opencode = done.stdout.splitlines()[1:]
    assert codex.startswith("Codex: start a new session; /mcp lists the server")
    assert "trust the hooks in /hooks" in codex
    assert opencode == "OpenCode: start a new session"


@pytest.mark.parametrize(("name", "comment"), [("claude-code", "// mine\n"), ("codex", "# mine\n")])
def test_an_entry_of_before_comes_back_into_an_edited_file(home: Path, name: str, comment: str) -> None:
    words = ["mcp", "install", "--client", name, "--project", "shop", "--yes"]
    assert CliRunner().invoke(app, words).exit_code == 0
    file = home / AGENTS[name].user_file
    before = read(file)
    assert setup("--agent", name, "--yes").exit_code == 0
    assert server_in(home, name) == SERVER
    write(file, comment + file.read_text(encoding="utf-8"))
    assert setup("--undo", "--yes").exit_code == 0
    assert read(file) == before
    assert file.read_text(encoding="utf-8").startswith(comment)


def test_a_hook_of_the_users_own_stays_in_an_edited_file(home: Path) -> None:
    item = {"hooks": [{"type": "command", "command": "hummock-hook", "timeout": 5}]}
    file = write(home / ".codex/hooks.json", json.dumps({"hooks": {"Stop": [item]}}, indent=2))
    assert setup("--agent", "codex", "--yes").exit_code == 0
    write(file, file.read_text(encoding="utf-8") + "// mine\n")
    assert setup("--undo", "--yes").exit_code == 0
    assert file.read_text(encoding="utf-8") == json.dumps({"hooks": {"Stop": [item]}}, indent=2) + "// mine\n"


def test_agents_are_found_by_their_folders_and_their_commands(home: Path) -> None:
    (home / ".gemini").mkdir()
    program = write(home.parent / "my bin/opencode", "#!/bin/sh\n")
    program.chmod(0o755)
    answer = setup_json("--dry-run")
    assert [each["name"] for each in answer["agents"]] == ["gemini", "opencode"]
    assert {each["action"] for each in answer["files"]} == {"create"}
    assert not answer["is_written"]
    assert everything(home) == {".gemini": None}


def test_without_an_agent_it_says_how_to_name_one(home: Path) -> None:
    done = setup("--yes")
    assert done.exit_code == 1
    assert "--agent NAME" in done.stderr


def test_an_installation_that_cannot_serve_says_what_it_lacks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    (said,) = setup_json("--agent", "cursor", "--yes")["notes"]
    assert said.startswith(f"agents find a service that listens at {DEFAULT_TARGET}, but start none: ")
    assert said.endswith("pip install 'hummock[server]'")
    assert setup_json("--agent", "cursor", "--yes", "--target", "memory.example:7420")["notes"] == []


def test_an_installation_in_a_cache_says_that_it_will_go(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = home / "cache/uv/archive-v0/x"
    monkeypatch.setattr(sys, "prefix", str(environment))
    # uv tags environments that last, too.
    write(environment / "CACHEDIR.TAG", "")
    assert setup_json("--agent", "cursor", "--dry-run")["notes"] == []
    write(home / "cache/uv/CACHEDIR.TAG", "")
    (said,) = setup_json("--agent", "cursor", "--dry-run")["notes"]
    assert str(home / "cache/uv") in said
    assert "uv tool install" in said


@pytest.mark.parametrize("name", NEEDS_PROJECT)
def test_an_agent_that_hides_its_folder_needs_a_project(home: Path, name: str) -> None:
    left_out = setup("--agent", name, "--yes")
    assert (left_out.exit_code, everything(home)) == (0, {})
    assert f"hummock setup --agent {name} --project NAME" in left_out.stderr
    assert setup("--agent", name, "--project", "shop", "--yes").exit_code == 0
    assert server_in(home, name) == [*SERVER, "--project", "shop"]
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == {}


def test_without_the_binary_its_twin_is_wired_and_the_binary_replaces_it(home: Path) -> None:
    binary = home.parent / "my bin/hummock-hook"
    binary.rename(home / "elsewhere")
    answer = setup_json("--agent", "codex", "--yes")
    assert "docs/hooks.md" in answer["notes"][0]
    assert not answer["is_undone"]

    def command() -> list[str]:
        (item,) = read(home / ".codex/hooks.json")["hooks"]["Stop"]
        return shlex.split(item["hooks"][0]["command"])

    over_http = ["env", "HUMMOCK_HTTP_PORT=7422"]
    assert command() == [*over_http, sys.executable, "-P", "-m", "hummock_tools.hook"]
    assert server_in(home, "codex") == [*over_http, *SERVER]
    (home / "elsewhere").rename(binary)
    assert setup_json("--agent", "codex", "--yes")["notes"] == []
    assert (command(), server_in(home, "codex")) == ([str(binary)], SERVER)
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == {}


@pytest.mark.parametrize("answer", ["n\n", "\n", None])
def test_nothing_is_written_unless_the_answer_is_yes(home: Path, answer: str | None) -> None:
    done = setup("--agent", "cursor", answer=answer)
    assert done.exit_code == 1
    assert '+    "hummock": {' in done.stderr
    assert "nothing was written" in done.stderr
    assert everything(home) == {}
    assert not (home / ".local").exists()
    assert setup("--agent", "cursor", answer="y\n").exit_code == 0
    assert setup("--undo", answer="n\n").exit_code == 1
    assert server_in(home, "cursor") == [*SERVER, "--folder", "${workspaceFolder}"]


def test_what_an_agent_writes_during_the_question_is_not_lost(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(home / ".claude.json", '{"numStartups": 1}\n')

    def confirm(question: str, otherwise: str) -> None:
        write(file, '{"numStartups": 2}\n')

    monkeypatch.setattr("hummock_tools.cli.setup.confirm", confirm)
    done = setup("--agent", "claude-code")
    assert done.exit_code == 1
    assert f"{file} has changed in the meantime" in done.stderr
    assert file.read_text(encoding="utf-8") == '{"numStartups": 2}\n'
    assert setup("--agent", "claude-code", "--yes").exit_code == 0
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == {".claude.json": b'{"numStartups": 2}\n'}


def test_a_new_command_in_an_edited_file_can_be_undone(home: Path) -> None:
    file = write(home / ".cursor/mcp.json", JSON)
    assert setup("--agent", "cursor", "--yes").exit_code == 0
    write(file, file.read_text(encoding="utf-8").replace("dark", "light"))
    assert setup("--agent", "cursor", "--project", "shop", "--yes").exit_code == 0
    assert server_in(home, "cursor") == [*SERVER, "--project", "shop"]
    assert setup("--undo", "--yes").exit_code == 0
    assert file.read_text(encoding="utf-8") == JSON.replace("dark", "light")


def test_copilot_gets_a_file_of_its_own_where_it_looks_for_hooks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = write(home / "moved/hooks/mine.json", '{"version": 1, "hooks": {}}\n')
    before = everything(home)
    monkeypatch.setenv("COPILOT_HOME", str(home / "moved"))
    assert setup("--agent", "copilot", "--dry-run").exit_code == 0
    assert everything(home) == before
    assert setup("--agent", "copilot", "--yes").exit_code == 0
    program = shlex.quote(str(home.parent / "my bin/hummock-hook"))
    item = {"type": "command", "bash": program, "powershell": f"& {program}", "timeoutSec": 20}
    events = ("sessionStart", "userPromptSubmitted", "agentStop", "preCompact", "sessionEnd")
    assert read(home / "moved/hooks/hummock.json") == {"version": 1, "hooks": {event: [item] for event in events}}
    assert theirs.read_text(encoding="utf-8") == '{"version": 1, "hooks": {}}\n'
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == before


def test_undo_is_for_all_agents() -> None:
    assert setup("--undo", "--agent", "cursor").exit_code == 2


def test_texts_of_before_are_kept_for_their_owner_alone(home: Path) -> None:
    write(home / ".cursor/mcp.json", JSON).chmod(0o640)
    assert setup("--agent", "cursor", "--yes").exit_code == 0
    kept = home / ".local/state/hummock/setup"
    (backup,) = kept.glob("*-mcp.json")
    assert backup.read_text(encoding="utf-8") == JSON
    assert (kept.stat().st_mode & 0o777, backup.stat().st_mode & 0o777) == (0o700, 0o600)
    assert (home / ".cursor/mcp.json").stat().st_mode & 0o777 == 0o640


def test_a_damaged_record_is_named_and_nothing_is_written(home: Path) -> None:
    record = write(home / ".local/state/hummock/setup/written.json", '{"files": {"/x": {}}}')
    for words in (["--agent", "cursor", "--yes"], ["--undo", "--yes"]):
        done = setup(*words)
        assert done.exit_code == 1
        assert f"{record} is damaged" in done.stderr
    assert everything(home) == {}


def test_a_write_that_fails_leaves_a_state_that_can_be_undone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_files(home, "gemini")
    before = everything(home)

    def full(path: Path, text: str) -> None:
        if path.name == "GEMINI.md":
            raise OSError(28, "No space left on device")
        replace(path, text)

    replace = config_files.replace
    monkeypatch.setattr(config_files, "replace", full)
    done = setup("--agent", "gemini", "--yes")
    assert done.exit_code == 1
    assert f"{home / '.gemini/GEMINI.md'}: No space left on device" in done.stderr
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    assert setup("--undo", "--yes").exit_code == 0
    assert everything(home) == before
