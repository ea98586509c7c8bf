// Package hummock is the client of Hummock, the memory of agents and IDE plugins.
//
// A [Client] has every call of the contract, with the messages of package hummockv1 (hummock.dev/go/hummock/v1). It
// adds deadlines where a context has none, repeats what is safe to repeat, sends a token, and fails with one error type,
// [*Error]. [Client.WithMemory] puts what is remembered into a system prompt, and never stands in a prompt's way.
package hummock

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	hummockv1 "hummock.dev/go/hummock/v1"
)

// Above the largest request; gRPC forgets what is larger as soon as it is sent, and could not repeat it. Its own default
// is 256 KiB, and a Learn may have 4 MiB.
const largestRepeatedBytes = 5 << 20

// Replies stay below 4 MiB, gRPC's default, unless a request asks for more (max_reply_bytes).
const largestReplyBytes = 16 << 20

// Client is a connection to the service; several goroutines may use it. It has the calls of all six services.
//
// A call whose context has no deadline is given up after 5 s if it reads and after 30 s if it writes; streams have none.
// Reads are repeated where the service is unavailable, up to four attempts. So are writes, which count once: one without
// a request_id is sent with a new one. The request itself is never changed. Every call fails with an [*Error].
type Client struct {
	hummockv1.ContextServiceClient
	hummockv1.MemoryServiceClient
	hummockv1.SessionServiceClient
	hummockv1.ProjectServiceClient
	hummockv1.LearningServiceClient
	hummockv1.AdminServiceClient

	connection *grpc.ClientConn
}

// New makes a client and begins to connect; it does not wait for the service.
//
// The target is `host:port` or `unix:///path`. Empty means HUMMOCK_TARGET, and without it [DefaultTarget]. It fails where
// the target or an option makes no sense, or where a token would go to another machine in the clear.
func New(target string, options ...Option) (*Client, error) {
	chosen := settings{readTimeout: readTimeout, writeTimeout: writeTimeout}
	for _, option := range options {
		option(&chosen)
	}
	at, err := parseTarget(target)
	if err != nil {
		return nil, err
	}
	chosen.at = at
	dial, err := chosen.accessTo(at)
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient(at.name(), append(dial, chosen.travel()...)...)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be called: %w", at, err)
	}
	connection.Connect()
	return &Client{
		ContextServiceClient:  hummockv1.NewContextServiceClient(connection),
		MemoryServiceClient:   hummockv1.NewMemoryServiceClient(connection),
		SessionServiceClient:  hummockv1.NewSessionServiceClient(connection),
		ProjectServiceClient:  hummockv1.NewProjectServiceClient(connection),
		LearningServiceClient: hummockv1.NewLearningServiceClient(connection),
		AdminServiceClient:    hummockv1.NewAdminServiceClient(connection),
		connection:            connection,
	}, nil
}

// Close ends the connection; calls that run fail.
func (c *Client) Close() error { return c.connection.Close() }

func (s settings) travel() []grpc.DialOption {
	// A service that restarts is found again within a second or two.
	again := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxRetryRPCBufferSize(largestRepeatedBytes), grpc.MaxCallRecvMsgSize(largestReplyBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute}),
		grpc.WithUnaryInterceptor(s.call),
		grpc.WithStreamInterceptor(s.openStream),
	}
	if !s.unrepeated {
		options = append(options, grpc.WithDefaultServiceConfig(serviceConfig()))
	}
	return options
}
