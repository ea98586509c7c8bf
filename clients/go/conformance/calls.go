package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"hummock.dev/go/hummock"
)

// call makes the step's call by the client's method of that name, and gives the replies as JSON.
func (s step) call(ctx context.Context, client *hummock.Client, saved names) ([]any, error) {
	_, name, _ := strings.Cut(s.Call, "/")
	method := reflect.ValueOf(client).MethodByName(name)
	if !method.IsValid() {
		return nil, fmt.Errorf("the client has no call %s", s.Call)
	}
	sent, err := s.argument(method.Type().In(1), saved)
	if err != nil {
		return nil, err
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(ctx), sent})
	if len(results) == 1 {
		return s.listen(ctx, client, results[0], saved)
	}
	if err, failed := results[1].Interface().(error); failed {
		return nil, err
	}
	reply, err := replyJSON(results[0])
	return []any{reply}, err
}

// argument is what the method takes: a request, or where it takes a sequence, all requests.
func (s step) argument(of reflect.Type, saved names) (reflect.Value, error) {
	if of.Kind() == reflect.Pointer {
		request := s.Request
		if request == nil && len(s.Requests) == 1 {
			request = s.Requests[0]
		}
		return message(of, saved.fill(request))
	}
	var requests []reflect.Value
	for _, each := range s.Requests {
		request, err := message(of.In(0).In(0), saved.fill(each))
		if err != nil {
			return reflect.Value{}, err
		}
		requests = append(requests, request)
	}
	return reflect.MakeFunc(of, func(yield []reflect.Value) []reflect.Value {
		for _, request := range requests {
			if !yield[0].Call([]reflect.Value{request})[0].Bool() {
				break
			}
		}
		return nil
	}), nil
}

// message is a request of this type, read from JSON.
func message(of reflect.Type, from any) (reflect.Value, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return reflect.Value{}, err
	}
	made := reflect.New(of.Elem())
	return made, protojson.Unmarshal(text, made.Interface().(proto.Message))
}

// listen gives the replies of a stream; all of them, or as many as are expected where it is then cancelled. What is to be
// done meanwhile is done behind the first.
func (s step) listen(ctx context.Context, client *hummock.Client, stream reflect.Value, saved names) ([]any, error) {
	replies := []any{}
	for value, failed := range stream.Seq2() {
		if err, is := failed.Interface().(error); is {
			return replies, err
		}
		reply, err := replyJSON(value)
		if err != nil {
			return replies, err
		}
		replies = append(replies, reply)
		if s.Meanwhile != nil && len(replies) == 1 {
			if _, err := s.Meanwhile.call(ctx, client, saved); err != nil {
				return replies, err
			}
		}
		if s.Then == "cancel" && len(replies) == len(s.Replies) {
			break
		}
	}
	return replies, nil
}

func replyJSON(value reflect.Value) (any, error) {
	text, err := protojson.Marshal(value.Interface().(proto.Message))
	if err != nil {
		return nil, err
	}
	var reply any
	return reply, json.Unmarshal(text, &reply)
}
