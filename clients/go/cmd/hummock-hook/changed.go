package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostFiles of a turn are stored, as many as the contract takes.
	mostFiles = 256
	// longestPath is in characters.
	longestPath = 1024
)

// editors are tools of Claude Code and of Gemini CLI that change the one file that they name.
var editors = []string{"Edit", "MultiEdit", "Write", "NotebookEdit", "write_file", "replace"}

// patched are the lines of a patch of Codex that name a file.
var patched = regexp.MustCompile(`(?m)^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$`)

// changedBy are the paths of the files that a call changes, as it names them: none for tools that change no file or are not
// known. clients/python/hummock_tools/changed_files.py has the same rules.
func changedBy(tool string, given json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(given, &fields) != nil {
		fields = map[string]json.RawMessage{"patch": given}
	}
	var found []string
	switch {
	case tool == "apply_patch":
		for _, name := range []string{"command", "input", "patch"} {
			for _, match := range patched.FindAllStringSubmatch(patchIn(fields[name]), -1) {
				found = append(found, match[1])
			}
		}
	case slices.Contains(editors, tool):
		for _, name := range []string{"file_path", "notebook_path"} {
			var path string
			if json.Unmarshal(fields[name], &path) == nil && path != "" {
				found = append(found, path)
			}
		}
	}
	return found
}

// isFailure tells whether a tool's response in an event says that the call failed: error of Gemini CLI, success of Claude Code.
func isFailure(response json.RawMessage) bool {
	var said struct {
		Error   any `json:"error"`
		Success any `json:"success"`
	}
	return json.Unmarshal(response, &said) == nil && (said.Error != nil || said.Success == false)
}

// edit is a file that a tool call is to change, as the call names it.
type edit struct{ call, path string }

// changedIn are the edits of the tool calls in a message of Claude Code.
func changedIn(content json.RawMessage) []edit {
	var blocks []struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	var found []edit
	for _, block := range blocks {
		if block.Type != "tool_use" {
			continue
		}
		for _, path := range changedBy(block.Name, block.Input) {
			found = append(found, edit{block.ID, path})
		}
	}
	return found
}

// failedIn are the ids of the tool calls that failed or that the user refused, by the results in a message of Claude Code.
func failedIn(content json.RawMessage) []string {
	var results []struct {
		Type   string `json:"type"`
		Call   string `json:"tool_use_id"`
		Failed any    `json:"is_error"`
	}
	if !bytes.Contains(content, []byte("is_error")) || json.Unmarshal(content, &results) != nil {
		return nil
	}
	var failed []string
	for _, result := range results {
		if result.Type == "tool_result" && result.Failed == true && result.Call != "" {
			failed = append(failed, result.Call)
		}
	}
	return failed
}

// patchIn is a text, or the texts of a list.
func patchIn(value json.RawMessage) string {
	var text string
	var parts []any
	if json.Unmarshal(value, &text) == nil || json.Unmarshal(value, &parts) != nil {
		return text
	}
	for _, part := range parts {
		if line, isText := part.(string); isText {
			text += line + "\n"
		}
	}
	return text
}

// belowRoot are the paths below the root of the repository around the folder, or else below it, each once and at most
// mostFiles. Relative ones begin at the folder; those outside of the root are left out.
func belowRoot(folder string, paths []string) []string {
	if !filepath.IsAbs(folder) {
		return nil
	}
	root := rootOf(folder)
	var found []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		inside, err := filepath.Rel(root, path)
		inside = filepath.ToSlash(inside)
		first, _, _ := strings.Cut(inside, "/")
		if err != nil || first == "." || first == ".." || isUnfit(inside) || slices.Contains(found, inside) {
			continue
		}
		found = append(found, inside)
	}
	return found[:min(len(found), mostFiles)]
}

func isUnfit(path string) bool {
	return utf8.RuneCountInString(path) > longestPath || strings.Contains(path, `\`) ||
		strings.HasPrefix(path[1:], ":") || strings.ContainsFunc(path, func(each rune) bool { return !unicode.IsPrint(each) })
}

// rootOf is the nearest folder above that holds .git, a worktree's own too; the folder itself without one.
func rootOf(folder string) string {
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

// distinct are the texts, each once, in their order.
func distinct(texts []string) []string {
	var found []string
	for _, text := range texts {
		if !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}
