package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/kube-gauntlet/gauntlet/harness/internal/objectstore"
	"github.com/kube-gauntlet/gauntlet/harness/objectstore/server"
)

// openCommand is the first argument with which the test binary opens a bucket, as gauntlet does. The
// second is the URL. It prints a line when the bucket is open, and waits.
const openCommand = "open"

// TestMain runs this program instead of the tests if its argument is the URL of a bucket. The tests
// start it like that.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && objectstore.IsURL(os.Args[1]):
		main()
	case len(os.Args) == 3 && os.Args[1] == openCommand:
		bucket, err := objectstore.Open(os.Args[0], os.Args[2])
		if err == nil {
			err = bucket.Put(context.Background(), "a", []byte("x"))
		}
		fmt.Println("open:", err)
		select {}
	default:
		os.Exit(m.Run())
	}
}

// s3Server starts an S3 server with one bucket, and returns the URL of a part of the bucket.
func s3Server(t *testing.T) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("results"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	return "s3://results/fleets?use_path_style=true"
}

// gcsServer starts a server of Google Cloud Storage with one bucket. It returns the URL of a part of
// the bucket.
func gcsServer(t *testing.T) string {
	t.Helper()
	listening := httptest.NewUnstartedServer(nil)
	address := listening.Listener.Addr().String()
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Scheme: "http", PublicHost: address, ExternalURL: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	fake.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "results"})
	listening.Config.Handler = fake.HTTPHandler()
	listening.Start()
	t.Cleanup(listening.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	return "gs://results/fleets"
}

// open opens a bucket with this program.
func open(t *testing.T, url string) *objectstore.Bucket {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	bucket, err := objectstore.Open(program, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(bucket.Close(), bucket.Close()); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) > 0 {
			t.Errorf("files left: %q, %v", left, err)
		}
	})
	return bucket
}

// TestServers writes, reads and lists objects on servers in memory, through this program. The servers
// have the protocols of S3 and of Google Cloud Storage.
func TestServers(t *testing.T) {
	t.Run("S3", func(t *testing.T) { testServer(t, s3Server(t), "s3://results?use_path_style=true") })
	t.Run("Google Cloud Storage", func(t *testing.T) { testServer(t, gcsServer(t), "gs://results") })
}

// testServer uses a part of a bucket, and then the whole bucket.
func testServer(t *testing.T, part, all string) {
	bucket := open(t, part)
	ctx := t.Context()
	if _, err := bucket.Get(ctx, "night/campaign.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing object: error %v; want %v", err, fs.ErrNotExist)
	}
	large := bytes.Repeat([]byte("archive "), 1<<20)
	objects := map[string][]byte{"night/b.json": []byte("{}"), "night/a/1-ours.tar.gz": large, "night/a/empty": {}, "nightly/a": []byte("x")}
	var writes sync.WaitGroup
	for name, content := range objects {
		writes.Go(func() {
			if err := bucket.Put(ctx, name, content); err != nil {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	if err := bucket.Put(ctx, "night/b.json", []byte("[]")); err != nil {
		t.Error(err)
	}
	objects["night/b.json"] = []byte("[]")
	for name, want := range objects {
		if content, err := bucket.Get(ctx, name); err != nil || !bytes.Equal(content, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(content), err, len(want))
		}
	}
	for prefix, want := range map[string][]string{
		"night/":   {"night/a/1-ours.tar.gz", "night/a/empty", "night/b.json"},
		"night/a/": {"night/a/1-ours.tar.gz", "night/a/empty"},
		"day/":     nil,
	} {
		if names, err := bucket.List(ctx, prefix); err != nil || !slices.Equal(names, want) {
			t.Errorf("list %s: %q, %v; want %q", prefix, names, err, want)
		}
	}
	whole := open(t, all)
	want := []string{"fleets/night/a/1-ours.tar.gz", "fleets/night/a/empty", "fleets/night/b.json", "fleets/nightly/a"}
	if names, err := whole.List(ctx, ""); err != nil || !slices.Equal(names, want) {
		t.Errorf("whole bucket: %q, %v; want %q", names, err, want)
	}
}

// TestPages lists more objects than one response of a service has.
func TestPages(t *testing.T) {
	t.Run("S3", func(t *testing.T) { testPages(t, s3Server(t)) })
	t.Run("Google Cloud Storage", func(t *testing.T) { testPages(t, gcsServer(t)) })
}

// testPages writes objects, and then lists them.
func testPages(t *testing.T, url string) {
	bucket := open(t, url)
	const count = 1100 // a response has at most 1000 names
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < count; n += 8 {
				if err := bucket.Put(t.Context(), fmt.Sprintf("night/%05d", n), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	names, err := bucket.List(t.Context(), "night/")
	if err != nil || len(names) != count || !slices.IsSorted(names) {
		t.Errorf("%d names, %v; want %d, sorted", len(names), err, count)
	}
}

// TestNoBucket checks the errors for a bucket that does not exist, and for one that cannot be opened.
func TestNoBucket(t *testing.T) {
	s3Server(t)
	missing := open(t, "s3://other?use_path_style=true")
	if err := missing.Put(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "writing a to s3://other") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v; want one about the bucket", err)
	}
	wrong := open(t, "s3://results?frob=1")
	if _, err := wrong.List(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "has exited") || !strings.Contains(err.Error(), "frob") {
		t.Errorf("error %v; want that of the program", err)
	}
}

// TestKilled checks that the program ends after gauntlet was killed, and that nothing is left of its
// connection.
func TestKilled(t *testing.T) {
	url := s3Server(t)
	dir := t.TempDir()
	gauntlet := exec.CommandContext(t.Context(), os.Args[0], openCommand, url)
	gauntlet.Env = append(os.Environ(), "TMPDIR="+dir)
	output, err := gauntlet.StdoutPipe()
	if err == nil {
		err = gauntlet.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != "open: <nil>\n" {
		t.Errorf("output %q, %v; want an open bucket", line, err)
	}
	program := childOf(t, gauntlet.Process.Pid)
	if err := gauntlet.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gauntlet.Wait()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		// The command line of a process that has ended is empty.
		if line, err := os.ReadFile(filepath.Join(program, "cmdline")); err != nil || len(line) == 0 {
			break
		}
		if n > 1000 {
			t.Fatalf("%s exists; want that the program has ended", program)
		}
		<-ticker.C
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// childOf returns the directory in /proc of the only child of a process.
func childOf(t *testing.T, pid int) string {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // one for each thread
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		children = append(children, strings.Fields(string(content))...)
	}
	if len(children) != 1 {
		t.Fatalf("child processes %q; want one", children)
	}
	return filepath.Join("/proc", children[0])
}

// TestSchemes checks that the program knows all schemes that gauntlet accepts.
func TestSchemes(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	t.Setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
	s3Server(t)
	for _, scheme := range objectstore.Schemes {
		bucket, err := server.Open(t.Context(), scheme+"://bucket/prefix")
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
			continue
		}
		_ = bucket.Close()
	}
}

// TestUsage checks the exit status for wrong arguments.
func TestUsage(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.Command(program, "s3://bucket").Output() // without a socket
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(string(exit.Stderr), "expected a connected socket") {
		t.Errorf("error %v; want exit status %d", err, exitFailed)
	}
}
