package outputfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenJournal checks which lines of a journal remain, and that further lines follow them.
func TestOpenJournal(t *testing.T) {
	for name, test := range map[string]struct{ content, kept string }{
		"a new file":                 {"", ""},
		"complete lines":             {"1\n2\n", "1\n2\n"},
		"a truncated last line":      {"1\n2\n3", "1\n2\n"},
		"nothing but a partial line": {"1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal")
			if test.content != "" {
				if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			journal, lines, err := OpenJournal(path)
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			if string(lines) != test.kept {
				t.Errorf("lines: got %q, want %q", lines, test.kept)
			}
			if _, err := journal.WriteString("next\n"); err != nil {
				t.Fatal(err)
			}
			if got := read(t, path); got != test.kept+"next\n" {
				t.Errorf("content after an append: got %q, want %q", got, test.kept+"next\n")
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		path := t.TempDir()
		if _, _, err := OpenJournal(path); err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("got error %v, want one that begins with the path", err)
		}
	})
}
