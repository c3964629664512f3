// Package objectstore reads and writes objects of S3, Google Cloud Storage and Azure Blob Storage.
//
// The SDKs of these services are in the program gauntlet-objectstore, which the module
// harness/objectstore contains. The SDKs would double the number of modules that gauntlet requires.
// The program serves requests of this package on one connection until its standard input ends. The
// connection is a pair of sockets without a name. It thus leaves no file, however gauntlet ends.
package objectstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/internal/executable"
)

// Program is the file name of the program that accesses buckets. It is a program of its own because
// it links the SDKs of three clouds.
const Program = "gauntlet-objectstore"

// Schemes are the schemes of URLs: those of S3, Google Cloud Storage and Azure Blob Storage.
var Schemes = []string{"s3", "gs", "azblob"}

// IsURL reports whether a text is a URL rather than the path of a directory.
func IsURL(text string) bool { return strings.Contains(text, "://") }

// Validate returns an error if a text is not the URL of a bucket, such as s3://bucket/prefix.
func Validate(text string) error {
	parsed, err := url.Parse(text)
	if err != nil || !slices.Contains(Schemes, parsed.Scheme) || parsed.Host == "" {
		return fmt.Errorf("found %q; expected s3://BUCKET, gs://BUCKET or azblob://CONTAINER, with an optional /PREFIX", text)
	}
	if parsed.User != nil {
		return fmt.Errorf("found a user in the URL of bucket %s; expected credentials in environment variables", parsed.Host)
	}
	return nil
}

// Find returns the path of [Program], which must be in the directory of the executable gauntlet.
// The argument is the path of the executable gauntlet. If Program is missing or cannot run, Find
// returns an error.
func Find(gauntlet string) (string, error) {
	path := filepath.Join(filepath.Dir(gauntlet), Program)
	if err := executable.Check(path); err != nil {
		return "", fmt.Errorf("%s: %w; run `make objectstore` in a checkout of gauntlet", path, err)
	}
	return path, nil
}

// Bucket is a bucket whose objects have names such as "nightly/campaign.json". Several goroutines
// may use it.
type Bucket struct {
	url    string
	client *http.Client
	close  func() error
	ended  chan struct{} // closed after the program has exited
	output *bytes.Buffer // the output of the program; complete when ended is closed
}

// Open starts the program gauntlet-objectstore, through which the Bucket accesses the bucket with
// the given URL. The program reads credentials from the environment of this process. The caller
// must close the Bucket.
func Open(program, bucket string) (*Bucket, error) {
	if err := Validate(bucket); err != nil {
		return nil, err
	}
	conn, other, err := socketPair()
	if err == nil {
		defer other.Close()
		var opened *Bucket
		if opened, err = start(program, bucket, conn, other); err == nil {
			return opened, nil
		}
		err = errors.Join(err, conn.Close())
	}
	return nil, fmt.Errorf("starting %s: %w", program, err)
}

// socketPair returns the ends of a connection: one for this process, and one for the program.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	own, other := os.NewFile(uintptr(fds[0]), "gauntlet"), os.NewFile(uintptr(fds[1]), Program)
	conn, err := net.FileConn(own)
	if err = errors.Join(err, own.Close()); err != nil { // conn has a copy of the file descriptor
		return nil, nil, errors.Join(err, other.Close())
	}
	return conn, other, nil
}

// start starts the program gauntlet-objectstore, which serves requests on a connection. The
// argument conn is this process's end of the connection. The argument other is the program's end.
func start(program, bucket string, conn net.Conn, other *os.File) (*Bucket, error) {
	b := &Bucket{url: bucket, ended: make(chan struct{}), output: &bytes.Buffer{}}
	cmd := exec.Command(program, bucket)
	cmd.ExtraFiles = []*os.File{other}
	cmd.Stdout, cmd.Stderr = b.output, b.output
	// Ctrl-C must not end the program before gauntlet has written the last files.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // ignore the exit status: a failed request reports the output of the program
		close(b.ended)
	}()
	b.client = &http.Client{Transport: overConnection(conn)}
	b.close = sync.OnceValue(func() error {
		err := stdin.Close()
		<-b.ended
		_ = conn.Close() // the transport may have closed it already
		if errors.Is(err, os.ErrClosed) {
			return nil // the program had exited already
		}
		return err
	})
	return b, nil
}

// overConnection returns a transport that sends all requests on one connection. HTTP/2 carries many
// requests at the same time.
func overConnection(conn net.Conn) http.RoundTripper {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	only := &onlyConn{Conn: conn, closed: make(chan struct{})}
	unused := make(chan net.Conn, 1)
	unused <- only
	return &http.Transport{Protocols: protocols, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case conn := <-unused:
			return conn, nil
		default:
		}
		// The transport also dials for requests that come before HTTP/2 has begun on the connection.
		// When HTTP/2 has begun, the transport sends these requests on the same connection, and
		// cancels ctx.
		select {
		case <-only.closed:
			return nil, errors.New("the connection to " + Program + " has ended")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// onlyConn is the connection that a transport of [overConnection] uses for all requests. The method
// Close also closes the channel in the field closed, so that waiting requests return an error.
type onlyConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close closes the connection and the channel in the field closed.
func (c *onlyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Close stops the program.
func (b *Bucket) Close() error { return b.close() }

// Put writes content under a name. Readers see the whole content, or nothing.
func (b *Bucket) Put(ctx context.Context, name string, content []byte) error {
	_, err := b.do(ctx, http.MethodPut, "name", name, content)
	if err != nil {
		return fmt.Errorf("writing %s to %s: %w", name, b.url, err)
	}
	return nil
}

// Get returns the content under a name. If there is none, the error is fs.ErrNotExist.
func (b *Bucket) Get(ctx context.Context, name string) ([]byte, error) {
	content, err := b.do(ctx, http.MethodGet, "name", name, nil)
	if err != nil {
		return nil, fmt.Errorf("reading %s from %s: %w", name, b.url, err)
	}
	return content, nil
}

// List returns all names that begin with prefix, sorted.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	content, err := b.do(ctx, http.MethodGet, "prefix", prefix, nil)
	if err != nil {
		return nil, fmt.Errorf("listing %s of %s: %w", prefix, b.url, err)
	}
	var names []string
	if err := json.Unmarshal(content, &names); err != nil {
		return nil, fmt.Errorf("listing %s of %s: %w", prefix, b.url, err)
	}
	slices.Sort(names)
	return names, nil
}

// do sends a request to the program gauntlet-objectstore, and returns the body of the response. The
// URL of the request has one query parameter: its name is key, and its value is value. The error is
// fs.ErrNotExist if the bucket has no such object.
func (b *Bucket) do(ctx context.Context, method, key, value string, body []byte) ([]byte, error) {
	target := "http://objectstore/?" + url.Values{key: {value}}.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return nil, b.explain(ctx, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return nil, b.explain(ctx, err)
	case response.StatusCode == http.StatusNotFound:
		return nil, fs.ErrNotExist
	case response.StatusCode >= http.StatusBadRequest:
		return nil, errors.New(strings.TrimSpace(string(content)))
	}
	return content, nil
}

// exitTimeout is the time in which the program exits after its connection has ended.
const exitTimeout = 5 * time.Second

// explain returns the error to report for a failed request. The argument err is the error of the
// connection. If the program gauntlet-objectstore exits within exitTimeout, the result contains the
// program's output, which says more than err. Otherwise, the result is err.
func (b *Bucket) explain(ctx context.Context, err error) error {
	timer := time.NewTimer(exitTimeout)
	defer timer.Stop()
	select {
	case <-b.ended:
		return fmt.Errorf("%s has exited: %s", Program, strings.TrimSpace(b.output.String()))
	case <-ctx.Done():
	case <-timer.C:
	}
	return err
}
