package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"

	"hummock.dev/go/hummock"
	hummockv1 "hummock.dev/go/hummock/v1"
)

type step struct {
	Call       string
	Request    any
	Requests   []any
	Reply      any
	Replies    []any
	Then       string
	Error      map[string]any
	Meanwhile  *step
	WithMemory *prompt `json:"with_memory"`
	Unchanged  bool
	Messages   any
	Delete     *selection `json:"delete_where"`
	Removed    int
	Save       map[string]string

	DeadlineMS    int64 `json:"deadline_ms"`
	CancelAfterMS int64 `json:"cancel_after_ms"`
	WithinMS      int64 `json:"within_ms"`
}

type prompt struct {
	Project  string
	Messages []hummock.Message
	BudgetMS int64 `json:"budget_ms"`
}

type selection struct {
	Project string
	Filter  any
}

func (s step) run(client *hummock.Client, saved names) error {
	if s.WithMemory != nil {
		return s.remember(client, saved)
	}
	if s.Delete != nil {
		return s.remove(client, saved)
	}
	ctx, cancel := s.context()
	defer cancel()
	replies, err := s.call(ctx, client, saved)
	if s.Error != nil {
		return s.fails(err, saved)
	}
	if err != nil {
		return err
	}
	if s.Replies != nil {
		return s.check(any(s.Replies), any(replies), saved)
	}
	if len(replies) != 1 {
		return fmt.Errorf("%d replies came; one was expected", len(replies))
	}
	expected := s.Reply
	if expected == nil {
		expected = map[string]any{}
	}
	return s.check(expected, replies[0], saved)
}

func (s step) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if s.CancelAfterMS > 0 {
		time.AfterFunc(time.Duration(s.CancelAfterMS)*time.Millisecond, cancel)
	}
	if s.DeadlineMS > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.DeadlineMS)*time.Millisecond)
	}
	return ctx, cancel
}

func (s step) check(expected, got any, saved names) error {
	if err := match(saved.fill(expected), got, ""); err != nil {
		return err
	}
	for name, pointer := range s.Save {
		value, err := valueAt(got, pointer)
		if err != nil {
			return err
		}
		saved[name] = value
	}
	return nil
}

func (s step) remember(client *hummock.Client, saved names) error {
	given := make([]hummock.Message, len(s.WithMemory.Messages))
	for at, each := range s.WithMemory.Messages {
		given[at] = hummock.Message{Role: each.Role, Content: saved.text(each.Content)}
	}
	var options []hummock.MemoryOption
	if s.WithMemory.BudgetMS > 0 {
		options = append(options, hummock.Within(time.Duration(s.WithMemory.BudgetMS)*time.Millisecond))
	}
	got := client.WithMemory(context.Background(), saved.text(s.WithMemory.Project), given, options...)
	if s.Unchanged {
		if len(got) != len(given) || &got[0] != &given[0] {
			return fmt.Errorf("the messages were changed: %v", got)
		}
		return nil
	}
	asJSON, err := jsonOf(got)
	if err != nil {
		return err
	}
	return match(saved.fill(s.Messages), asJSON, "")
}

func (s step) remove(client *hummock.Client, saved names) error {
	where, err := message(reflect.TypeFor[*hummockv1.MemoryFilter](), saved.fill(s.Delete.Filter))
	if err != nil {
		return err
	}
	filter := where.Interface().(*hummockv1.MemoryFilter)
	removed, err := client.DeleteWhere(context.Background(), saved.text(s.Delete.Project), filter)
	if err == nil && removed != s.Removed {
		err = fmt.Errorf("expected %d to be removed, got %d", s.Removed, removed)
	}
	return err
}

// fails checks the error that a step expects.
func (s step) fails(err error, saved names) error {
	var failed *hummock.Error
	if !errors.As(err, &failed) {
		return fmt.Errorf("expected the error %v, got %v", s.Error, err)
	}
	fields := []string{}
	for _, each := range failed.FieldViolations {
		fields = append(fields, each.Field)
	}
	got, err := jsonOf(map[string]any{
		"code":        code.Code(failed.Code).String(),
		"reason":      failed.Reason,
		"message":     failed.Message,
		"fields":      fields,
		"metadata":    failed.Metadata,
		"retry_after": failed.RetryAfter > 0,
	})
	if err != nil {
		return err
	}
	if err := match(saved.fill(s.Error), got, "error"); err != nil {
		return fmt.Errorf("%w; the message: %s", err, failed.Message)
	}
	return nil
}

func jsonOf(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var parsed any
	return parsed, json.Unmarshal(text, &parsed)
}

// goldenFolder is the name under which the folder of golden files is known; no case can use it.
const goldenFolder = "\x00golden"

// names are what `${name}` stands for.
type names map[string]any

func (n names) text(of string) string {
	for name, value := range n {
		of = strings.ReplaceAll(of, "${"+name+"}", plain(value))
	}
	return of
}

func plain(value any) string {
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// fill gives the value with its names and repetitions written out.
func (n names) fill(value any) any {
	switch value := value.(type) {
	case string:
		return n.text(value)
	case []any:
		filled := make([]any, len(value))
		for at, each := range value {
			filled[at] = n.fill(each)
		}
		return filled
	case map[string]any:
		if parts, repeats := value["$repeat"].([]any); repeats {
			return strings.Repeat(n.text(parts[0].(string)), int(parts[1].(float64)))
		}
		if parts, several := value["$each"].([]any); several {
			return n.each(int(parts[0].(float64)), parts[1])
		}
		if file, golden := value["$golden"].(string); golden {
			return map[string]any{"$golden": plain(n[goldenFolder]) + "/" + file}
		}
		filled := make(map[string]any, len(value))
		for key, each := range value {
			filled[key] = n.fill(each)
		}
		return filled
	}
	return value
}

// each is the value so many times, with `${n}` counting from 1.
func (n names) each(times int, value any) []any {
	numbered := maps.Clone(n)
	filled := make([]any, times)
	for at := range filled {
		numbered["n"] = float64(at + 1)
		filled[at] = numbered.fill(value)
	}
	return filled
}

// valueAt is what a JSON pointer names.
func valueAt(value any, pointer string) (any, error) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch within := value.(type) {
		case map[string]any:
			value = within[part]
		case []any:
			at, err := strconv.Atoi(part)
			if err != nil || at >= len(within) {
				return nil, fmt.Errorf("%s names nothing", pointer)
			}
			value = within[at]
		default:
			return nil, fmt.Errorf("%s names nothing", pointer)
		}
	}
	if value == nil {
		return nil, fmt.Errorf("%s names nothing", pointer)
	}
	return value, nil
}
