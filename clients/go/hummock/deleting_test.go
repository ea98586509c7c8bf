package hummock

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hummockv1 "hummock.dev/go/hummock/v1"
)

func TestWhatWasRemovedIsSaidWhereItFailsOnTheWay(t *testing.T) {
	ids := map[string]bool{}
	client := clientOf(t, &faulty{
		remove: func(request *hummockv1.DeleteMemoriesRequest) (*hummockv1.DeleteMemoriesResponse, error) {
			ids[request.GetRequestId()] = true
			if len(ids) == 3 {
				return nil, status.Error(codes.ResourceExhausted, "the disk is full")
			}
			return &hummockv1.DeleteMemoriesResponse{DeletedCount: 512, RemainingCount: 9}, nil
		},
	})
	removed, err := client.DeleteWhere(context.Background(), "p", &hummockv1.MemoryFilter{Tags: []string{"old"}})
	var failed *Error
	if removed != 1024 || !errors.As(err, &failed) || failed.Code != codes.ResourceExhausted {
		t.Errorf("got %d, %v", removed, err)
	}
}
