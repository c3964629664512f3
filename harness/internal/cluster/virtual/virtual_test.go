package virtual

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFind checks which programs are refused for upstream's kube-controller-manager.
func TestFind(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		tags     string
		upstream bool
		want     string
	}{
		{"", true, ""},
		{OnlyOurs, false, ""},
		{OnlyOurs, true, "found a program without kube-controller-manager, because `make chaos` built it; run `make virtual`"},
	} {
		dir := t.TempDir()
		if out, err := exec.Command("go", "build", "-tags="+test.tags, "-o", filepath.Join(dir, Program), source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, err := Find(filepath.Join(dir, "gauntlet"), test.upstream)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("tags %q, upstream %t: error\n got %v\nwant %s", test.tags, test.upstream, err, test.want)
		}
	}
}
