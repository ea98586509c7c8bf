package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
)

const (
	// keptTime is how long a session is known after its last event.
	keptTime = 30 * 24 * time.Hour
	// largestLog is in bytes; the log before it is kept as well.
	largestLog = 256 << 10
	// mostShown is how many ids a recall can leave out.
	mostShown = 512
)

// home is the folder of what is kept between events: sessions, and hook.log.
type home string

// openHome makes the folder, for its owner alone: hummock/hook in XDG_STATE_HOME, else in ~/.local/state.
func openHome() (home, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(user, ".local", "state")
	}
	folder := filepath.Join(state, "hummock", "hook")
	return home(folder), os.MkdirAll(filepath.Join(folder, "sessions"), 0o700)
}

// record is what is known of a session.
type record struct {
	// Shown are the ids of memories that the model has in its context, oldest first.
	Shown []string `json:"shown,omitempty"`
	// Turns counts those that were stored and that the model has in its context.
	Turns uint32 `json:"turns,omitempty"`
	// StoredTurn is the newest turn that was stored, StoredDigest its texts'.
	StoredTurn   string `json:"stored_turn,omitempty"`
	StoredDigest string `json:"stored_digest,omitempty"`
	// Prompts counts prompts; Turn is the newest one's id and Prompt its text, for agents whose transcript cannot be read.
	Prompts uint32 `json:"prompts,omitempty"`
	Turn    string `json:"turn,omitempty"`
	Prompt  string `json:"prompt,omitempty"`
	// Transcript is the transcript's path, as the agent told it last.
	Transcript string `json:"transcript,omitempty"`
	// Files are those that were changed since the newest prompt, as tools name them.
	Files []string `json:"files,omitempty"`
}

// forgetContext notes that the model's context was emptied.
func (r *record) forgetContext() { r.Shown, r.Turns = nil, 0 }

func (r *record) show(ids []string) {
	r.Shown = append(r.Shown, ids...)
	r.Shown = r.Shown[max(0, len(r.Shown)-mostShown):]
}

func (h home) file(project, session string) string {
	return filepath.Join(string(h), "sessions", hashOf(project, session)+".json")
}

// read gives an empty record where there is none that can be read.
func (h home) read(project, session string) *record {
	known := &record{}
	text, err := os.ReadFile(h.file(project, session))
	if err != nil || json.Unmarshal(text, known) != nil {
		return &record{}
	}
	return known
}

// write replaces the record in one step, so that events that meet leave one of theirs whole.
func (h home) write(project, session string, known *record) error {
	text, err := json.Marshal(known)
	if err != nil {
		return errBadState
	}
	file, err := os.CreateTemp(filepath.Join(string(h), "sessions"), ".new-*") // its mode is 0600
	if err != nil {
		return errBadState
	}
	_, err = file.Write(text)
	if closed := file.Close(); err != nil || closed != nil || os.Rename(file.Name(), h.file(project, session)) != nil {
		_ = os.Remove(file.Name())
		return errBadState
	}
	return nil
}

// prune removes what no event has touched for so long.
func (h home) prune(now time.Time) {
	folder := filepath.Join(string(h), "sessions")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > keptTime {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

// log adds a line to hook.log. Above largestLog it begins anew, and the log before it becomes hook.log.1.
func (h home) log(line string) {
	path := filepath.Join(string(h), "hook.log")
	if info, err := os.Stat(path); err == nil && info.Size() > largestLog {
		_ = os.Rename(path, path+".1")
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteString(line + "\n")
}
