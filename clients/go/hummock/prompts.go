package hummock

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	hummockv1 "hummock.dev/go/hummock/v1"
)

const (
	memoryBudget = 300 * time.Millisecond
	warmingTime  = 30 * time.Second
	warmingQuery = "?"
	// longestQuery is in characters. Of a longer message the end is asked for, where the question stands most often.
	longestQuery = 8192
)

const (
	roleSystem = "system"
	roleUser   = "user"
)

// Message is one of a chat, as language models take them.
type Message struct {
	// Role is "system", "user" or "assistant".
	Role    string `json:"role"`
	Content string `json:"content"`
}

// MemoryOption changes what [Client.WithMemory] asks for.
type MemoryOption func(*memoryCall)

type memoryCall struct {
	form         hummockv1.RenderForm
	preset       hummockv1.Preset
	budgetTokens *uint32
	within       time.Duration
}

// Within sets how long a prompt may wait for its memories; 300 ms unless set.
func Within(budget time.Duration) MemoryOption {
	return func(call *memoryCall) { call.within = budget }
}

// WithPreset sets the kind of caller, which chooses what is recalled; unset means agents.
func WithPreset(preset hummockv1.Preset) MemoryOption {
	return func(call *memoryCall) { call.preset = preset }
}

// WithForm sets how memories are written; RENDER_FORM_MEMORIES unless set.
func WithForm(form hummockv1.RenderForm) MemoryOption {
	return func(call *memoryCall) { call.form = form }
}

// WithBudgetTokens sets how long the section may be, in tokens; unset means what the project sets.
func WithBudgetTokens(tokens uint32) MemoryOption {
	return func(call *memoryCall) { call.budgetTokens = &tokens }
}

// WithMemory adds what the project remembers of the last user message to the first system message, or puts a system
// message in front. It is best called early in a program's life with [Client.WarmUp].
//
// It fails open: where nothing is remembered, the service is away or late (300 ms), or anything else goes wrong, it gives
// back the very messages that it was given. Why is logged by slog at the level DEBUG. The messages given are never
// changed.
func (c *Client) WithMemory(
	ctx context.Context, project string, messages []Message, options ...MemoryOption,
) []Message {
	query := queryOf(messages)
	if query == "" {
		return messages
	}
	call := memoryCall{form: hummockv1.RenderForm_RENDER_FORM_MEMORIES, within: memoryBudget}
	for _, option := range options {
		option(&call)
	}
	ctx, cancel := context.WithTimeout(ctx, call.within)
	defer cancel()
	at := slices.IndexFunc(messages, func(one Message) bool { return one.Role == roleSystem })
	prompt := ""
	if at >= 0 {
		prompt = messages[at].Content
	}
	rendered, err := c.Render(ctx, call.request(project, query, prompt))
	if err != nil {
		slog.DebugContext(ctx, "a prompt goes without memory", "project", project, "error", err)
		return messages
	}
	if rendered.GetText() == "" || len(rendered.GetMessages()) != 1 {
		return messages
	}
	system := Message{Role: roleSystem, Content: rendered.GetMessages()[0].GetContent()}
	if at < 0 {
		return append([]Message{system}, messages...)
	}
	changed := slices.Clone(messages)
	changed[at] = system
	return changed
}

// WarmUp has the service read the project, in the background, so that [Client.WithMemory] is in time from the first
// prompt on. What goes wrong is heard by whoever asks later.
func (c *Client) WarmUp(project string) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), warmingTime)
		defer cancel()
		call := memoryCall{form: hummockv1.RenderForm_RENDER_FORM_MEMORIES}
		_, _ = c.Render(ctx, call.request(project, warmingQuery, ""), grpc.WaitForReady(true))
	}()
}

func (call memoryCall) request(project, query, prompt string) *hummockv1.RenderRequest {
	return &hummockv1.RenderRequest{
		Project:      project,
		Source:       &hummockv1.RenderRequest_Recall{Recall: &hummockv1.RecallRequest{QueryText: query, Preset: call.preset}},
		Form:         call.form,
		BudgetTokens: call.budgetTokens,
		Original:     &hummockv1.RenderRequest_Prompt{Prompt: prompt},
		Target:       hummockv1.PromptTarget_PROMPT_TARGET_SYSTEM,
		AllowMissing: true,
	}
}

// queryOf is what the last user message says, its end where it is long; empty where there is none.
func queryOf(messages []Message) string {
	for _, message := range slices.Backward(messages) {
		if message.Role == roleUser {
			said := []rune(strings.TrimSpace(message.Content))
			return string(said[max(0, len(said)-longestQuery):])
		}
	}
	return ""
}
