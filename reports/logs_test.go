package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

func TestTimeOf(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	near := time.Date(2026, 11, 22, 9, 0, 0, 0, zone)
	for line, want := range map[string]time.Time{
		"I1122 07:18:32.054546   26775 envvar.go:195] x":                        time.Date(2026, 11, 22, 7, 18, 32, 54546000, zone),
		`{"level":"warn","ts":"2026-11-22T07:18:28.543770Z","caller":"x"}`:      time.Date(2026, 11, 22, 7, 18, 28, 543770000, time.UTC),
		`{"time":"2026-11-22T07:18:32.427554315Z","level":"ERROR","source":{}}`: time.Date(2026, 11, 22, 7, 18, 32, 427554315, time.UTC),
		"goroutine 1 [running]:": {},
		"":                       {},
	} {
		got, ok := timeOf([]byte(line), near)
		if !got.Equal(want) || ok == want.IsZero() {
			t.Errorf("%q: %s, %t; want %s", line, got, ok, want)
		}
	}
}

// TestWindow checks that the page has the log lines around the first violation that failed. It must
// also have earlier lines that name the violation's object, and continuation lines.
func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	w := logWindowAround(&timeline.Timeline{Start: history.Start{Time: start}}, []check.Result{
		{Verdict: check.KnownUpstream, Evidence: []check.Evidence{{At: 10 * time.Second}}},
		{Verdict: check.Fail, Evidence: []check.Evidence{{At: 40 * time.Second}, {At: 20 * time.Second, Object: &history.Ref{Name: "line 3"}}}},
	})
	var lines []string
	for second := range 60 {
		lines = append(lines, fmt.Sprintf("I0102 03:04:%02d.000000 1 x.go:1] line %d", second, second), fmt.Sprintf("  more of %d", second))
	}
	path := filepath.Join(t.TempDir(), "subject-0.log")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := w.read(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := lines[2*3] + "\n…\n" + strings.Join(lines[2*17:2*22], "\n") + "\n"; log.Text != want {
		t.Errorf("cut to the window:\n%s\nwant:\n%s", log.Text, want)
	}
	if logWindowAround(nil, nil) != nil || logWindowAround(&timeline.Timeline{}, nil) != nil {
		t.Error("a window without a violation")
	}
}

// TestTail checks that the last whole lines of a large file are read.
func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.yaml")
	line := strings.Repeat("x", 99) + "\n"
	if err := os.WriteFile(path, []byte("first\n"+strings.Repeat(line, 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := readTail(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Text)%len(line) != 0 || len(log.Text) > maxLogPart || !strings.HasPrefix(log.Excerpt, "The end of the file, ") {
		t.Errorf("%d bytes, %q; want whole lines of %d", len(log.Text), log.Excerpt, len(line))
	}
}

// TestLargeLog checks that a report does not read a huge log file to its end.
func TestLargeLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subject-0.log")
	text := "I0102 03:04:05.000000 1 x.go:1] at the violation\n"
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log, err := (&logWindow{from: at, to: at}).read(path)
	if err != nil || len(log.Text) > maxLogPart {
		t.Errorf("%d bytes, error %v; want at most %d bytes", len(log.Text), err, maxLogPart)
	}
}
