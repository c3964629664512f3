package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// statusCase has command lines of one command for the test of exit statuses. The command's name
// precedes each of these texts. An empty text means that no such command line exists.
type statusCase struct {
	good     string // arguments with which the command succeeds and prints something; without them, the test uses --help
	badFlag  string // arguments with an invalid flag value; without them, the test uses an unknown flag
	badArg   string // arguments of which one is invalid
	noFile   string // arguments with the name of a file or directory that does not exist
	goodCode int    // the exit status of the command with the arguments good
}

// statusCases has the command lines with which the test runs each command. The word RUN stands for
// a run directory whose history has only a start record. DIR stands for an empty directory.
var statusCases = map[string]statusCase{
	"":                   {badArg: "frob"},
	"check":              {good: "RUN", goodCode: exitUnknown, badArg: "DIR", noFile: "DIR/none"},
	"clean":              {badFlag: "--provider=kind", badArg: "x", noFile: "--provider=existing --kubeconfig=DIR/none"},
	"compare":            {badFlag: "--pairs=0", badArg: "nothing", noFile: "DIR/none.yaml"},
	"completion":         {badArg: "frob"},
	"coverage":           {good: "RUN", badFlag: "RUN --out=RUN/history.jsonl", badArg: "DIR", noFile: "DIR/none"},
	"coverage scenarios": {badFlag: "--seeds=x", badArg: "nothing", noFile: "DIR/none.yaml"},
	"mutants matrix":     {badFlag: "--seed=x", badArg: "nothing"},
	"mutants tiers":      {badFlag: "--write=x", badArg: "x"},
	"down":               {badFlag: "--all=x", badArg: "no-such-cluster"},
	"generate":           {good: "--seed=7", badFlag: "--seed=x", badArg: "7", noFile: "--prefer-uncovered=DIR/none"},
	"help":               {good: "run", badArg: "frob"},
	"fleet":              {badArg: "frob"},
	"fleet acknowledge":  {badFlag: "x", badArg: "DIR --store=DIR", noFile: "DIR/none --store=DIR"},
	"fleet collect":      {badFlag: "x --store=ftp://b", badArg: "x y", noFile: "x --store=DIR/none"},
	"fleet delete":       {badArg: "x y", noFile: "x --kubeconfig=DIR/none"},
	"fleet explore":      {good: "x burst --claim=c --dry-run", badFlag: "x burst --claim=c --at=frob", badArg: "x nothing --claim=c", noFile: "x burst --claim=c --tolerations=DIR/none"},
	"fleet export":       {badFlag: "--wait=x", badArg: "x y"},
	"fleet nightly":      {good: "x --count=3 --claim=c --dry-run", badFlag: "x --claim=c --count=0", badArg: "x y", noFile: "x --claim=c --mount=DIR/none"},
	"fleet run":          {good: "x --seeds=1..3 --claim=c --dry-run", badFlag: "x --claim=c --seeds=7..3", badArg: "x y", noFile: "x --claim=c --tolerations=DIR/none"},
	"fleet shrink":       {badFlag: "x --claim=c --parallelism=0", badArg: "x y", noFile: "x --kubeconfig=DIR/none"},
	"fleet status":       {badArg: "x y", noFile: "x --kubeconfig=DIR/none"},
	"fleet worker":       {badFlag: "--index=x", badArg: "x"},
	"host-cluster":       {badFlag: "a b x d", badArg: "x"},
	"image":              {badFlag: "--label=x", badArg: "RUN/scenario.yaml", noFile: "DIR/none"},
	"list":               {good: "faults", badArg: "wishes"},
	"mutants":            {badFlag: "--seed=x", badArg: "nothing"},
	"nightly":            {badFlag: "--duration=0s", badArg: "nothing", noFile: "DIR/none.yaml"},
	"relay":              {badFlag: "--patience=x", badArg: "x"},
	"report":             {good: "RUN --out=DIR/report", goodCode: exitUnknown, badArg: "DIR", noFile: "DIR/none"},
	"run":                {badFlag: "--attempts=0", badArg: "nothing", noFile: "DIR/none.yaml"},
	"setup":              {badFlag: "--nodes=x", badArg: "x"},
	"shrink":             {badFlag: "--check", badArg: "DIR", noFile: "DIR/none"},
	"sweep":              {badArg: "frob"},
	"sweep crash":        {badFlag: "--from=0 burst", badArg: "nothing", noFile: "DIR/none.yaml"},
	"sweep seeds":        {badFlag: "--from=7 --to=3", badArg: "x"},
	"up":                 {badFlag: "--nodes=0", badArg: "x"},
	"baseline":           {badFlag: "--runs=0 burst", badArg: "nothing", noFile: "DIR/none.yaml"},
	"explore":            {badFlag: "--baseline=0 burst", badArg: "nothing", noFile: "DIR/none.yaml"},
	"explain":            {good: "check/max-surge", badArg: "max-surg"},
	"validate":           {good: "burst", badArg: "nothing", noFile: "DIR/none.yaml"},
	"version":            {good: " ", badArg: "x"},
}

// TestExitStatuses checks the exit status of every command for good and for wrong command lines.
// It also checks the status if every write to standard output fails. Wrong usage must print one
// line to standard error, and nothing to standard output.
func TestExitStatuses(t *testing.T) {
	var code int
	root := newRoot(&code)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, words := range commandsBelow(root) {
		words := strings.TrimPrefix(words, "gauntlet")
		name := strings.TrimSpace(words)
		test, ok := statusCases[name]
		if !ok && !strings.HasPrefix(name, "completion ") {
			t.Errorf("command %q has no case in statusCases", name)
		}
		t.Run(name, func(t *testing.T) {
			good, goodCode := test.good, test.goodCode
			if good == "" {
				good = "--help"
			}
			badFlag := test.badFlag
			if badFlag == "" {
				badFlag = "--no-such-flag"
			}
			checkStatus(t, name, good, false, goodCode)
			checkStatus(t, name, good, true, exitUnknown)
			for _, bad := range []string{badFlag, test.badArg, test.noFile} {
				if bad != "" {
					checkStatus(t, name, bad, false, exitUsage)
				}
			}
		})
	}
}

// commandsBelow returns the command path, such as "gauntlet run", of a command and of all its
// subcommands.
func commandsBelow(cmd *cobra.Command) []string {
	all := []string{cmd.CommandPath()}
	for _, sub := range cmd.Commands() {
		all = append(all, commandsBelow(sub)...)
	}
	return all
}

// checkStatus runs gauntlet and checks the exit status. If full is true, every write to standard
// output fails.
func checkStatus(t *testing.T, name, args string, full bool, want int) {
	t.Helper()
	line := strings.Fields(strings.NewReplacer("RUN", statusRun(t), "DIR", t.TempDir()).Replace(name + " " + args))
	var code int
	root := newRoot(&code)
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	if full {
		root.SetOut(fullDisk{})
	}
	root.SetErr(&stderr)
	root.SetArgs(line)
	err := runRoot(t.Context(), root)
	if err != nil {
		stderr.WriteString("gauntlet: " + err.Error() + "\n")
	}
	if got := exitCode(code, err); got != want {
		t.Errorf("%s (full: %t): exit %d, want %d\n%s", strings.Join(line, " "), full, got, want, stderr.String())
	}
	if lines := strings.Count(stderr.String(), "\n"); lines != 1 && (want == exitUsage || full) {
		t.Errorf("%s (full: %t): %d lines on standard error, want 1:\n%s", strings.Join(line, " "), full, lines, stderr.String())
	}
	if want == exitUsage && stdout.Len() > 0 {
		t.Errorf("%s: standard output %q, want none", strings.Join(line, " "), stdout.String())
	}
}

// statusRun creates a run directory whose history has only a start record.
func statusRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart, "verdicts.json": `{"schema": 1, "runs": [{"scenario": "x", "seed": 7, "subject": "ours", "verdict": "unknown", "directory": ""}]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fullDisk is a writer whose writes fail because the disk is full, as with /dev/full.
type fullDisk struct{}

var _ io.Writer = fullDisk{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}
