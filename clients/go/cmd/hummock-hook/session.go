package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"hummock.dev/go/hummock"
	hummockv1 "hummock.dev/go/hummock/v1"
)

const (
	// pinnedTag marks memories that a session begins with.
	pinnedTag  = "pinned"
	mostPinned = 50
	// shownTokens bounds what is put before the model for one event.
	shownTokens = 1500
	// longestShown is in characters. Longer ones are kept from the model by Claude Code and Cursor.
	longestShown = 10_000
	// leastSimilarity is that of the presets for chats and code. Agents have none, and would be shown the least bad.
	leastSimilarity = 0.15
	// longestQuery is in characters, as is a learning record's question.
	longestQuery = 8192
	// mostWindow is how many turns a recall can leave out.
	mostWindow = 1000
	// mostTurns is how many turns are stored for one event.
	mostTurns = 20
)

// session is an agent's, with the event that is handled.
type session struct {
	memory  *hummock.Client
	project string
	given   event
	record  *record
	out     io.Writer
}

// handle says in a few words what it did.
func (s session) handle(ctx context.Context) (string, error) {
	switch s.given.kind {
	case started, subagentStarted:
		return s.start(ctx)
	case prompted:
		return s.remind(ctx)
	case changed:
		return s.noteFiles(), nil
	case subagentDone:
		return s.storeSubagent(ctx)
	default:
		return s.storeTurns(ctx)
	}
}

// start shows the pinned memories that the model does not have, and has the service read the project, so that the first
// prompt is answered in time.
func (s session) start(ctx context.Context) (string, error) {
	if s.given.source == "clear" || s.given.source == "compact" {
		s.record.forgetContext()
	}
	warm := make(chan struct{})
	go func() {
		defer close(warm)
		_, _ = s.memory.Render(ctx, s.recalling("?"))
	}()
	defer func() { <-warm }()
	pinned, err := s.memory.ListMemories(ctx, &hummockv1.ListMemoriesRequest{
		Project: s.project, Filter: &hummockv1.MemoryFilter{Tags: []string{pinnedTag}}, PageSize: mostPinned,
		AllowMissing: true,
	})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, each := range pinned.GetMemories() {
		if !slices.Contains(s.record.Shown, each.GetId()) {
			ids = append(ids, each.GetId())
		}
	}
	if len(ids) == 0 {
		return "nothing pinned", nil
	}
	return s.show(ctx, &hummockv1.RenderRequest{
		Project:      s.project,
		Source:       &hummockv1.RenderRequest_Memories{Memories: &hummockv1.MemorySelection{Ids: ids}},
		Form:         hummockv1.RenderForm_RENDER_FORM_CONTEXT,
		BudgetTokens: proto.Uint32(shownTokens),
		AllowMissing: true,
	})
}

// remind shows what bears on the prompt.
func (s session) remind(ctx context.Context) (string, error) {
	s.record.Prompts++
	s.record.Files = nil
	s.record.Turn = first(s.given.turn, fmt.Sprintf("prompt-%d", s.record.Prompts))
	s.record.Prompt = cut(s.given.prompt, longestSide)
	if s.given.prompt == "" || !s.given.takesReply() {
		return "nothing to do", nil
	}
	return s.show(ctx, s.recalling(lastRunes(s.given.prompt, longestQuery)))
}

// noteFiles notes what a tool has changed, for the turn that it belongs to.
func (s session) noteFiles() string {
	known := distinct(append(s.record.Files, s.given.files...))
	s.record.Files = known[:min(len(known), mostFiles)]
	return fmt.Sprintf("files=%d", len(s.given.files))
}

// recalling asks for what bears on a query, without what the model has in its context already.
func (s session) recalling(query string) *hummockv1.RenderRequest {
	tuning := &hummockv1.RecallTuning{MinSimilarity: proto.Float64(leastSimilarity)}
	recall := &hummockv1.RecallRequest{
		QueryText: query,
		Preset:    hummockv1.Preset_PRESET_AGENT,
		Tuning:    tuning,
		Filter:    &hummockv1.MemoryFilter{ExcludedIds: slices.Clone(s.record.Shown)},
	}
	if s.record.Turns > 0 {
		recall.SessionId = s.given.session
		tuning.WindowTurns = proto.Uint32(min(s.record.Turns, mostWindow))
	}
	return &hummockv1.RenderRequest{
		Project:      s.project,
		Source:       &hummockv1.RenderRequest_Recall{Recall: recall},
		Form:         hummockv1.RenderForm_RENDER_FORM_CONTEXT,
		BudgetTokens: proto.Uint32(shownTokens),
		AllowMissing: true,
	}
}

// show prints what is rendered, if it holds a memory, and notes which.
func (s session) show(ctx context.Context, request *hummockv1.RenderRequest) (string, error) {
	rendered, err := s.memory.Render(ctx, request)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, each := range rendered.GetMemories() {
		if each.GetTier() == hummockv1.Tier_TIER_FULL || each.GetTier() == hummockv1.Tier_TIER_INDEX {
			ids = append(ids, each.GetMemoryId())
		}
	}
	var cutShort string
	for _, each := range rendered.GetDegraded() {
		cutShort += " " + strings.ToLower(strings.TrimPrefix(each.GetReason().String(), "DEGRADATION_REASON_"))
	}
	if len(ids) == 0 || rendered.GetText() == "" {
		return "nothing to show" + cutShort, nil
	}
	if utf8.RuneCountInString(rendered.GetText()) > longestShown {
		return "too long to show", nil
	}
	reply, err := s.given.reply(rendered.GetText())
	if err != nil {
		return "", err
	}
	if _, err := s.out.Write(append(reply, '\n')); err != nil {
		return "", err
	}
	s.record.show(ids)
	return fmt.Sprintf("shown=%d tokens=%d", len(ids), rendered.GetTokenCount()) + cutShort, nil
}

// storeTurns stores the turns that have ended, or grown, since those that were stored last.
func (s session) storeTurns(ctx context.Context) (string, error) {
	stored, failed := 0, error(nil)
	for _, each := range s.newTurns() {
		if err := s.storeTurn(ctx, each); err != nil {
			failed = err
			if codeOf(err) == codes.Unavailable {
				break
			}
			continue // it is tried again until one behind it is stored
		}
		if each.id != s.record.StoredTurn {
			s.record.Turns++
		}
		s.record.StoredTurn, s.record.StoredDigest = each.id, each.digest()
		stored++
	}
	return fmt.Sprintf("stored=%d", stored), failed
}

// newTurns are the turns of the transcript from the one that was stored last; where none was, those whose prompts were
// seen, or before a compaction all. Where there is no transcript that can be read, the event and the prompt before it say the turn.
func (s session) newTurns() []turn {
	// Copilot CLI does not say where the transcript is when a session ends.
	s.record.Transcript = first(s.given.transcript, s.record.Transcript)
	turns := readTurns(s.record.Transcript, false)
	if len(turns) == 0 {
		user := first(s.given.prompt, s.record.Prompt)
		id := first(s.given.turn, s.record.Turn, hashOf(user, s.given.answer))
		turns = []turn{{id: id, user: user}}
	}
	last := &turns[len(turns)-1]
	if s.given.answer != "" {
		last.agent = withEnd(last.agent, s.given.answer)
	}
	last.files = append(last.files, s.record.Files...)
	from := slices.IndexFunc(turns, func(each turn) bool { return each.id == s.record.StoredTurn })
	if from < 0 && s.given.kind != compacting {
		from = len(turns) - max(1, int(s.record.Prompts))
	}
	turns = turns[max(0, from, len(turns)-mostTurns):]
	return slices.DeleteFunc(turns, func(each turn) bool {
		return each.user == "" || each.agent == "" ||
			each.id == s.record.StoredTurn && each.digest() == s.record.StoredDigest
	})
}

// storeTurn stores a turn once: sent again it changes nothing, and with a longer answer it replaces the one that is there.
func (s session) storeTurn(ctx context.Context, each turn) error {
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	request := &hummockv1.LearnTurnRequest{
		Project:   s.project,
		RequestId: s.requestID(each.id, each.digest()),
		SessionId: s.given.session,
		User:      sideOf(each.user, each.id+":user", each.userTime),
		Assistant: sideOf(each.agent, each.id+":agent", each.agentTime),
		Files:     belowRoot(s.given.root, each.files),
		TimeZone:  offsetOf(time.Now()),
		Embedding: hummockv1.EmbeddingMode_EMBEDDING_MODE_DEFERRED,
	}
	_, err := s.memory.LearnTurn(ctx, request)
	if isMissing(err) {
		create := &hummockv1.CreateSessionRequest{Project: s.project, Id: s.given.session}
		if _, err = s.memory.CreateSession(ctx, create); err == nil || codeOf(err) == codes.AlreadyExists {
			_, err = s.memory.LearnTurn(ctx, request)
		}
	}
	if codeOf(err) == codes.AlreadyExists {
		request.ReplaceAnswer = true
		request.RequestId = s.requestID(each.id, each.digest(), "replaced")
		_, err = s.memory.LearnTurn(ctx, request)
	}
	return err
}

// offsetOf is the offset of a clock, such as "+08:00", by which "yesterday" of a turn is read. It is empty where the clock
// shows UTC, as in most containers: that says nothing of where somebody lives.
func offsetOf(clock time.Time) string {
	if _, seconds := clock.Zone(); seconds == 0 {
		return ""
	}
	return clock.Format("-07:00")
}

// sideOf is one side of a turn, which may be stored long after it was said.
func sideOf(text, id, at string) *hummockv1.TurnSide {
	return &hummockv1.TurnSide{Text: cut(text, longestSide), MessageId: id, CreateTime: pastTime(at, time.Now())}
}

// storeSubagent stores what a subagent was asked and what it found, as the agent's own words: the task is not the user's.
func (s session) storeSubagent(ctx context.Context) (string, error) {
	turns := readTurns(s.given.transcript, true)
	if len(turns) == 0 || turns[0].user == "" || s.given.answer == "" {
		return "nothing to store", nil
	}
	found := &hummockv1.Memory{
		Id:        "subagent:" + hashOf(s.given.session, s.given.subagent),
		Origin:    hummockv1.Origin_ORIGIN_AI_OUTPUT,
		SessionId: s.given.session,
		Speaker:   firstRunes(s.given.subagentType, longestName),
		Detail: &hummockv1.Memory_LearningRecord{LearningRecord: &hummockv1.LearningRecord{
			Question: firstRunes(turns[0].user, longestQuery),
			Answer:   cut(s.given.answer, longestSide),
		}},
	}
	_, err := s.memory.Learn(ctx, &hummockv1.LearnRequest{
		Project: s.project, Memories: []*hummockv1.Memory{found},
		RequestId: s.requestID(found.GetId(), hashOf(turns[0].user, s.given.answer)),
		Embedding: hummockv1.EmbeddingMode_EMBEDDING_MODE_DEFERRED,
	})
	if err != nil {
		return "", err
	}
	return "stored=1", nil
}

// requestID is the same for the same write, so that it counts once.
func (s session) requestID(parts ...string) string {
	name := hashOf(append([]string{s.project, s.given.session}, parts...)...)
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
}

func isMissing(err error) bool {
	var failed *hummock.Error
	return errors.As(err, &failed) && (failed.Reason == "SESSION_NOT_FOUND" || failed.Reason == "PROJECT_NOT_FOUND")
}

func codeOf(err error) codes.Code {
	var failed *hummock.Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return codes.OK
}
