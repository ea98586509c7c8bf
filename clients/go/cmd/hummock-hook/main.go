// Command hummock-hook makes a coding agent remember by itself. The agent starts it for each event and writes the event
// to its standard input as JSON; what it prints is put before the model. docs/hooks.md says how it is switched on.
//
// It never stands in an agent's way: whatever goes wrong, it prints nothing and ends with status 0, and hook.log says
// why in one line, without what was said.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hummock.dev/go/hummock"
)

const (
	// promptTime is how long a prompt may wait for what is remembered of it, from the start of the process.
	promptTime = 150 * time.Millisecond
	startTime  = 2 * time.Second
	storeTime  = 9 * time.Second
	// turnTime leaves time for a second turn where the service is too slow for the first.
	turnTime = 4 * time.Second
	// longestLife ends a process whose standard input stays open.
	longestLife = 15 * time.Second
)

func main() {
	time.AfterFunc(longestLife, func() { os.Exit(0) })
	run(time.Now(), os.Stdin, os.Stdout)
}

// run answers one event, and logs what became of it.
func run(began time.Time, in io.Reader, out io.Writer) {
	name, project, outcome := "-", "-", ""
	home, err := openHome()
	if err != nil {
		return
	}
	defer func() {
		if recover() != nil {
			outcome = "failed: a panic"
		}
		home.log(fmt.Sprintf("%s %s project=%q took=%s %s", began.UTC().Format(time.RFC3339), name, project,
			time.Since(began).Round(time.Millisecond), outcome))
	}()
	given, err := readEvent(in)
	if err != nil {
		outcome = "failed: " + reasonOf(err)
		return
	}
	name, project = given.kind.String(), projectOf(given.folder, os.Getenv)
	if outcome, err = answer(began, given, project, home, out); err != nil {
		outcome = strings.TrimSpace(outcome + " failed: " + reasonOf(err))
	}
}

// answer does what the event calls for and says in a few words what it did.
func answer(began time.Time, given event, project string, home home, out io.Writer) (string, error) {
	if given.kind == other || given.session == "" || project == "" {
		return "nothing to do", nil
	}
	limit := map[kind]time.Duration{prompted: promptTime, started: startTime, subagentStarted: startTime}[given.kind]
	if limit == 0 {
		limit = storeTime
	}
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(limit))
	defer cancel()
	client, err := hummock.New("", hummock.WithoutRepeats())
	if err != nil {
		return "", errBadTarget
	}
	defer client.Close()
	work := session{
		memory: client, project: project, given: given, record: home.read(project, given.session), out: out,
	}
	if given.kind == subagentStarted {
		work.record = &record{} // its context is its own: it has nothing of what the session was given
	}
	outcome, err := work.handle(ctx)
	switch given.kind {
	case started:
		home.prune(began)
	case subagentStarted, subagentDone: // they change nothing, and may meet another event of the session
		return outcome, err
	}
	return outcome, errors.Join(err, home.write(project, given.session, work.record))
}

var (
	errBadTarget = errors.New("HUMMOCK_TARGET or HUMMOCK_TOKEN cannot be used")
	errBadEvent  = errors.New("the event is no JSON object, or too large")
	errBadState  = errors.New("the state cannot be written")
)

// reasonOf is why something failed, in words that quote nothing of what was said.
func reasonOf(err error) string {
	var failed *hummock.Error
	if errors.As(err, &failed) {
		return failed.Reason
	}
	for _, known := range []error{errBadTarget, errBadEvent, errBadState} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
}
