package server

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"
)

// TestTry checks that a call is repeated after errors that may pass, and only after those.
func TestTry(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	_, notFound := bucket.ReadAll(t.Context(), "missing")
	for _, test := range []struct {
		name   string
		err    error
		failed int // how many calls fail
		calls  int // how many calls are expected
	}{
		{"success", nil, 0, 1},
		{"passing error", errors.New("busy"), 2, 3},
		{"lasting error", errors.New("busy"), 100, triesMax},
		{"missing object", notFound, 100, 1},
	} {
		calls := 0
		_, err := try(&Server{Backoff: time.Nanosecond}, t.Context(), func(context.Context) ([]byte, error) {
			if calls++; calls <= test.failed {
				return nil, test.err
			}
			return nil, nil
		})
		if calls != test.calls || (err == nil) != (test.failed < test.calls) {
			t.Errorf("%s: %d calls, error %v; want %d calls", test.name, calls, err, test.calls)
		}
	}
}

// TestTryEnds checks that the end of a request ends its tries.
func TestTryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	busy := errors.New("busy")
	_, err := try(&Server{Backoff: time.Hour}, ctx, func(context.Context) ([]byte, error) {
		cancel()
		return nil, busy
	})
	if !errors.Is(err, busy) {
		t.Errorf("error %v; want %v", err, busy)
	}
}

// TestOneLine checks that errors of the SDKs become one line.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"no such key": "no such key",
		"GET http://host/a\n------\nRESPONSE 403: 403\nERROR CODE: Denied\n------\n<?xml version=\"1.0\"?>\n<Error></Error>\n": "GET http://host/a; RESPONSE 403: 403; ERROR CODE: Denied",
	} {
		if got := oneLine(errors.New(text)); got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
}

// TestRequests checks the status of wrong requests, and of requests to a bucket that is closed.
func TestRequests(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	handler := &Server{Bucket: bucket, Backoff: time.Nanosecond}
	check := func(method, target string, want int) {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(method, target, strings.NewReader("x")))
		if answer.Code != want {
			t.Errorf("%s %s: status %d, %s; want %d", method, target, answer.Code, answer.Body, want)
		}
	}
	check("GET", "/", 400)
	check("DELETE", "/?name=a", 400)
	check("PUT", "/?prefix=a", 400)
	check("GET", "/?name=a", 404)
	check("PUT", "/?name=a", 200)
	check("GET", "/?name=a", 200)
	if err := bucket.Close(); err != nil {
		t.Fatal(err)
	}
	check("GET", "/?name=a", 502)
}

// TestPrefix checks that the path in the URL of a bucket becomes the prefix of all names.
func TestPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket":             "s3://bucket",
		"s3://bucket/":            "s3://bucket/",
		"gs://bucket/a/b/":        "gs://bucket?prefix=a%2Fb%2F",
		"azblob://bucket/a?x=y&z": "azblob://bucket?prefix=a%2F&x=y&z=",
	} {
		if location, err := withPrefix(text); location != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", text, location, err, want)
		}
	}
}
