package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hummockv1 "hummock.dev/go/hummock/v1"
)

func TestTurnsThatAreStoredAlreadyAreNotStoredAgain(t *testing.T) {
	for _, each := range allCases(t).Turns {
		given, err := readEvent(bytes.NewReader(each.Given))
		if err != nil {
			t.Fatal(err)
		}
		given.transcript = written(t, each.Lines...)
		work := session{given: given, record: &each.Record}
		if got := work.newTurns(); !isSaid(got, each.Want) {
			t.Errorf("%s: got %+v", each.Case, got)
		}
	}
}

func TestAnEndIsReadFromTheTranscriptThatWasToldBefore(t *testing.T) {
	for _, each := range allCases(t).Transcripts {
		if each.Case != "Copilot CLI, two turns" {
			continue
		}
		ended, err := readEvent(strings.NewReader(`{"sessionId":"s","reason":"user_exit"}`))
		if err != nil {
			t.Fatal(err)
		}
		known := &record{Prompts: 2}
		stopped := event{kind: answered, transcript: written(t, each.Lines[:2]...)}
		if got := (session{given: stopped, record: known}).newTurns(); len(got) > 0 {
			t.Errorf("before its answer got %+v", got)
		}
		if err := os.WriteFile(known.Transcript, []byte(strings.Join(each.Lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (session{given: ended, record: known}).newTurns(); !isSaid(got, each.Want) {
			t.Errorf("got %+v", got)
		}
		return
	}
	t.Error("cases.json has no such transcript")
}

func TestNoMoreTurnsAreStoredAtOnceThanTimeAllows(t *testing.T) {
	var lines []string
	for at := range 2 * mostTurns {
		lines = append(lines, strings.Replace(asked, "u1", fmt.Sprint(at), 1), told)
	}
	work := session{given: event{kind: compacting, transcript: written(t, lines...)}, record: &record{}}
	if got := work.newTurns(); len(got) != mostTurns || got[mostTurns-1].id != fmt.Sprint(2*mostTurns-1) {
		t.Errorf("got %d", len(got))
	}
}

// odd is a service that answers as a test has it. What works is tested against the real one (tests/client/test_hook.py).
type odd struct {
	hummockv1.UnimplementedContextServiceServer

	render func(context.Context) (*hummockv1.RenderResponse, error)
}

func (o odd) Render(ctx context.Context, _ *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
	return o.render(ctx)
}

func rendered(text string) *hummockv1.RenderResponse {
	shown := &hummockv1.RenderedMemory{MemoryId: "m", Tier: hummockv1.Tier_TIER_FULL}
	return &hummockv1.RenderResponse{Text: text, Memories: []*hummockv1.RenderedMemory{shown}}
}

func TestAPromptGoesWithoutMemoryWhateverTheServiceDoes(t *testing.T) {
	for name, each := range map[string]struct {
		render func(context.Context) (*hummockv1.RenderResponse, error)
		logged string
	}{
		"it fails": {
			func(context.Context) (*hummockv1.RenderResponse, error) {
				return nil, status.Error(codes.Unavailable, "the lamp is lit")
			},
			"failed: UNAVAILABLE",
		},
		"it hangs": {
			func(ctx context.Context) (*hummockv1.RenderResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
			"failed: DEADLINE_EXCEEDED",
		},
		"it has nothing": {
			func(context.Context) (*hummockv1.RenderResponse, error) {
				late := hummockv1.DegradationReason_DEGRADATION_REASON_DEADLINE
				degraded := []*hummockv1.Degradation{{Reason: late, Message: "lamp"}}
				return &hummockv1.RenderResponse{Text: "## Project", Degraded: degraded}, nil
			},
			"nothing to show deadline",
		},
		"it has too much": {
			func(context.Context) (*hummockv1.RenderResponse, error) {
				return rendered(strings.Repeat("灯", longestShown+1)), nil
			},
			"too long to show",
		},
	} {
		place := newHome(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		hummockv1.RegisterContextServiceServer(server, odd{render: each.render})
		go server.Serve(listener)
		t.Setenv("HUMMOCK_TARGET", listener.Addr().String())
		var out bytes.Buffer
		run(time.Now(), strings.NewReader(`{"hook_event_name":"UserPromptSubmit","session_id":"s","cwd":"/w/shop","prompt":"灯?"}`), &out)
		server.Stop()
		log := logOf(t, place)
		if out.Len() > 0 || !strings.Contains(log, each.logged) || strings.Contains(log, "lamp") || strings.Contains(log, "灯") {
			t.Errorf("%s: printed %q, logged %q", name, out.String(), log)
		}
	}
}

func TestWhateverComesInNothingIsPrinted(t *testing.T) {
	t.Setenv("HUMMOCK_TARGET", "127.0.0.1:1") // where nothing listens
	for name, sent := range map[string]string{
		"empty":             "",
		"no JSON":           "\x00\xff",
		"deep":              strings.Repeat(`{"a":`, 100_000),
		"large":             `{"prompt":"` + strings.Repeat("x", largestEvent) + `"}`,
		"another event":     `{"hook_event_name":"Notification","session_id":"s","cwd":"/w/shop"}`,
		"no session":        `{"hook_event_name":"Stop","cwd":"/w/shop"}`,
		"no folder":         `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"p"}`,
		"no service":        `{"hook_event_name":"UserPromptSubmit","session_id":"s","cwd":"/w/shop","prompt":"p"}`,
		"a pipe to nowhere": `{"hook_event_name":"Stop","session_id":"s","cwd":"/w/shop","transcript_path":"/dev/zero"}`,
		"long names": `{"hook_event_name":"Stop","session_id":"` + strings.Repeat("s", 1<<20) + `","cwd":"/` +
			strings.Repeat("w", 1<<20) + `","last_assistant_message":"a","prompt":"p"}`,
	} {
		place := newHome(t)
		var out bytes.Buffer
		run(time.Now(), strings.NewReader(sent), &out)
		if out.Len() > 0 || strings.Count(logOf(t, place), "\n") != 1 {
			t.Errorf("%s: printed %q, logged %q", name, out.String(), logOf(t, place))
		}
	}
}

func TestAnEventPassesWhereNothingCanBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", file)
	var out bytes.Buffer
	run(time.Now(), strings.NewReader(`{"hook_event_name":"UserPromptSubmit","session_id":"s","cwd":"/w/shop","prompt":"p"}`), &out)
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}

func logOf(t *testing.T, place home) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(string(place), "hook.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
