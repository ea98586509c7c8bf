package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// written is a transcript with these lines.
func written(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	asked    = `{"type":"user","uuid":"u1","message":{"role":"user","content":"which formats does parse_date take?"}}`
	thought  = `{"type":"assistant","uuid":"a1","message":{"content":[{"type":"thinking","thinking":"hm"}]}}`
	looked   = `{"type":"assistant","uuid":"a2","message":{"content":[{"type":"text","text":"Let me look."},{"type":"tool_use","name":"Read","input":{"file_path":"dates.py"}}]}}`
	result   = `{"type":"user","uuid":"r1","message":{"content":[{"type":"tool_result","content":"def parse_date(text): ..."}]}}`
	told     = `{"type":"assistant","uuid":"a3","message":{"content":[{"type":"text","text":"ISO 8601 only."}]}}`
	thanked  = `{"type":"user","uuid":"u2","message":{"content":[{"type":"text","text":"谢谢"},{"type":"image","source":{}}]}}`
	welcomed = `{"type":"assistant","uuid":"a4","message":{"content":[{"type":"text","text":"不客气"}]}}`
)

func TestTurnsAreWhatWasSaidWithoutTheTools(t *testing.T) {
	whole := []turn{
		{id: "u1", user: "which formats does parse_date take?", agent: "Let me look.\n\nISO 8601 only."},
		{id: "u2", user: "谢谢", agent: "不客气"},
	}
	for name, each := range map[string]struct {
		lines []string
		want  []turn
	}{
		"two turns":        {[]string{asked, thought, looked, result, told, thanked, welcomed}, whole},
		"one not answered": {[]string{asked, thought}, []turn{{id: "u1", user: "which formats does parse_date take?"}}},
		"an answer alone":  {[]string{told}, nil},
		"empty":            {nil, nil},
		"another format":   {[]string{`{"type":"response_item","payload":{"type":"message","role":"user"}}`}, nil},
		"noise between": {
			[]string{
				`{"type":"summary","summary":"the user asked"}`, `not JSON, but "user"`,
				`{"type":"user","uuid":"m","isMeta":true,"message":{"content":"a caveat"}}`,
				`{"type":"user","uuid":"c","isCompactSummary":true,"message":{"content":"a summary"}}`,
				`{"type":"user","uuid":"s","isSidechain":true,"message":{"content":"a subagent's task"}}`,
				`{"type":"user","uuid":"o","message":{"content":"<local-command-stdout>ok</local-command-stdout>"}}`,
				`{"type":"user","uuid":"i","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`,
				`{"type":"user","uuid":"n","message":{"content":"<system-reminder>only that</system-reminder>"}}`,
				`{"type":"user","uuid":7}`, asked, told,
			},
			[]turn{{id: "u1", user: "which formats does parse_date take?", agent: "ISO 8601 only."}},
		},
		"a command of the user's": {
			[]string{
				asked, told,
				`{"type":"user","uuid":"u3","message":{"content":"<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>"}}`,
				`{"type":"user","uuid":"m","isMeta":true,"message":{"content":[{"type":"text","text":"Review it."}]}}`,
				welcomed,
			},
			[]turn{
				{id: "u1", user: "which formats does parse_date take?", agent: "ISO 8601 only."},
				{id: "u3", user: "/review 12", agent: "不客气"},
			},
		},
		"a reminder inside": {
			[]string{`{"type":"user","uuid":"u4","message":{"content":"go <system-reminder>x</system-reminder>on<system-reminder>y"}}`},
			[]turn{{id: "u4", user: "go on"}},
		},
	} {
		if got := readTurns(written(t, each.lines...), false); !slices.Equal(got, each.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestASubagentsTranscriptIsReadWhole(t *testing.T) {
	path := written(t, `{"type":"user","uuid":"s","isSidechain":true,"message":{"content":"find parse_date"}}`)
	if got := readTurns(path, true); len(got) != 1 || got[0].user != "find parse_date" {
		t.Errorf("got %+v", got)
	}
}

func TestOfALongTranscriptTheEndIsRead(t *testing.T) {
	path := written(t, asked, `{"type":"attachment","text":"`+strings.Repeat("x", largestTail)+`"}`, thanked, welcomed)
	if got := readTurns(path, false); len(got) != 1 || got[0].id != "u2" {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsNoRegularFileHasNoTurns(t *testing.T) {
	for _, path := range []string{"", t.TempDir(), "/dev/zero", filepath.Join(t.TempDir(), "missing")} {
		if got := readTurns(path, false); got != nil {
			t.Errorf("%s: got %+v", path, got)
		}
	}
}

func TestALongTextIsCutBetweenCharacters(t *testing.T) {
	long := strings.Repeat("还款日", 100)
	got := cut(long, 100)
	if len(got) > 100 || !utf8.ValidString(got) || !strings.HasSuffix(got, cutMark) || !strings.HasPrefix(got, "还款日") {
		t.Errorf("got %q", got)
	}
	if got := cut(long, len(long)); got != long {
		t.Errorf("a text that fits was cut to %q", got)
	}
	if first, last := firstRunes(long, 4), lastRunes(long, 4); first != "还款日还" || last != "日还款日" {
		t.Errorf("got %q and %q", first, last)
	}
	if first, last := firstRunes("ab", 4), lastRunes("还", 2); first != "ab" || last != "还" {
		t.Errorf("got %q and %q", first, last)
	}
}

func TestTheLastWordsAreAddedOnce(t *testing.T) {
	for _, each := range []struct{ text, last, want string }{
		{"", "done", "done"},
		{"Let me look.", "done", "Let me look.\n\ndone"},
		{"Let me look.\n\ndone", "done", "Let me look.\n\ndone"},
	} {
		if got := withEnd(each.text, each.last); got != each.want {
			t.Errorf("%q and %q: got %q", each.text, each.last, got)
		}
	}
}
