package run

import (
	"path/filepath"
	"testing"
)

func TestNewAuditLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	for _, test := range []struct{ name, want string }{
		{"a", "a.jsonl"},
		{"a", "a-2.jsonl"},
		{"a", "a-3.jsonl"},
		{"b", "b.jsonl"},
	} {
		got, err := newAuditLog(dir, test.name)
		if want := filepath.Join(dir, test.want); err != nil || got != want {
			t.Errorf("%s: path %s, error %v; want %s", test.name, got, err, want)
		}
	}
	if _, err := newAuditLog("/dev/null", "a"); err == nil {
		t.Error("a device as the directory gave no error")
	}
}
