package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// newHome is a home of the test's own, where the environment names no project.
func newHome(t *testing.T) home {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("HUMMOCK_PROJECT", "")
	t.Setenv("CLAUDE_PROJECT_DIR", "")
	made, err := openHome()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestARecordIsKeptForItsOwnerAlone(t *testing.T) {
	place := newHome(t)
	known := &record{Shown: []string{"a", "还"}, Turns: 2, StoredTurn: "u1", Prompts: 3, Turn: "t", Prompt: "p", Transcript: "/t"}
	for range 2 {
		if err := place.write("shop", "../../s", known); err != nil {
			t.Fatal(err)
		}
	}
	if got := place.read("shop", "../../s"); !reflect.DeepEqual(got, known) {
		t.Errorf("got %+v", got)
	}
	if got := place.read("other", "../../s"); !reflect.DeepEqual(got, &record{}) {
		t.Errorf("another project has %+v", got)
	}
	files, _ := filepath.Glob(filepath.Join(string(place), "sessions", "*"))
	if len(files) != 1 {
		t.Errorf("left behind: %q", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestADamagedRecordIsAnEmptyOne(t *testing.T) {
	place := newHome(t)
	for _, text := range []string{"", "{", `{"shown":7}`, "\x00"} {
		if err := os.WriteFile(place.file("shop", "s"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := place.read("shop", "s"); !reflect.DeepEqual(got, &record{}) {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestOnlyAsManyIDsAreKeptAsARecallCanLeaveOut(t *testing.T) {
	var known record
	for at := range mostShown + 3 {
		known.show([]string{fmt.Sprint(at)})
	}
	if len(known.Shown) != mostShown || known.Shown[0] != "3" {
		t.Errorf("%d are kept, from %s", len(known.Shown), known.Shown[0])
	}
}

func TestOldSessionsAreForgotten(t *testing.T) {
	place := newHome(t)
	now := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	for session, age := range map[string]time.Duration{"old": keptTime + time.Hour, "young": keptTime - time.Hour} {
		if err := place.write("shop", session, &record{Turns: 1}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(place.file("shop", session), now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	place.prune(now)
	if place.read("shop", "old").Turns != 0 || place.read("shop", "young").Turns != 1 {
		t.Error("the wrong one was forgotten")
	}
}

func TestTheLogStaysSmall(t *testing.T) {
	place := newHome(t)
	line := strings.Repeat("x", 100_000)
	for range 8 {
		place.log(line)
	}
	for _, name := range []string{"hook.log", "hook.log.1"} {
		info, err := os.Stat(filepath.Join(string(place), name))
		if err != nil || info.Size() > largestLog+100_001 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
