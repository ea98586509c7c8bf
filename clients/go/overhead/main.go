// Command overhead times one read of a memory through the generated stub and through the client, in turns, and writes
// the seconds of each as JSON; bench/clients.py runs it.
//
//	go run ./overhead TARGET PROJECT ID CALLS
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"hummock.dev/go/hummock"
	hummockv1 "hummock.dev/go/hummock/v1"
)

// warmUpCalls of each come before those that count.
const warmUpCalls = 500

type times struct {
	RawS    []float64 `json:"raw_s"`
	FacadeS []float64 `json:"facade_s"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("expected TARGET PROJECT ID CALLS, got %q", arguments)
	}
	calls, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(arguments[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client, err := hummock.New(arguments[0])
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := inTurns(hummockv1.NewMemoryServiceClient(connection), client.MemoryServiceClient, arguments[1], arguments[2], calls)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func inTurns(raw, facade hummockv1.MemoryServiceClient, project, id string, calls int) (times, error) {
	var found times
	for turn := range warmUpCalls + calls {
		// Whoever comes second finds warm caches, so they take turns in that, too.
		pair := []hummockv1.MemoryServiceClient{raw, facade}
		if turn%2 == 1 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		for _, each := range pair {
			took, err := seconds(each, project, id)
			if err != nil {
				return found, err
			}
			if turn < warmUpCalls {
				continue
			}
			if each == raw {
				found.RawS = append(found.RawS, took)
			} else {
				found.FacadeS = append(found.FacadeS, took)
			}
		}
	}
	return found, nil
}

func seconds(service hummockv1.MemoryServiceClient, project, id string) (float64, error) {
	began := time.Now()
	_, err := service.GetMemory(context.Background(), &hummockv1.GetMemoryRequest{Project: project, Id: id})
	return time.Since(began).Seconds(), err
}
