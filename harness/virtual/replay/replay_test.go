package replay

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

var recordings = flag.String("recording", "testdata", "the directory with the recordings that TestReplay replays")

// TestReplay replays recordings of runs on embedded clusters, and expects kube-apiserver's answers.
func TestReplay(t *testing.T) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := apiserver.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := Recordings(*recordings)
	if err != nil {
		t.Fatal(err)
	}
	var report Report
	for _, file := range files {
		requests, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		report.Recording = filepath.Base(file)
		synctest.Test(t, func(t *testing.T) {
			if err := Replay(t.Context(), requests, &report); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		})
	}
	if err := report.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if report.Replayed() == 0 {
		t.Error("no request was replayed")
	}
	if report.Different() > 0 {
		t.Errorf("%d of %d answers differ from those of kube-apiserver without a known reason", report.Different(), report.Replayed())
	}
}
