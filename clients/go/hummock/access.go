package hummock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const tokenVariable = "HUMMOCK_TOKEN"

// bearer is the token that goes with every call.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity keeps gRPC itself from sending the token in the clear, except to this machine.
func (b bearer) RequireTransportSecurity() bool { return b.secure }

// accessTo says how the target is called: in the clear or over TLS, and with which token.
func (s settings) accessTo(at target) ([]grpc.DialOption, error) {
	secrecy, err := s.secrecy()
	if err != nil {
		return nil, err
	}
	dial := []grpc.DialOption{grpc.WithTransportCredentials(secrecy)}
	token := os.Getenv(tokenVariable)
	if s.token != nil {
		token = *s.token
	}
	switch {
	case token == "":
		return dial, nil
	case strings.ContainsFunc(token, func(r rune) bool { return r < '!' || r > '~' }):
		return nil, errors.New("the token has characters that no token has: white space, or others than ASCII")
	case !s.secure() && !at.isLocal():
		return nil, fmt.Errorf("a token is not sent to %s in the clear; ask for TLS (WithTLS or WithRootCertificates)", at)
	}
	return append(dial, grpc.WithPerRPCCredentials(bearer{token: token, secure: !at.isLocal()})), nil
}

func (s settings) secure() bool { return s.tls != nil || s.authorities != nil }

func (s settings) secrecy() (credentials.TransportCredentials, error) {
	if !s.secure() {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.tls != nil {
		config = s.tls.Clone()
	}
	if s.authorities != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(s.authorities) {
			return nil, errors.New("the root certificates hold no certificate in PEM form")
		}
	}
	return credentials.NewTLS(config), nil
}
