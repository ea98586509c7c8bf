package hummock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"hummock.dev/go/hummock"
	hummockv1 "hummock.dev/go/hummock/v1"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	memory, err := hummock.New("") // HUMMOCK_TARGET, or 127.0.0.1:7420
	check(err)
	defer memory.Close()

	_, err = memory.Learn(ctx, &hummockv1.LearnRequest{Project: "shop", Memories: []*hummockv1.Memory{
		{Id: "dates", Content: "结算页的 parseDate 只接受 ISO 8601, other formats raise ValueError"},
	}})
	check(err)
	found, err := memory.Recall(ctx, &hummockv1.RecallRequest{Project: "shop", QueryText: "which formats does parse_date take?"})
	check(err)
	for _, hit := range found.GetHits() {
		fmt.Println(hit.GetMemory().GetId(), len(hit.GetMatchedTerms()))
	}
	// Output: dates 3
}

func ExampleNew() {
	authority, err := os.ReadFile("testdata/authority.pem")
	check(err)
	memory, err := hummock.New("memory.example:7420",
		hummock.WithRootCertificates(authority),
		hummock.WithToken(os.Getenv("SHOP_TOKEN")),
		hummock.WithReadTimeout(time.Second))
	check(err)
	defer memory.Close()
}

func ExampleError() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()

	_, err = memory.GetMemory(ctx, &hummockv1.GetMemoryRequest{Project: "never", Id: "m"})
	var failed *hummock.Error
	if errors.As(err, &failed) && failed.Reason == "PROJECT_NOT_FOUND" {
		fmt.Println(failed.Code, failed.Metadata["project"])
	}
	// Output: NotFound never
}

func ExampleClient_DeleteWhere() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()

	_, err = memory.Learn(ctx, &hummockv1.LearnRequest{Project: "scratch", Memories: []*hummockv1.Memory{
		{Content: "for this run alone", Metadata: map[string]string{"run": "12"}},
		{Content: "for the next one, too"},
	}})
	check(err)
	removed, err := memory.DeleteWhere(ctx, "scratch", &hummockv1.MemoryFilter{Metadata: map[string]string{"run": "12"}})
	check(err)
	fmt.Println(removed)
	gone, err := memory.DeleteProject(ctx, &hummockv1.DeleteProjectRequest{Project: "scratch"})
	check(err)
	fmt.Println(gone.GetMemoryCount())
	// Output:
	// 1
	// 1
}

func ExampleClient_WithMemory() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()
	memory.WarmUp("loan")

	_, err = memory.Learn(ctx, &hummockv1.LearnRequest{Project: "loan", Memories: []*hummockv1.Memory{
		{Content: "还款日是每月十五号"},
	}})
	check(err)
	messages := []hummock.Message{
		{Role: "system", Content: "You are patient."},
		{Role: "user", Content: "还款日是哪天？"},
	}
	messages = memory.WithMemory(ctx, "loan", messages, hummock.Within(5*time.Second))
	fmt.Println(strings.HasPrefix(messages[0].Content, "You are patient."), strings.Contains(messages[0].Content, "每月十五号"))
	// Output: true true
}

func ExampleClient_WatchMemories() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()

	request := &hummockv1.WatchMemoriesRequest{Project: "watched", AllowMissing: true}
	for told, err := range memory.WatchMemories(ctx, request) {
		check(err)
		if told.GetStart() != nil {
			_, err = memory.Learn(ctx, &hummockv1.LearnRequest{Project: "watched", Memories: []*hummockv1.Memory{
				{Id: "lamp", Content: "a lamp on the quay"},
			}})
			check(err)
		}
		for _, event := range told.GetEvents().GetEvents() {
			fmt.Println(event.GetChange(), event.GetId())
			return // hangs up
		}
	}
	// Output: MEMORY_EVENT_TYPE_CREATED lamp
}

func ExamplePages() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()

	_, err = memory.Learn(ctx, &hummockv1.LearnRequest{Project: "paged", Memories: []*hummockv1.Memory{
		{Id: "one", Content: "a lamp on the quay"},
		{Id: "two", Content: "二号灯"},
	}})
	check(err)
	request := &hummockv1.ListMemoriesRequest{Project: "paged", PageSize: 1}
	for page, err := range hummock.Pages(ctx, memory.ListMemories, request) {
		check(err)
		for _, each := range page.GetMemories() {
			fmt.Println(each.GetId())
		}
	}
	// Output:
	// one
	// two
}

func ExampleClient_LearnStream() {
	memory, err := hummock.New("")
	check(err)
	defer memory.Close()

	batches := func(yield func(*hummockv1.LearnStreamRequest) bool) {
		for _, content := range []string{"a lamp on the quay", "", "二号灯"} {
			batch := &hummockv1.LearnRequest{Project: "streamed", Memories: []*hummockv1.Memory{{Content: content}}}
			if !yield(&hummockv1.LearnStreamRequest{Batch: &hummockv1.LearnStreamRequest_Learn{Learn: batch}}) {
				return
			}
		}
	}
	for answer, err := range memory.LearnStream(ctx, batches) {
		check(err)
		if failed := hummock.FromStatus(answer.GetFailed()); failed != nil {
			fmt.Println(answer.GetBatchIndex(), failed.Reason, failed.FieldViolations[0].Field)
		}
	}
	// Output: 1 INVALID_REQUEST memories[0].content
}
