package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnEventIsReadWhateverTheAgentCallsItsFields(t *testing.T) {
	for name, each := range map[string]struct {
		sent string
		want event
	}{
		"Claude Code, a prompt": {
			`{"hook_event_name":"UserPromptSubmit","session_id":"s","cwd":"/r","transcript_path":"/t","prompt":" 还款日? "}`,
			event{kind: prompted, name: "UserPromptSubmit", session: "s", folder: "/r", transcript: "/t", prompt: "还款日?"},
		},
		"Claude Code, a start": {
			`{"hook_event_name":"SessionStart","session_id":"s","source":"compact"}`,
			event{kind: started, name: "SessionStart", session: "s", source: "compact"},
		},
		"Claude Code, a subagent": {
			`{"hook_event_name":"SubagentStop","session_id":"s","transcript_path":"/t","agent_id":"a","agent_type":"Explore",
			"agent_transcript_path":"/a","last_assistant_message":"found"}`,
			event{
				kind: subagentDone, name: "SubagentStop", session: "s", transcript: "/a", subagent: "a",
				subagentType: "Explore", answer: "found",
			},
		},
		"Codex, an answer": {
			`{"hook_event_name":"Stop","session_id":"s","turn_id":"t","transcript_path":null,"last_assistant_message":"done"}`,
			event{kind: answered, name: "Stop", session: "s", turn: "t", answer: "done"},
		},
		"Gemini CLI, an answer": {
			`{"hook_event_name":"AfterAgent","session_id":"s","prompt":"p","prompt_response":"r"}`,
			event{kind: answered, name: "AfterAgent", session: "s", prompt: "p", answer: "r"},
		},
		"Cursor, an answer": {
			`{"hook_event_name":"afterAgentResponse","conversation_id":"c","generation_id":"g","workspace_roots":["/w"],"text":"r"}`,
			event{kind: answered, name: "afterAgentResponse", session: "c", turn: "g", folder: "/w", answer: "r"},
		},
		"an event of another kind": {`{"hook_event_name":"PreToolUse","session_id":"s"}`, event{name: "PreToolUse", session: "s"}},
		"nothing in it":            {`{}`, event{}},
	} {
		got, err := readEvent(strings.NewReader(each.sent))
		if err != nil || got != each.want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	for name, sent := range map[string]string{
		"empty":              "",
		"no JSON":            "hello",
		"cut off":            `{"hook_event_name":"Stop"`,
		"a list":             "[]",
		"a number as prompt": `{"hook_event_name":"UserPromptSubmit","prompt":7}`,
		"too deep":           strings.Repeat("[", 1_000_000),
		"deep in a field":    `{"x":` + strings.Repeat(`{"x":`, 20_000) + "1" + strings.Repeat("}", 20_001),
		"too large":          `{"prompt":"` + strings.Repeat("x", largestEvent) + `"}`,
	} {
		if _, err := readEvent(strings.NewReader(sent)); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestAReplyHasTheFormOfTheEvent(t *testing.T) {
	for name, want := range map[string]string{
		"UserPromptSubmit":   `{"hookSpecificOutput":{"additionalContext":"a \"b\"\n还款","hookEventName":"UserPromptSubmit"}}`,
		"BeforeAgent":        `{"hookSpecificOutput":{"additionalContext":"a \"b\"\n还款","hookEventName":"BeforeAgent"}}`,
		"sessionStart":       `{"additional_context":"a \"b\"\n还款"}`,
		"beforeSubmitPrompt": `{"additional_context":"a \"b\"\n还款","continue":true}`,
	} {
		if got, err := (event{name: name}).reply("a \"b\"\n还款"); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestAProjectIsNamedAfterItsRepository(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("shop/.git/config", "")
	write("shop/src/deep/a.go", "")
	write("elsewhere/fix-12/.git", "gitdir: "+filepath.Join(root, "shop/.git/worktrees/fix-12")+"\n")
	write("shop/vendored/.git", "gitdir: ../.git/modules/vendored\n")
	write("odd/.git", "\x00\xff")
	write("plain/a.txt", "")
	for name, each := range map[string]struct {
		folder, named, rootOfAgent, want string
	}{
		"the repository itself": {folder: "shop", want: "shop"},
		"a folder in it":        {folder: "shop/src/deep", want: "shop"},
		"a worktree":            {folder: "elsewhere/fix-12", want: "shop"},
		"a submodule":           {folder: "shop/vendored", want: "vendored"},
		"a .git of nonsense":    {folder: "odd", want: "odd"},
		"no repository":         {folder: "plain", want: "plain"},
		"the agent's root":      {folder: "plain", rootOfAgent: filepath.Join(root, "shop"), want: "shop"},
		"named":                 {folder: "shop", named: "还款", want: "还款"},
	} {
		environment := map[string]string{"HUMMOCK_PROJECT": each.named, "CLAUDE_PROJECT_DIR": each.rootOfAgent}
		got := projectOf(filepath.Join(root, each.folder), func(name string) string { return environment[name] })
		if got != each.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, folder := range []string{"", "relative/shop", "/"} {
		if got := projectOf(folder, func(string) string { return "" }); got != "" {
			t.Errorf("%q: got %q", folder, got)
		}
	}
}
