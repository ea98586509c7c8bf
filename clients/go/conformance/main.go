// Command conformance runs the cases of tests/conformance through this client, and writes a line of JSON a case.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"hummock.dev/go/hummock"
)

// told is the file that HUMMOCK_CONFORMANCE names.
type told struct {
	Cases   string
	CA      string
	Token   string
	Targets map[string]string
}

type testCase struct {
	Name   string
	Server string
	Client struct {
		Token      string
		TLS        bool
		DeadlineMS int `json:"deadline_ms"`
	}
	Steps []step
}

type verdict struct {
	Case   string `json:"case"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	var where told
	if err := read(os.Getenv("HUMMOCK_CONFORMANCE"), &where); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(where.Cases, "*.json"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	lines := json.NewEncoder(os.Stdout)
	for _, file := range files {
		var cases []testCase
		if err := read(file, &cases); err != nil {
			return err
		}
		for _, each := range cases {
			said := verdict{Case: each.Name, OK: true}
			if err := each.run(where); err != nil {
				said.OK, said.Detail = false, err.Error()
			}
			if err := lines.Encode(said); err != nil {
				return err
			}
		}
	}
	return nil
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c testCase) run(where told) error {
	client, err := c.client(where)
	if err != nil {
		return err
	}
	defer client.Close()
	golden := filepath.Join(filepath.Dir(where.Cases), "golden")
	saved := names{"project": "conformance-" + uuid.NewString(), goldenFolder: golden}
	for at, each := range c.Steps {
		started := time.Now()
		if err := each.run(client, saved); err != nil {
			return fmt.Errorf("step %d: %w", at+1, err)
		}
		took := time.Since(started).Milliseconds()
		if each.WithinMS > 0 && took > each.WithinMS {
			return fmt.Errorf("step %d: took %d ms; at most %d were expected", at+1, took, each.WithinMS)
		}
	}
	return nil
}

func (c testCase) client(where told) (*hummock.Client, error) {
	var options []hummock.Option
	if c.Client.Token == "good" {
		options = append(options, hummock.WithToken(where.Token))
	} else if c.Client.Token != "" {
		options = append(options, hummock.WithToken(c.Client.Token))
	}
	if c.Client.TLS {
		authorities, err := os.ReadFile(where.CA)
		if err != nil {
			return nil, err
		}
		options = append(options, hummock.WithRootCertificates(authorities))
	}
	if limit := time.Duration(c.Client.DeadlineMS) * time.Millisecond; limit > 0 {
		options = append(options, hummock.WithReadTimeout(limit), hummock.WithWriteTimeout(limit))
	}
	return hummock.New(where.Targets[cmp.Or(c.Server, "main")], options...)
}
