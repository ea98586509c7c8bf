package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	// largestEvent is in bytes. A prompt with pasted files is below it.
	largestEvent = 16 << 20
	// longestName is a project's, in characters.
	longestName = 256
)

// kind is what happened, whatever the agent calls it.
type kind int

const (
	other kind = iota
	started
	prompted
	answered
	compacting
	subagentStarted
	subagentDone
	changed
)

func (k kind) String() string {
	return [...]string{"other", "start", "prompt", "answer", "compact", "subagent-start", "subagent", "change"}[k]
}

// kinds are the events of Claude Code and Codex, of Gemini CLI, and of Cursor.
var kinds = map[string]kind{
	"SessionStart":     started,
	"UserPromptSubmit": prompted,
	"Stop":             answered,
	"PreCompact":       compacting,
	"SubagentStart":    subagentStarted,
	"SubagentStop":     subagentDone,
	"PostToolUse":      changed,

	"BeforeAgent": prompted,
	"AfterAgent":  answered,
	"AfterTool":   changed,

	"sessionStart":       started,
	"beforeSubmitPrompt": prompted,
	"afterAgentResponse": answered,
	"afterFileEdit":      changed,
}

// copilotKinds are those of Copilot CLI, whose events have no name, by the first of these fields that an event has.
var copilotKinds = []struct {
	field string
	kind  kind
}{
	{"agentName", subagentDone},
	{"source", started},
	{"prompt", prompted},
	{"stopReason", answered},
	{"trigger", compacting},
	{"reason", answered},
}

// event is what an agent tells.
type event struct {
	kind kind
	// name is the agent's own for the kind; empty for Copilot CLI.
	name    string
	session string
	// folder is the agent's working directory, or the root that it works in.
	folder string
	// turn is the agent's id of it; empty where it gives none.
	turn string
	// prompt and answer are without what is private.
	prompt string
	answer string
	// source is why a session started: startup, resume, clear or compact.
	source     string
	transcript string
	// files are those that a tool has changed, as the agent names them; none where it failed.
	files []string
	// root is the agent's root, else its folder.
	root string
	// subagent is its id, and subagentType its name, for example "Explore".
	subagent, subagentType string
}

// readEvent fails where the text is no JSON object or has a field of another type than it should.
func readEvent(in io.Reader) (event, error) {
	text, err := io.ReadAll(io.LimitReader(in, largestEvent+1))
	if err != nil || len(text) > largestEvent {
		return event{}, errBadEvent
	}
	var sent struct {
		Name            string   `json:"hook_event_name"`
		Session         string   `json:"session_id"`
		Conversation    string   `json:"conversation_id"`
		Folder          string   `json:"cwd"`
		Roots           []string `json:"workspace_roots"`
		Turn            string   `json:"turn_id"`
		Generation      string   `json:"generation_id"`
		Prompt          string   `json:"prompt"`
		LastMessage     string   `json:"last_assistant_message"`
		Response        string   `json:"prompt_response"`
		Text            string   `json:"text"`
		Source          string   `json:"source"`
		Transcript      string   `json:"transcript_path"`
		Subagent        string   `json:"agent_id"`
		SubagentType    string   `json:"agent_type"`
		AgentTranscript string   `json:"agent_transcript_path"`
		CopilotSession  string   `json:"sessionId"`
		CopilotPath     string   `json:"transcriptPath"`
		Tool            string   `json:"tool_name"`
		Edited          string   `json:"file_path"`

		ToolInput    json.RawMessage `json:"tool_input"`
		ToolResponse json.RawMessage `json:"tool_response"`
	}
	if json.Unmarshal(text, &sent) != nil {
		return event{}, errBadEvent
	}
	given := event{
		kind:         kinds[sent.Name],
		name:         sent.Name,
		session:      first(sent.Session, sent.Conversation, sent.CopilotSession),
		folder:       sent.Folder,
		turn:         first(sent.Turn, sent.Generation),
		prompt:       withoutPrivate(sent.Prompt),
		answer:       withoutPrivate(first(sent.LastMessage, sent.Response, sent.Text)),
		source:       sent.Source,
		transcript:   first(sent.Transcript, sent.CopilotPath),
		subagent:     sent.Subagent,
		subagentType: sent.SubagentType,
	}
	if len(sent.Roots) > 0 {
		given.folder = sent.Roots[0]
	}
	given.root = first(os.Getenv("CLAUDE_PROJECT_DIR"), given.folder)
	given.files = changedBy(sent.Tool, sent.ToolInput)
	if sent.Edited != "" {
		given.files = []string{sent.Edited}
	}
	if isFailure(sent.ToolResponse) {
		given.files = nil
	}
	if given.name == "" {
		given.kind = copilotKindOf(text)
	}
	if given.kind == subagentDone {
		given.transcript = sent.AgentTranscript
	}
	return given, nil
}

// copilotKindOf is what an event without a name tells. VS Code starts the hooks of Copilot CLI as well, and spells the
// name differently.
func copilotKindOf(text []byte) kind {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields["sessionId"] == nil || fields["hookEventName"] != nil {
		return other
	}
	for _, each := range copilotKinds {
		if fields[each.field] != nil {
			return each.kind
		}
	}
	return other
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// takesReply tells whether the agent reads what is printed; Copilot CLI drops it for a prompt.
func (e event) takesReply() bool { return e.name != "" || e.kind != prompted }

// reply is the JSON that has the agent put the text before the model.
func (e event) reply(text string) ([]byte, error) {
	switch e.name {
	case "":
		return json.Marshal(map[string]any{"additionalContext": text})
	case "sessionStart":
		return json.Marshal(map[string]any{"additional_context": text})
	case "beforeSubmitPrompt":
		return json.Marshal(map[string]any{"continue": true, "additional_context": text})
	}
	return json.Marshal(map[string]any{
		"hookSpecificOutput": map[string]string{"hookEventName": e.name, "additionalContext": text},
	})
}

// projectOf is HUMMOCK_PROJECT, else the name of the repository that holds the folder, else the folder's own. The
// agent's root comes before the folder, which changes as the agent moves about. Worktrees have their repository's name.
func projectOf(folder string, environment func(string) string) string {
	if named := environment("HUMMOCK_PROJECT"); named != "" {
		return named
	}
	root := first(environment("CLAUDE_PROJECT_DIR"), folder)
	if !filepath.IsAbs(root) {
		return ""
	}
	root = filepath.Clean(root)
	for at := root; ; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			root = at
			if info.Mode().IsRegular() {
				root = repositoryOf(at)
			}
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	name := []rune(strings.ToValidUTF8(filepath.Base(root), "?"))
	if root == filepath.Dir(root) {
		return ""
	}
	return string(name[:min(len(name), longestName)])
}

// repositoryOf is the folder of the repository whose worktree this is; the worktree itself where its .git says nothing
// of that, as a submodule's.
func repositoryOf(worktree string) string {
	file, err := os.Open(filepath.Join(worktree, ".git"))
	if err != nil {
		return worktree
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	path, isLink := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	before, _, isWorktree := strings.Cut(filepath.ToSlash(path), "/.git/worktrees/")
	if err != nil || !isLink || !isWorktree || !filepath.IsAbs(before) {
		return worktree
	}
	return filepath.FromSlash(before)
}
