package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

// TestReference compares docs/reference/cli.md with the commands and flags.
func TestReference(t *testing.T) {
	var code int
	root := newRoot(&code)
	root.DisableAutoGenTag = true
	root.CompletionOptions.DisableDefaultCmd = true
	var page bytes.Buffer
	page.WriteString("# Command line\n\nThe commands of `gauntlet` and their flags. `make golden` generates this page from the code.\nThe exit statuses are in [exit-codes.md](exit-codes.md).\n\n")
	writeReference(t, &page, root)
	path := filepath.Join("..", "..", "..", "docs", "reference", "cli.md")
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, page.Bytes()) {
		t.Errorf("docs/reference/cli.md is stale (%v): run `make golden`", err)
	}
}

// writeReference writes the sections of a command and of its subcommands.
func writeReference(t *testing.T, page *bytes.Buffer, cmd *cobra.Command) {
	t.Helper()
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	anchor := func(file string) string {
		return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-")
	}
	var section bytes.Buffer
	if err := doc.GenMarkdownCustom(cmd, &section, anchor); err != nil {
		t.Fatal(err)
	}
	page.Write(section.Bytes())
	page.WriteByte('\n')
	for _, sub := range cmd.Commands() {
		writeReference(t, page, sub)
	}
}
