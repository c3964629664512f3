package subject

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	dir := t.TempDir()
	executable := filepath.Join(dir, "manager")
	plain := filepath.Join(dir, "notes.txt")
	for path, mode := range map[string]os.FileMode{executable: 0o755, plain: 0o644} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		in, want, wantErr string
	}{
		{in: "ours", want: "ours"},
		{in: "upstream", want: "upstream"},
		{in: "exec:" + executable, want: "exec:" + executable},
		{in: "", wantErr: `subject "": expected ours, upstream or exec:PATH`},
		{in: "theirs", wantErr: `subject "theirs": expected ours, upstream or exec:PATH`},
		{in: "ours:x", wantErr: `subject "ours:x": expected ours, upstream or exec:PATH`},
		{in: "exec", wantErr: `subject "exec": expected ours, upstream or exec:PATH`},
		{in: "exec:" + plain, wantErr: "expected an executable file, found mode -rw-r--r--"},
		{in: "exec:" + dir, wantErr: "expected an executable file, found mode d"},
		{in: "exec:" + dir + "/none", wantErr: "expected an executable file: stat"},
	} {
		t.Run(test.in, func(t *testing.T) {
			target, err := ParseTarget(test.in)
			switch {
			case test.wantErr == "" && err != nil:
				t.Fatalf("unexpected error: %v", err)
			case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
				t.Fatalf("error %v, want one with %q", err, test.wantErr)
			case test.wantErr == "" && target.String() != test.want:
				t.Fatalf("got %q, want %q", target, test.want)
			}
		})
	}
}

func TestExecutable(t *testing.T) {
	dir := t.TempDir()
	ours, upstream := filepath.Join(dir, "ours"), filepath.Join(dir, "upstream")
	if _, err := Ours.Executable(ours, upstream); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a missing binary of ours: error %v, want one that names `make build`", err)
	}
	if _, err := Upstream.Executable(ours, upstream); err == nil || !strings.Contains(err.Error(), "make upstream") {
		t.Errorf("a missing upstream binary: error %v, want one that names `make upstream`", err)
	}
	if err := os.WriteFile(upstream, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Upstream.Executable(ours, upstream); err != nil || got != upstream {
		t.Errorf("got %q, %v; want %q", got, err, upstream)
	}
}
