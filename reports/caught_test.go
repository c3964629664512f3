package reports

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// TestCaught demands a line for each distinct failure, whatever the seed.
func TestCaught(t *testing.T) {
	again := failed("watch-delay-pods")
	again.Seed = 43
	elsewhere := failed("everything")
	caught := []Run{
		run("api-errors", check.Unknown, "no fault fired", result("burst-limit", check.Pass, 3, "held")),
		failed("watch-delay-pods"), again, elsewhere,
	}
	var got bytes.Buffer
	if err := Caught(&got, 120, caught); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "caught.md"), got.String())

	for runs, want := range map[int]string{120: "120 runs, none that did not pass\n", 1: "1 run, none that did not pass\n", 0: "0 runs, nothing is known\n"} {
		got.Reset()
		if err := Caught(&got, runs, nil); err != nil || got.String() != want {
			t.Errorf("nothing caught in %d runs: %q, %v; want %q", runs, got.String(), err, want)
		}
	}
	if err := Caught(failingWriter{errors.New("disk full")}, 1, nil); err == nil {
		t.Error("no error though the output is lost")
	}
}
