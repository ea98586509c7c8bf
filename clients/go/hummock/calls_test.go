package hummock

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	hummockv1 "hummock.dev/go/hummock/v1"
)

func note(content string) *hummockv1.LearnRequest {
	return &hummockv1.LearnRequest{Project: "p", Memories: []*hummockv1.Memory{{Content: content}}}
}

func TestARepeatedWriteCarriesOneRequestID(t *testing.T) {
	var ids []string
	client := clientOf(t, &faulty{
		learn: func(_ context.Context, request *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error) {
			ids = append(ids, request.GetRequestId())
			if len(ids) < 3 {
				return nil, status.Error(codes.Unavailable, "not yet")
			}
			if len(ids) == 3 { // as the core of a busy service ends what it has not read
				return nil, status.Error(codes.Canceled, "")
			}
			return &hummockv1.LearnResponse{Seq: 7}, nil
		},
	})
	request := note("a lamp on the quay")
	before := proto.Clone(request)
	reply, err := client.Learn(t.Context(), request)
	if err != nil || reply.GetSeq() != 7 {
		t.Fatalf("got %v, %v", reply, err)
	}
	if ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] || ids[2] != ids[3] {
		t.Errorf("the attempts carried %q", ids)
	}
	if !proto.Equal(request, before) {
		t.Error("the caller's request was changed: sent again it would not be another write")
	}
	if _, err := client.Learn(t.Context(), request); err != nil || ids[4] == ids[0] {
		t.Errorf("another write carried %s, %v", ids[4], err)
	}
}

func TestACallIsTriedOnceWhereRepeatsAreOff(t *testing.T) {
	attempts := 0
	client := clientOf(t, &faulty{
		learn: func(context.Context, *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error) {
			attempts++
			return nil, status.Error(codes.Unavailable, "not yet")
		},
	}, WithoutRepeats())
	if _, err := client.Learn(t.Context(), note("a lamp")); status.Code(err) != codes.Unavailable || attempts != 1 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

func TestALargeWriteIsRepeatedToo(t *testing.T) {
	attempts := 0
	client := clientOf(t, &faulty{
		learn: func(context.Context, *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error) {
			if attempts++; attempts < 2 {
				return nil, status.Error(codes.Unavailable, "not yet")
			}
			return &hummockv1.LearnResponse{}, nil
		},
	})
	if _, err := client.Learn(t.Context(), note(string(make([]byte, 3<<20)))); err != nil || attempts != 2 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

func TestEveryWriteThatMayBeRepeatedSaysWhoItIs(t *testing.T) {
	for name, each := range methods() {
		if each.isRead && each.requestID != nil {
			t.Errorf("%s is a read with a request_id", name)
		}
	}
	if len(methods()) < 40 {
		t.Errorf("only %d calls are known", len(methods()))
	}
}

func TestAContextWithoutADeadlineGetsTheClients(t *testing.T) {
	left := map[string]time.Duration{}
	noted := func(ctx context.Context, name string) {
		deadline, _ := ctx.Deadline()
		left[name] = time.Until(deadline)
	}
	client := clientOf(t, &faulty{
		learn: func(ctx context.Context, _ *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error) {
			noted(ctx, "write")
			return &hummockv1.LearnResponse{}, nil
		},
		render: func(ctx context.Context, _ *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			noted(ctx, "read")
			return &hummockv1.RenderResponse{}, nil
		},
	}, WithReadTimeout(time.Minute), WithWriteTimeout(time.Hour))
	if _, err := client.Learn(t.Context(), note("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Render(t.Context(), &hummockv1.RenderRequest{}); err != nil {
		t.Fatal(err)
	}
	if left["read"] > time.Minute || left["read"] < time.Second || left["write"] < time.Minute {
		t.Errorf("left were %v", left)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	if _, err := client.Render(ctx, &hummockv1.RenderRequest{}); err != nil || left["read"] < 2*time.Hour {
		t.Errorf("left were %v, %v", left, err)
	}
}

func TestATokenGoesWithEveryCall(t *testing.T) {
	service := &faulty{
		render: func(context.Context, *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			return &hummockv1.RenderResponse{}, nil
		},
	}
	client := clientOf(t, service, WithToken("secret"))
	if _, err := client.Render(t.Context(), &hummockv1.RenderRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := service.metadata[0].Get("authorization"); len(got) != 1 || got[0] != "Bearer secret" {
		t.Errorf("it carried %q", got)
	}
}

func TestAnErrorTellsAllThatTheServiceTold(t *testing.T) {
	told, err := status.New(codes.ResourceExhausted, "3 calls wait").WithDetails(
		&errdetails.ErrorInfo{Reason: "OVERLOADED", Domain: "hummock.dev", Metadata: map[string]string{"waiting": "3"}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "top_k", Description: "too many"}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
	)
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, &faulty{
		render: func(context.Context, *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			return nil, told.Err()
		},
	})
	_, err = client.Render(t.Context(), &hummockv1.RenderRequest{})
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %T", err)
	}
	if failed.Code != codes.ResourceExhausted || failed.Reason != "OVERLOADED" || failed.Error() != "OVERLOADED: 3 calls wait" ||
		failed.Metadata["waiting"] != "3" || failed.FieldViolations[0] != (FieldViolation{Field: "top_k", Rule: "too many"}) ||
		failed.RetryAfter != 1500*time.Millisecond || status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %+v", failed)
	}
	if inside := FromStatus(told.Proto()); inside.Reason != "OVERLOADED" {
		t.Errorf("inside a reply it is %+v", inside)
	}
	if FromStatus(nil) != nil {
		t.Error("no status is no error")
	}
}

func TestAContextThatIsOverIsFoundInTheError(t *testing.T) {
	client := clientOf(t, &faulty{
		render: func(ctx context.Context, _ *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}, WithReadTimeout(50*time.Millisecond))
	_, err := client.Render(t.Context(), &hummockv1.RenderRequest{})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || err.(*Error).Reason != "DEADLINE_EXCEEDED" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Render(ctx, &hummockv1.RenderRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
