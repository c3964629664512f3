// Package examples runs the tests of the Go modules in examples/, with the commands that their
// README files contain.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestE2EFramework runs the test in examples/e2e-framework twice. With the bug in the
// controller, the test must fail and show the evidence. With the fix, it must pass.
func TestE2EFramework(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags []string
		fails bool
		want  []string // texts in the output
	}{
		{"bug", nil, true, []string{
			"order bread has the tickets [bread-ticket-",
			"fault response-lost at", "lost the response; the subject receives status 504: configmaps orders/bread-ticket-",
			"report.html",
		}},
		{"fixed", []string{"-tags=fixed"}, false, []string{"ok "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-count=1"}, test.flags...)...)
			cmd.Dir = filepath.Join("..", "..", "examples", "e2e-framework")
			cmd.Env = append(os.Environ(), "GOWORK=off")
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != test.fails {
				t.Fatalf("go test: %v; want a failure: %v\n%s", err, test.fails, out)
			}
			for _, want := range test.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the output of go test does not contain %q:\n%s", want, out)
				}
			}
		})
	}
}
