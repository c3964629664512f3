// Package server serves the objects of a bucket over HTTP, for package internal/objectstore of
// gauntlet.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Open opens the bucket of a URL such as s3://bucket/prefix. It reads credentials from the
// environment. All names of objects are relative to the prefix.
func Open(ctx context.Context, text string) (*blob.Bucket, error) {
	location, err := withPrefix(text)
	if err != nil {
		return nil, err
	}
	return blob.OpenBucket(ctx, location)
}

// withPrefix replaces the path of a URL by the query parameter prefix, such as ?prefix=nightly/,
// which gocloud.dev reads.
func withPrefix(text string) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if prefix := strings.Trim(parsed.Path, "/"); prefix != "" {
		query := parsed.Query()
		query.Set("prefix", prefix+"/")
		parsed.Path, parsed.RawQuery = "", query.Encode()
	}
	return parsed.String(), nil
}

// Server is an HTTP handler for the objects of a bucket:
//
//	PUT /?name=NAME      writes an object
//	GET /?name=NAME      reads an object
//	GET /?prefix=PREFIX  lists the names of objects, as JSON
//
// The status is 404 if an object does not exist. It is 502 if the service of the bucket fails; the
// body then has the reason.
type Server struct {
	Bucket *blob.Bucket
	// Backoff is the time between the first and the second try of a failing request. It doubles
	// after each further try.
	Backoff time.Duration
}

// These limits apply to a request to the bucket. The server repeats a failed write or read, because
// a repetition has the same result.
const (
	triesMax   = 6
	tryTimeout = 2 * time.Minute
)

// ServeHTTP answers one request for an object, or for a list of names; see [Server].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	name := query.Get("name")
	var answer []byte
	var err error
	switch {
	case r.Method == http.MethodPut && name != "":
		err = s.put(r.Context(), name, r.Body)
	case r.Method == http.MethodGet && name != "":
		answer, err = try(s, r.Context(), func(ctx context.Context) ([]byte, error) { return s.Bucket.ReadAll(ctx, name) })
	case r.Method == http.MethodGet && query.Has("prefix"):
		answer, err = try(s, r.Context(), func(ctx context.Context) ([]byte, error) { return s.list(ctx, query.Get("prefix")) })
	default:
		http.Error(w, fmt.Sprintf("request %s %s: expected PUT or GET with a name, or GET with a prefix", r.Method, r.URL), http.StatusBadRequest)
		return
	}
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		http.Error(w, oneLine(err), http.StatusNotFound)
	case err != nil:
		http.Error(w, oneLine(err), http.StatusBadGateway)
	default:
		_, _ = w.Write(answer) // gauntlet sees a short body as an error
	}
}

// oneLine returns the text of an error without line breaks. The SDK of Azure adds rules and the
// answer's XML document, which repeats the lines before it. Both are left out.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "<?xml") {
			break
		}
		if strings.Trim(line, "-") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// put writes an object with the whole body as its content. If body cannot be read completely, put
// writes nothing.
func (s *Server) put(ctx context.Context, name string, body io.Reader) error {
	content, err := io.ReadAll(body)
	if err != nil {
		return err // never write a part of an object
	}
	_, err = try(s, ctx, func(ctx context.Context) ([]byte, error) {
		return nil, s.Bucket.WriteAll(ctx, name, content, nil)
	})
	if gcerrors.Code(err) == gcerrors.NotFound {
		return errors.New("the bucket does not exist: " + err.Error()) // a write creates a missing object, so only the bucket can be missing
	}
	return err
}

// list returns the names that begin with prefix, as JSON.
func (s *Server) list(ctx context.Context, prefix string) ([]byte, error) {
	names := []string{}
	objects := s.Bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return json.Marshal(names)
		}
		if err != nil {
			return nil, err
		}
		names = append(names, object.Key)
	}
}

// try calls a function until it succeeds, or until another call cannot help. It doubles the wait
// after each failed call, and gives up after triesMax calls.
func try(s *Server, ctx context.Context, call func(context.Context) ([]byte, error)) ([]byte, error) {
	wait := s.Backoff
	for n := 1; ; n++ {
		limited, cancel := context.WithTimeout(ctx, tryTimeout)
		answer, err := call(limited)
		cancel()
		if err == nil || n == triesMax || ctx.Err() != nil || !transient(err) {
			return answer, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
		wait *= 2
	}
}

// transient reports whether the same request may succeed later, so that try repeats it.
func transient(err error) bool {
	switch gcerrors.Code(err) {
	case gcerrors.NotFound, gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.FailedPrecondition, gcerrors.Unimplemented:
		return false
	}
	return true
}
