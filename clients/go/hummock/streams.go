package hummock

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hummockv1 "hummock.dev/go/hummock/v1"
)

// Replies are what a stream brings, in order. Where it fails, the last pair has the [*Error] and no reply. Leaving the
// loop hangs up; ranging over it again calls again.
type Replies[Reply any] = iter.Seq2[*Reply, error]

// WatchMemories tells what becomes of a project's memories, without end. To go on where it failed, watch again with the
// seq of the last reply as after_seq.
func (c *Client) WatchMemories(
	ctx context.Context, request *hummockv1.WatchMemoriesRequest, options ...grpc.CallOption,
) Replies[hummockv1.WatchMemoriesResponse] {
	return asked(ctx, c.MemoryServiceClient.WatchMemories, request, options)
}

// MapMemories gives all memories of a project, or those with the ids of the request, as points of a plane: first a reply that
// counts them, then columns.
func (c *Client) MapMemories(
	ctx context.Context, request *hummockv1.MapMemoriesRequest, options ...grpc.CallOption,
) Replies[hummockv1.MapMemoriesResponse] {
	return asked(ctx, c.MemoryServiceClient.MapMemories, request, options)
}

// WatchMessages tells what is said in a session, without end. To go on where it failed, watch again with the last
// message's position as after_position.
func (c *Client) WatchMessages(
	ctx context.Context, request *hummockv1.WatchMessagesRequest, options ...grpc.CallOption,
) Replies[hummockv1.WatchMessagesResponse] {
	return asked(ctx, c.SessionServiceClient.WatchMessages, request, options)
}

// WatchProject tells how far a project's embedding is, without end.
func (c *Client) WatchProject(
	ctx context.Context, request *hummockv1.WatchProjectRequest, options ...grpc.CallOption,
) Replies[hummockv1.WatchProjectResponse] {
	return asked(ctx, c.ProjectServiceClient.WatchProject, request, options)
}

// WatchLearningState tells what a project has learnt, without end. To go on where it failed, watch again with the newest
// state_token.
func (c *Client) WatchLearningState(
	ctx context.Context, request *hummockv1.WatchLearningStateRequest, options ...grpc.CallOption,
) Replies[hummockv1.WatchLearningStateResponse] {
	return asked(ctx, c.LearningServiceClient.WatchLearningState, request, options)
}

// LearnKeywords has entries read for keywords, and tells what became of each. It goes on when nobody listens; asking
// again joins it.
func (c *Client) LearnKeywords(
	ctx context.Context, request *hummockv1.LearnKeywordsRequest, options ...grpc.CallOption,
) Replies[hummockv1.LearnKeywordsResponse] {
	return asked(ctx, c.LearningServiceClient.LearnKeywords, request, options)
}

// ExportProject gives out all of a project as records, in the order in which they make it again.
func (c *Client) ExportProject(
	ctx context.Context, request *hummockv1.ExportProjectRequest, options ...grpc.CallOption,
) Replies[hummockv1.ExportProjectResponse] {
	return asked(ctx, c.ProjectServiceClient.ExportProject, request, options)
}

// LearnStream stores batches of memories, and turns, and tells in order what became of each; what fails ends nothing
// ([FromStatus] reads why). The batches are read by another goroutine, until the stream ends.
func (c *Client) LearnStream(
	ctx context.Context, batches iter.Seq[*hummockv1.LearnStreamRequest], options ...grpc.CallOption,
) Replies[hummockv1.LearnStreamResponse] {
	return exchanged(ctx, c.ContextServiceClient.LearnStream, batches, options)
}

// ImportProject takes in records, and tells in order what became of those of each message. The messages are read by
// another goroutine, until the stream ends. What is cut off may be done again.
func (c *Client) ImportProject(
	ctx context.Context, messages iter.Seq[*hummockv1.ImportProjectRequest], options ...grpc.CallOption,
) Replies[hummockv1.ImportProjectResponse] {
	return exchanged(ctx, c.ProjectServiceClient.ImportProject, messages, options)
}

// Pages are all pages of a list, from the one that the request names; each is fetched when it is needed.
//
//	for page, err := range hummock.Pages(ctx, client.ListMemories, &hummockv1.ListMemoriesRequest{Project: "shop"}) { … }
func Pages[Request proto.Message, Page interface{ GetNextPageToken() string }](
	ctx context.Context, list func(context.Context, Request, ...grpc.CallOption) (Page, error), request Request,
) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		asking := shallow(request.ProtoReflect())
		token := asking.Descriptor().Fields().ByName("page_token")
		for {
			page, err := list(ctx, asking.Interface().(Request))
			if !yield(page, err) || err != nil || page.GetNextPageToken() == "" {
				return
			}
			asking.Set(token, protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}

// asked is the stream that answers one request.
func asked[Request, Reply any](
	ctx context.Context,
	open func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Reply], error),
	request *Request, options []grpc.CallOption,
) Replies[Reply] {
	return func(yield func(*Reply, error) bool) {
		ctx, hangUp := context.WithCancel(ctx)
		defer hangUp()
		stream, err := open(ctx, request, options...)
		if err != nil {
			yield(nil, err)
			return
		}
		receive(stream.Recv, yield)
	}
}

// exchanged is the stream that answers many.
func exchanged[Request, Reply any](
	ctx context.Context,
	open func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Request, Reply], error),
	requests iter.Seq[*Request], options []grpc.CallOption,
) Replies[Reply] {
	return func(yield func(*Reply, error) bool) {
		ctx, hangUp := context.WithCancel(ctx)
		defer hangUp()
		stream, err := open(ctx, options...)
		if err != nil {
			yield(nil, err)
			return
		}
		go send(stream, requests)
		receive(stream.Recv, yield)
	}
}

// send ends with the stream; why that ended is what the replies say.
func send[Request, Reply any](stream grpc.BidiStreamingClient[Request, Reply], requests iter.Seq[*Request]) {
	for request := range requests {
		if stream.Send(request) != nil {
			return
		}
	}
	_ = stream.CloseSend()
}

func receive[Reply any](next func() (*Reply, error), yield func(*Reply, error) bool) {
	for {
		reply, err := next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(reply, nil) {
			return
		}
	}
}

// told is a stream whose failures are an *Error.
type told struct {
	grpc.ClientStream
	at target
}

func (t told) RecvMsg(message any) error { return errorOf(t.ClientStream.RecvMsg(message), t.at) }

func (t told) SendMsg(message any) error { return errorOf(t.ClientStream.SendMsg(message), t.at) }

// openStream is the interceptor of streams.
func (s settings) openStream(
	ctx context.Context, description *grpc.StreamDesc, connection *grpc.ClientConn, name string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, connection, name, options...)
	if err != nil {
		return nil, errorOf(err, s.at)
	}
	return told{stream, s.at}, nil
}
