package hummock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error says why a call failed. Every call of a [Client] that fails gives one:
//
//	var failed *hummock.Error
//	if errors.As(err, &failed) && failed.Reason == "MEMORY_NOT_FOUND" { … }
//
// errors.Is knows [context.DeadlineExceeded] and [context.Canceled], and status.FromError the status.
type Error struct {
	// Code is gRPC's.
	Code codes.Code
	// Reason is a name of hummockv1.ErrorReason without its prefix, for example "MEMORY_NOT_FOUND". Newer services may
	// give others; where none was given it is the code's name, for example "UNAVAILABLE".
	Reason string
	// Message is for people.
	Message string
	// FieldViolations are all fields of the request that are wrong.
	FieldViolations []FieldViolation
	// Metadata holds the facts of the message by name.
	Metadata map[string]string
	// RetryAfter is when a repeat may succeed; 0 where the service did not say.
	RetryAfter time.Duration

	status *status.Status
}

// FieldViolation is a field of the request, by its path, and the rule that it breaks.
type FieldViolation struct {
	Field, Rule string
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// GRPCStatus is the status as it came.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Is makes errors.Is find the context's errors.
func (e *Error) Is(other error) bool {
	return other == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded ||
		other == context.Canceled && e.Code == codes.Canceled
}

// FromStatus reads a status that stands inside a reply, for example LearnStreamResponse.failed; nil for none and for OK.
func FromStatus(inside *statuspb.Status) *Error {
	if inside.GetCode() == int32(codes.OK) {
		return nil
	}
	return fromStatus(status.FromProto(inside))
}

func fromStatus(given *status.Status) *Error {
	failed := &Error{
		Code:    given.Code(),
		Reason:  code.Code(given.Code()).String(),
		Message: given.Message(),
		status:  given,
	}
	for _, detail := range given.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			failed.Reason, failed.Metadata = detail.GetReason(), detail.GetMetadata()
		case *errdetails.BadRequest:
			for _, each := range detail.GetFieldViolations() {
				violation := FieldViolation{Field: each.GetField(), Rule: each.GetDescription()}
				failed.FieldViolations = append(failed.FieldViolations, violation)
			}
		case *errdetails.RetryInfo:
			failed.RetryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	return failed
}

// errorOf is what a call to the target is said to fail with; nil and the end of a stream stay what they are.
func errorOf(err error, at target) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	var already *Error
	if errors.As(err, &already) {
		return err
	}
	failed := fromStatus(status.Convert(err))
	if len(failed.status.Details()) == 0 {
		failed.Message = unanswered(failed.status, at)
	}
	return failed
}

// unanswered is the message of a call that no service answered, which the clients of all languages give alike; any other
// is as it came.
func unanswered(given *status.Status, at target) string {
	switch given.Code() {
	case codes.Unavailable:
		return fmt.Sprintf("the service cannot be reached: is `hummock serve` running? target %s (%s)", at, given.Message())
	case codes.DeadlineExceeded:
		return fmt.Sprintf("the service did not answer in time; target %s", at)
	}
	return given.Message()
}
