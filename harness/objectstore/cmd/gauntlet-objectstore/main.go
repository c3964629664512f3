// Command gauntlet-objectstore serves the objects of a bucket to gauntlet. The argument is the URL
// of the bucket, in S3, Google Cloud Storage or Azure Blob Storage. gauntlet passes one end of a
// connection as file descriptor 3, and sends requests with HTTP/2. The program ends when its
// standard input ends. The exit status is 3 if the arguments are wrong, and 1 if the bucket cannot
// be opened.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://

	"github.com/kube-gauntlet/gauntlet/harness/objectstore/server"
)

const (
	exitFailed = 1
	exitUsage  = 3 // the exit status for wrong arguments, the same as that of gauntlet

	socket = 3 // the file descriptor of the connection, the first after standard error

	backoff = 200 * time.Millisecond // the time between the first and the second try of a failing request to the bucket
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "gauntlet-objectstore: found %d arguments; expected the URL of a bucket; gauntlet starts this program\n", len(os.Args)-1)
		os.Exit(exitUsage)
	}
	if err := serve(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gauntlet-objectstore:", err)
		os.Exit(exitFailed)
	}
}

// serve answers the requests of gauntlet until standard input ends. The argument url is the URL of
// the bucket.
func serve(ctx context.Context, url string) error {
	conn, err := net.FileConn(os.NewFile(socket, "socket"))
	if err != nil {
		return fmt.Errorf("file descriptor %d: %w; expected a connected socket", socket, err)
	}
	bucket, err := server.Open(ctx, url)
	if err != nil {
		return err
	}
	defer bucket.Close()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	listener := make(oneConnection, 1)
	listener <- conn
	failed := make(chan error, 1)
	go func() {
		// The first request may come late, so the connection has no timeout.
		failed <- (&http.Server{Handler: &server.Server{Bucket: bucket, Backoff: backoff}, Protocols: protocols}).Serve(listener)
	}()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}

// oneConnection is a listener that accepts only the connection in the channel. Each further call of
// Accept waits forever.
type oneConnection chan net.Conn

func (c oneConnection) Accept() (net.Conn, error) { return <-c, nil }
func (c oneConnection) Close() error              { return nil }
func (c oneConnection) Addr() net.Addr            { return &net.UnixAddr{Net: "unix"} }
