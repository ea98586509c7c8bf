package hummock

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	hummockv1 "hummock.dev/go/hummock/v1"
)

// faulty is a service that does what a test has it do wrong. What works is tested against the real one.
type faulty struct {
	hummockv1.UnimplementedContextServiceServer
	hummockv1.UnimplementedMemoryServiceServer

	learn  func(context.Context, *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error)
	render func(context.Context, *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error)
	list   func(*hummockv1.ListMemoriesRequest) (*hummockv1.ListMemoriesResponse, error)
	remove func(*hummockv1.DeleteMemoriesRequest) (*hummockv1.DeleteMemoriesResponse, error)
	watch  func(grpc.ServerStreamingServer[hummockv1.WatchMemoriesResponse]) error

	mutex    sync.Mutex
	metadata []metadata.MD
}

func (f *faulty) Learn(ctx context.Context, request *hummockv1.LearnRequest) (*hummockv1.LearnResponse, error) {
	f.note(ctx)
	return f.learn(ctx, request)
}

func (f *faulty) Render(ctx context.Context, request *hummockv1.RenderRequest) (*hummockv1.RenderResponse, error) {
	f.note(ctx)
	return f.render(ctx, request)
}

func (f *faulty) ListMemories(
	_ context.Context, request *hummockv1.ListMemoriesRequest,
) (*hummockv1.ListMemoriesResponse, error) {
	return f.list(request)
}

func (f *faulty) DeleteMemories(
	_ context.Context, request *hummockv1.DeleteMemoriesRequest,
) (*hummockv1.DeleteMemoriesResponse, error) {
	return f.remove(request)
}

func (f *faulty) WatchMemories(
	_ *hummockv1.WatchMemoriesRequest, stream grpc.ServerStreamingServer[hummockv1.WatchMemoriesResponse],
) error {
	return f.watch(stream)
}

func (f *faulty) note(ctx context.Context) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	sent, _ := metadata.FromIncomingContext(ctx)
	f.metadata = append(f.metadata, sent)
}

// clientOf is a client of a faulty service, over a socket of this machine.
func clientOf(t *testing.T, service *faulty, options ...Option) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	hummockv1.RegisterContextServiceServer(server, service)
	hummockv1.RegisterMemoryServiceServer(server, service)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := New(listener.Addr().String(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
