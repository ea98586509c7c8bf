package hummock

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hummockv1 "hummock.dev/go/hummock/v1"
)

func TestLeavingTheLoopHangsUp(t *testing.T) {
	over := make(chan error, 1)
	client := clientOf(t, &faulty{
		watch: func(stream grpc.ServerStreamingServer[hummockv1.WatchMemoriesResponse]) error {
			defer func() { over <- stream.Context().Err() }()
			if err := stream.Send(&hummockv1.WatchMemoriesResponse{Seq: 1}); err != nil {
				return err
			}
			<-stream.Context().Done()
			return nil
		},
	})
	for reply, err := range client.WatchMemories(t.Context(), &hummockv1.WatchMemoriesRequest{}) {
		if err != nil || reply.GetSeq() != 1 {
			t.Fatalf("got %v, %v", reply, err)
		}
		break
	}
	if <-over == nil {
		t.Error("the service still sends")
	}
}

func TestAStreamThatFailsSaysWhyLast(t *testing.T) {
	client := clientOf(t, &faulty{
		watch: func(stream grpc.ServerStreamingServer[hummockv1.WatchMemoriesResponse]) error {
			_ = stream.Send(&hummockv1.WatchMemoriesResponse{Seq: 1})
			return status.Error(codes.Unavailable, "it stops")
		},
	})
	var seqs []uint64
	var last error
	for reply, err := range client.WatchMemories(t.Context(), &hummockv1.WatchMemoriesRequest{}) {
		seqs, last = append(seqs, reply.GetSeq()), err
	}
	var failed *Error
	if !slices.Equal(seqs, []uint64{1, 0}) || !errors.As(last, &failed) || failed.Code != codes.Unavailable {
		t.Errorf("got %v, %v", seqs, last)
	}
}

func TestPagesEndWithTheLastAndWithWhatFails(t *testing.T) {
	var asked []string
	client := clientOf(t, &faulty{
		list: func(request *hummockv1.ListMemoriesRequest) (*hummockv1.ListMemoriesResponse, error) {
			asked = append(asked, request.GetProject()+request.GetPageToken())
			next := map[string]string{"": "1", "1": "2"}[request.GetPageToken()]
			if request.GetProject() == "broken" && next == "2" {
				return nil, status.Error(codes.Internal, "broken")
			}
			return &hummockv1.ListMemoriesResponse{NextPageToken: next}, nil
		},
	})
	request := &hummockv1.ListMemoriesRequest{Project: "whole"}
	for _, err := range Pages(t.Context(), client.ListMemories, request) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var last error
	for _, err := range Pages(t.Context(), client.ListMemories, &hummockv1.ListMemoriesRequest{Project: "broken"}) {
		last = err
	}
	if expected := []string{"whole", "whole1", "whole2", "broken", "broken1"}; !slices.Equal(asked, expected) {
		t.Errorf("asked for %q", asked)
	}
	if status.Code(last) != codes.Internal || request.GetPageToken() != "" {
		t.Errorf("it ended with %v, and the request asks for %q", last, request.GetPageToken())
	}
}
