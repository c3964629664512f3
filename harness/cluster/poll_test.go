package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestPoll checks the error after a timeout.
func TestPoll(t *testing.T) {
	refused := errors.New(`Get "https://127.0.0.1:1/readyz": dial tcp 127.0.0.1:1: connect: connection refused`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := Poll(ctx, time.Hour, "etcd", func(context.Context) error { return refused })
	const want = "waiting for etcd: not ready in time; last error: https://127.0.0.1:1/readyz: connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refused) {
		t.Errorf("error %v does not wrap the cause and the last error", err)
	}
}

// TestConnectionReason checks that the texts have no terms of Go's network packages.
func TestConnectionReason(t *testing.T) {
	for text, want := range map[string]string{
		`Get "http://a:1/x": dial tcp 10.0.0.1:1: connect: connection refused`:        "http://a:1/x: connection refused",
		"dial tcp4 127.0.0.1:9443: connect: connection refused":                       "127.0.0.1:9443: connection refused",
		"read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer":           "127.0.0.1:1->127.0.0.1:2: connection reset by peer",
		`Get "http://none/": dial tcp: lookup none: no such host`:                     "http://none/: found no address of host none; expected a host that this machine can resolve",
		`Get "https://a/x?y=z": tls: first record does not look like a TLS handshake`: "https://a/x: found a server without TLS; expected a server with TLS",
		"dial unix /run/x.sock: connect: no such file or directory":                   "/run/x.sock: no such file or directory",
		`Post "https://a/x": net/http: TLS handshake timeout`:                         "https://a/x: net/http: TLS handshake timeout",
		"reading job a: serializer for text/html doesn't exist":                       "reading job a: found a response in HTML; expected an API server at this address",
		"reading job a: <html>error 403</html> (get jobs)":                            "reading job a: found a response in HTML; expected an API server at this address",
		"node a is not Ready": "node a is not Ready",
	} {
		if got := ConnectionReason(errors.New(text)); got != want || strings.Contains(got, "tcp") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
