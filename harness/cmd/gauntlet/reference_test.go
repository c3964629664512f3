package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// man is the directory to which TestManPages writes the man pages. If it is empty, the test uses a
// temporary directory.
var man = flag.String("man", "", "write the man pages to this `directory`")

// TestManPages checks that each command has a man page with its examples.
func TestManPages(t *testing.T) {
	dir := *man
	if dir == "" {
		dir = t.TempDir()
	}
	var code int
	root := newRoot(&code)
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "GAUNTLET", Section: "1", Source: "gauntlet", Manual: "gauntlet"}, dir); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range commandsOf(root) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if page, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(page, []byte(".SH EXAMPLE")) {
			t.Errorf("%s: error %v; want a page with examples", name, err)
		}
	}
}

// commandsOf returns a command and all its subcommands. It omits hidden commands and those that
// cobra adds.
func commandsOf(cmd *cobra.Command) []*cobra.Command {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return nil
	}
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, commandsOf(sub)...)
	}
	return all
}

// TestExamples checks that each command has examples, and that each example is a valid command
// line.
func TestExamples(t *testing.T) {
	var code int
	for _, cmd := range commandsOf(newRoot(&code)) {
		if cmd.Example == "" {
			t.Errorf("%s has no examples", cmd.CommandPath())
		}
		own := false
		for line := range strings.Lines(cmd.Example) {
			for _, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '|' || r == '(' || r == ')' }) {
				args := strings.Fields(part)
				if len(args) == 0 || args[0] != "gauntlet" {
					continue // another program
				}
				if i := slices.Index(args, ">"); i >= 0 {
					args = args[:i]
				}
				root := newRoot(&code)
				found, rest, err := root.Find(args[1:])
				if err == nil {
					err = found.ParseFlags(rest)
				}
				if err == nil {
					err = found.ValidateArgs(found.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: example %q: %v", cmd.CommandPath(), part, err)
				}
				own = own || found != nil && strings.HasPrefix(found.CommandPath(), cmd.CommandPath())
			}
		}
		if !own {
			t.Errorf("%s: no example calls it", cmd.CommandPath())
		}
	}
}

var update = flag.Bool("update", false, "write docs/reference/cli.md")

// TestReference checks that docs/reference/cli.md describes the current commands and flags.
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

// writeReference writes to a page the sections about a command and its subcommands.
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
