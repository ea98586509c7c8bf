package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	told     = `{"type":"assistant","uuid":"a3","message":{"content":[{"type":"text","text":"ISO 8601 only."}]}}`
	thanked  = `{"type":"user","uuid":"u2","message":{"content":[{"type":"text","text":"谢谢"},{"type":"image","source":{}}]}}`
	welcomed = `{"type":"assistant","uuid":"a4","message":{"content":[{"type":"text","text":"不客气"}]}}`
)

// isSaid compares turns with those of cases.json.
func isSaid(turns []turn, want []said) bool {
	return slices.EqualFunc(turns, want, func(got turn, want said) bool { return said{got.id, got.user, got.agent} == want })
}

func TestTurnsAreWhatWasSaidWithoutTheTools(t *testing.T) {
	for _, each := range allCases(t).Transcripts {
		if got := readTurns(written(t, each.Lines...), false); !isSaid(got, each.Want) {
			t.Errorf("%s: got %+v", each.Case, got)
		}
	}
}

func TestATurnHasTheFilesOfCallsThatDidNotFail(t *testing.T) {
	for _, each := range allCases(t).Edits {
		turns := readTurns(written(t, each.Lines...), false)
		if !slices.EqualFunc(turns, each.Want, func(got turn, want []string) bool { return slices.Equal(got.files, want) }) {
			t.Errorf("%s: got %+v", each.Case, turns)
		}
	}
}

func TestATurnHasTheTimesOfTheTranscript(t *testing.T) {
	for _, each := range allCases(t).Times {
		lines := []string{
			fmt.Sprintf(`{"type":"user","uuid":"u","timestamp":%s,"message":{"content":"q"}}`, each.Sent),
			fmt.Sprintf(`{"type":"assistant","timestamp":%s,"message":{"content":"a"}}`, each.Sent),
			`{"type":"assistant","timestamp":"2026-01-01T00:00:00Z","message":{"content":"b"}}`,
		}
		now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
		got := readTurns(written(t, lines...), false)[0]
		for _, at := range []string{got.userTime, got.agentTime} {
			var text string
			if found := pastTime(at, now); found != nil {
				text = found.AsTime().Format(time.RFC3339Nano)
			}
			if text != each.Want {
				t.Errorf("%s: got %q", each.Case, text)
			}
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
