package hummock

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hummockv1 "hummock.dev/go/hummock/v1"
)

var chat = []Message{{Role: "system", Content: "You are patient."}, {Role: "user", Content: "还款日是哪天？"}}

func same(given, got []Message) bool { return len(given) == len(got) && &given[0] == &got[0] }

func renders(reply *hummockv1.RenderResponse, err error) *faulty {
	return &faulty{
		render: func(context.Context, *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) { return reply, err },
	}
}

func TestAServiceThatHangsCostsTheBudgetAndNothingElse(t *testing.T) {
	client := clientOf(t, &faulty{
		render: func(ctx context.Context, _ *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			deadline, _ := ctx.Deadline()
			if left := time.Until(deadline); left > memoryBudget {
				t.Errorf("it may take %s", left)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	if got := client.WithMemory(t.Context(), "p", chat); !same(chat, got) {
		t.Errorf("got %v", got)
	}
}

func TestWhatGoesWrongLeavesTheMessagesAlone(t *testing.T) {
	odd := &hummockv1.RenderResponse{Text: "a", Messages: []*hummockv1.PromptMessage{{}, {}}}
	for name, service := range map[string]*faulty{
		"refused": renders(nil, status.Error(codes.PermissionDenied, "no")),
		"nothing": renders(&hummockv1.RenderResponse{}, nil),
		"odd":     renders(odd, nil),
	} {
		if got := clientOf(t, service).WithMemory(t.Context(), "p", chat); !same(chat, got) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := clientOf(t, renders(nil, nil)).WithMemory(over, "p", chat); !same(chat, got) {
		t.Errorf("over: got %v", got)
	}
}

func TestWithoutAQuestionNobodyIsAsked(t *testing.T) {
	client := clientOf(t, &faulty{}) // a call would end the test's process
	blank := []Message{{Role: "user", Content: " \n"}}
	if got := client.WithMemory(t.Context(), "p", blank); !same(blank, got) {
		t.Errorf("got %v", got)
	}
	if got := client.WithMemory(t.Context(), "p", nil); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestTheSectionGoesIntoTheFirstSystemMessageOrBeforeAll(t *testing.T) {
	reply := &hummockv1.RenderResponse{Text: "m", Messages: []*hummockv1.PromptMessage{{Content: "finished"}}}
	client := clientOf(t, renders(reply, nil))
	finished := Message{Role: "system", Content: "finished"}
	before := slices.Clone(chat)
	if got := client.WithMemory(t.Context(), "p", chat); !slices.Equal(got, []Message{finished, chat[1]}) {
		t.Errorf("got %v", got)
	}
	if got := client.WithMemory(t.Context(), "p", chat[1:]); !slices.Equal(got, []Message{finished, chat[1]}) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(chat, before) {
		t.Errorf("what was given is now %v", chat)
	}
}

func TestOptionsAreAskedFor(t *testing.T) {
	var sent *hummockv1.RenderRequest
	client := clientOf(t, &faulty{
		render: func(_ context.Context, request *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			sent = request
			return &hummockv1.RenderResponse{}, nil
		},
	})
	form, preset := hummockv1.RenderForm_RENDER_FORM_INDEX, hummockv1.Preset_PRESET_CHAT
	long := []Message{{Role: "user", Content: strings.Repeat("字", 9000) + "？"}, {Role: "assistant", Content: "…"}}
	client.WithMemory(t.Context(), "p", long, WithForm(form), WithPreset(preset), WithBudgetTokens(99), Within(time.Minute))
	recall := sent.GetRecall()
	if sent.GetForm() != form || recall.GetPreset() != preset || sent.GetBudgetTokens() != 99 || !sent.GetAllowMissing() {
		t.Errorf("sent was %v", sent)
	}
	if query := []rune(recall.GetQueryText()); len(query) != 8192 || query[8191] != '？' {
		t.Errorf("the query has %d characters", len(query))
	}
}

func TestWarmingUpAsksForTheProjectInTheBackground(t *testing.T) {
	sent := make(chan *hummockv1.RenderRequest, 1)
	client := clientOf(t, &faulty{
		render: func(_ context.Context, request *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			sent <- request
			return &hummockv1.RenderResponse{}, nil
		},
	})
	client.WarmUp("loan")
	if request := <-sent; request.GetProject() != "loan" || !request.GetAllowMissing() {
		t.Errorf("sent was %v", request)
	}
}
