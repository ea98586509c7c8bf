package hummock

import (
	"crypto/tls"
	"time"
)

const (
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
)

// Option changes how a client calls.
type Option func(*settings)

type settings struct {
	at                        target
	readTimeout, writeTimeout time.Duration
	unrepeated                bool
	token                     *string
	tls                       *tls.Config
	authorities               []byte
}

// WithToken sends a bearer token with every call, in place of what HUMMOCK_TOKEN says; empty sends none. Without TLS it
// is sent to this machine only: New fails for any other.
func WithToken(token string) Option {
	return func(s *settings) { s.token = &token }
}

// WithTLS speaks TLS as the configuration says; nil trusts the system's authorities.
func WithTLS(config *tls.Config) Option {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return func(s *settings) { s.tls = config }
}

// WithRootCertificates speaks TLS and trusts these authorities, as PEM, and no others.
func WithRootCertificates(pem []byte) Option {
	return func(s *settings) { s.authorities = pem }
}

// WithReadTimeout sets when a read is given up whose context has no deadline; 5 s unless set.
func WithReadTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.readTimeout = timeout }
}

// WithWriteTimeout sets when a write is given up whose context has no deadline; 30 s unless set.
func WithWriteTimeout(timeout time.Duration) Option {
	return func(s *settings) { s.writeTimeout = timeout }
}

// WithoutRepeats has each call tried once. It fails at once where the service is unavailable: for a program that does
// better without the answer than with a late one.
func WithoutRepeats() Option {
	return func(s *settings) { s.unrepeated = true }
}
