package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// cases are those that the Python twin of this program is tested with as well (tests/hook).
type cases struct {
	Events, Refused []struct {
		Case, Sent string
		Want       map[string]string
	}
	Replies []struct {
		Name string
		Want map[string]any
	}
	Changes []struct {
		Case, Sent string
		Want       []string
	}
	Private []struct{ Case, Sent, Want string }
	Times   []struct {
		Case string
		Sent json.RawMessage
		Want string
	}

	Transcripts []struct {
		Case  string
		Lines []string
		Want  []said
	}
	Edits []struct {
		Case  string
		Lines []string
		Want  [][]string
	}
	Turns []struct {
		Case   string
		Lines  []string
		Given  json.RawMessage
		Record record
		Want   []said
	}
}

// said is a turn in cases.json.
type said struct{ ID, User, Agent string }

func allCases(t *testing.T) cases {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var all cases
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// fieldsOf are those of an event that say something, as cases.json names them.
func fieldsOf(given event) map[string]string {
	fields := map[string]string{
		"kind": given.kind.String(), "name": given.name, "session": given.session, "folder": given.folder,
		"turn": given.turn, "prompt": given.prompt, "answer": given.answer, "source": given.source,
		"transcript": given.transcript, "subagent": given.subagent, "subagent_type": given.subagentType,
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

func TestAnEventIsReadWhateverTheAgentCallsItsFields(t *testing.T) {
	for _, each := range allCases(t).Events {
		got, err := readEvent(strings.NewReader(each.Sent))
		if err != nil || !maps.Equal(fieldsOf(got), each.Want) {
			t.Errorf("%s: got %+v, %v", each.Case, got, err)
		}
	}
}

func TestAnEventNamesTheFilesOfACallThatDidNotFail(t *testing.T) {
	for _, each := range allCases(t).Changes {
		got, err := readEvent(strings.NewReader(each.Sent))
		if err != nil || !slices.Equal(got.files, each.Want) {
			t.Errorf("%s: got %q, %v", each.Case, got.files, err)
		}
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	sent := map[string]string{
		"too deep":        strings.Repeat("[", 1_000_000),
		"deep in a field": `{"x":` + strings.Repeat(`{"x":`, 20_000) + "1" + strings.Repeat("}", 20_001),
		"too large":       `{"prompt":"` + strings.Repeat("x", largestEvent) + `"}`,
	}
	for _, each := range allCases(t).Refused {
		sent[each.Case] = each.Sent
	}
	for name, text := range sent {
		if _, err := readEvent(strings.NewReader(text)); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestAReplyHasTheFormOfTheEvent(t *testing.T) {
	for _, each := range allCases(t).Replies {
		text, err := (event{name: each.Name}).reply("a \"b\"\n还款")
		var got map[string]any
		if err != nil || json.Unmarshal(text, &got) != nil || !reflect.DeepEqual(got, each.Want) {
			t.Errorf("%s: got %s, %v", each.Name, text, err)
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
