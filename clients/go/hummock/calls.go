package hummock

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	hummockv1 "hummock.dev/go/hummock/v1"
)

// method is what a call's name says of it.
type method struct {
	isRead bool
	// requestID is the field that makes a write count once; nil where there is none.
	requestID protoreflect.FieldDescriptor
}

// methods are all calls of the contract by their names, for example "/hummock.v1.ContextService/Recall".
var methods = sync.OnceValue(func() map[string]method {
	found := map[string]method{}
	for _, file := range []protoreflect.FileDescriptor{
		hummockv1.File_hummock_v1_context_service_proto,
		hummockv1.File_hummock_v1_memory_service_proto,
		hummockv1.File_hummock_v1_session_service_proto,
		hummockv1.File_hummock_v1_project_service_proto,
		hummockv1.File_hummock_v1_learning_service_proto,
		hummockv1.File_hummock_v1_admin_service_proto,
	} {
		service := file.Services().Get(0)
		for at := range service.Methods().Len() {
			each := service.Methods().Get(at)
			options := each.Options().(*descriptorpb.MethodOptions)
			found[fmt.Sprintf("/%s/%s", service.FullName(), each.Name())] = method{
				isRead:    options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
				requestID: each.Input().Fields().ByName("request_id"),
			}
		}
	}
	return found
})

// call is the interceptor of calls with one reply.
func (s settings) call(
	ctx context.Context, name string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	called := methods()[name]
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout(called))
		defer cancel()
	}
	return errorOf(invoke(ctx, name, called.named(request.(proto.Message)), reply, connection, options...), s.at)
}

func (s settings) timeout(called method) time.Duration {
	if called.isRead {
		return s.readTimeout
	}
	return s.writeTimeout
}

// named is the request; of a write without a request_id a copy that has one. The caller's own stays as it is, because
// sent again it is another write.
func (m method) named(request proto.Message) proto.Message {
	if m.requestID == nil || request.ProtoReflect().Has(m.requestID) {
		return request
	}
	named := shallow(request.ProtoReflect())
	named.Set(m.requestID, protoreflect.ValueOfString(uuid.NewString()))
	return named.Interface()
}

// shallow is a copy that shares the messages, lists and bytes within, so that a large write is not held twice.
func shallow(message protoreflect.Message) protoreflect.Message {
	copied := message.New()
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		copied.Set(field, value)
		return true
	})
	copied.SetUnknown(message.GetUnknown())
	return copied
}

// serviceConfig has gRPC repeat reads, and writes that a request_id makes safe to repeat, where the service is
// unavailable.
var serviceConfig = sync.OnceValue(func() string {
	names := []map[string]string{}
	for path, each := range methods() {
		if each.isRead || each.requestID != nil {
			service, name, _ := strings.Cut(path[1:], "/")
			names = append(names, map[string]string{"service": service, "method": name})
		}
	}
	again := map[string]any{
		"maxAttempts":       4,
		"initialBackoff":    "0.1s",
		"maxBackoff":        "1s",
		"backoffMultiplier": 2,
		// CANCELLED: a service that has more calls than it can read ends those that come, unread.
		"retryableStatusCodes": []string{"UNAVAILABLE", "CANCELLED"},
	}
	config := map[string]any{"methodConfig": []any{map[string]any{"name": names, "retryPolicy": again}}}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // maps of strings and numbers are always JSON
	}
	return string(text)
})
