package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// largestTail is how much of a transcript's end is read, in bytes. Turns that begin before it are left out.
	largestTail = 16 << 20
	// longestSide of a turn is stored, in bytes: what comes behind it is a listing more often than an answer.
	longestSide = 32 << 10
	cutMark     = "\n… (cut)"
)

// turn is what the user said and what the agent said to it, and when, as the transcript has it: empty where it does not say.
type turn struct {
	id, user, agent     string
	userTime, agentTime string
	// edits are what the agent's tools were to change; files are those of calls that did not fail, as the calls name them.
	edits []edit
	files []string
}

// digest tells two states of one turn apart.
func (t turn) digest() string {
	return hashOf(append([]string{t.user, t.agent}, distinct(t.files)...)...)
}

// hashOf is a name of 32 hexadecimal digits for these texts.
func hashOf(texts ...string) string {
	hash := sha256.New()
	for _, text := range texts {
		hash.Write([]byte(text))
		hash.Write([]byte{0})
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// readTurns are the turns in the end of a transcript of Claude Code or Copilot CLI, oldest first; the last may have no
// answer yet. None where the file is missing, is no regular file, or has another format. What subagents said in between
// is left out, unless the transcript is a subagent's own, and so is what is private. A prompt of that alone begins a turn
// without a prompt, so that its answer belongs to no other.
func readTurns(path string, ofSubagent bool) []turn {
	text := tailOf(path)
	var turns []turn
	failed := map[string]bool{}
	for line := range bytes.Lines(text) {
		said := readLine(line, ofSubagent)
		if len(turns) > 0 {
			turns[len(turns)-1].edits = append(turns[len(turns)-1].edits, said.edits...)
		}
		for _, call := range said.failed {
			failed[call] = true
		}
		switch {
		case said.text == "":
		case said.isUser:
			turns = append(turns, turn{id: said.id, user: withoutPrivate(said.text), userTime: said.time})
		case len(turns) > 0:
			last := &turns[len(turns)-1]
			if last.agent == "" {
				last.agentTime = said.time
			}
			last.agent = joined(last.agent, withoutPrivate(said.text))
		}
	}
	for i := range turns {
		for _, each := range turns[i].edits {
			if !failed[each.call] {
				turns[i].files = append(turns[i].files, each.path)
			}
		}
	}
	return turns
}

func tailOf(path string) []byte {
	// A named pipe would block whoever opens it.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if _, err := file.Seek(-largestTail, io.SeekEnd); err != nil {
		_, _ = file.Seek(0, io.SeekStart) // it is shorter than that
	}
	text, err := io.ReadAll(io.LimitReader(file, largestTail))
	if err != nil {
		return nil
	}
	return text
}

// types are those of lines with messages, one of which stands in each; parsing the others would take most of the time.
var types = [][]byte{[]byte(`"user"`), []byte(`"assistant"`), []byte(`"user.message"`), []byte(`"assistant.message"`)}

// message is what a line of a transcript says.
type message struct {
	id, text, time string
	isUser         bool
	edits          []edit
	// failed are the ids of calls whose result it brings.
	failed []string
}

// readLine is what a line of a transcript says, in prose: empty for tools, their results, thoughts, and whatever the
// agent itself puts between.
func readLine(line []byte, ofSubagent bool) message {
	var entry struct {
		Type             string `json:"type"`
		ID               string `json:"uuid"`
		IsMeta           bool   `json:"isMeta"`
		IsSidechain      bool   `json:"isSidechain"`
		IsCompactSummary bool   `json:"isCompactSummary"`
		Time             any    `json:"timestamp"`
		Message          struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if !slices.ContainsFunc(types, func(each []byte) bool { return bytes.Contains(line, each) }) {
		return message{}
	}
	if json.Unmarshal(line, &entry) != nil || entry.IsMeta || entry.IsCompactSummary || entry.IsSidechain && !ofSubagent {
		return message{}
	}
	at, _ := entry.Time.(string)
	switch entry.Type {
	case "user":
		content := entry.Message.Content
		return message{id: entry.ID, text: ownWords(textOf(content)), time: at, isUser: true, failed: failedIn(content)}
	case "assistant":
		content := entry.Message.Content
		return message{id: entry.ID, text: textOf(content), time: at, edits: changedIn(content)}
	case "user.message", "assistant.message":
		id, text := readCopilotLine(line)
		return message{id: id, text: text, time: at, isUser: entry.Type == "user.message"}
	}
	return message{}
}

// pastTime is a time in RFC 3339 that has come; nil where the text is none, or is ahead.
func pastTime(text string, now time.Time) *timestamppb.Timestamp {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.After(now) || at.Unix() < 0 {
		return nil
	}
	return timestamppb.New(at)
}

// readCopilotLine is the id and the prose of an event of Copilot CLI: empty for subagents, skills and its own prompts to
// go on.
func readCopilotLine(line []byte) (id, said string) {
	var entry struct {
		ID       string `json:"id"`
		Subagent string `json:"agentId"`
		Data     struct {
			Content    string `json:"content"`
			Source     string `json:"source"`
			ParentCall string `json:"parentToolCallId"`
			IsGoingOn  bool   `json:"isAutopilotContinuation"`
		} `json:"data"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Subagent != "" || entry.Data.ParentCall != "" ||
		entry.Data.IsGoingOn || entry.Data.Source != "" && entry.Data.Source != "user" {
		return "", ""
	}
	return entry.ID, strings.TrimSpace(entry.Data.Content)
}

// textOf is a message's content as text: all of it, or its blocks of text.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return strings.TrimSpace(text)
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	for _, block := range blocks {
		if block.Type == "text" {
			text = joined(text, strings.TrimSpace(block.Text))
		}
	}
	return text
}

// noise is how a user's message begins that the user did not write: output of commands, and notices.
var noise = []string{"<local-command-", "<bash-", "<task-notification>", "[Request interrupted"}

// ownWords is what the user typed of a message.
func ownWords(text string) string {
	for {
		before, rest, found := strings.Cut(text, "<system-reminder>")
		if !found {
			break
		}
		_, after, _ := strings.Cut(rest, "</system-reminder>")
		text = strings.TrimSpace(before + after)
	}
	if strings.HasPrefix(text, "<command-") {
		return strings.TrimSpace(between(text, "<command-name>", "</command-name>") + " " +
			between(text, "<command-args>", "</command-args>"))
	}
	for _, prefix := range noise {
		if strings.HasPrefix(text, prefix) {
			return ""
		}
	}
	return text
}

func between(text, start, end string) string {
	_, text, _ = strings.Cut(text, start)
	text, _, found := strings.Cut(text, end)
	if !found {
		return ""
	}
	return text
}

func joined(text, more string) string {
	if text == "" || more == "" {
		return text + more
	}
	return text + "\n\n" + more
}

// withEnd is the text with what was said last, which a transcript may not have yet when its turn ends.
func withEnd(text, last string) string {
	if strings.HasSuffix(text, last) {
		return text
	}
	return joined(text, last)
}

// cut is the beginning of a text that is too long for the service, and a mark.
func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	end := bytes - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutMark
}

// firstRunes and lastRunes are so many characters of a text.
func firstRunes(text string, count int) string {
	if len(text) <= count {
		return text
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), count)])
}

func lastRunes(text string, count int) string {
	if len(text) <= count {
		return text
	}
	runes := []rune(text)
	return string(runes[max(0, len(runes)-count):])
}
