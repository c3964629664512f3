package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// commandWithInput runs gauntlet with a text as standard input, and returns the standard output.
func commandWithInput(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	var code int
	root := newRoot(&code)
	var out bytes.Buffer
	root.SetIn(strings.NewReader(input))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestDryRun checks that --dry-run prints the planned runs and needs no executables.
func TestDryRun(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"burst", "rollout", "--seed=7"}, "SCENARIO  SUBJECT  PROVIDER  SEED\nburst     ours     embedded  7\nrollout   ours     embedded  7\n"},
		{[]string{"burst", "--seed=7", "--subject=upstream", "-o", "json"}, `{"scenario":"burst","subject":"upstream","provider":"embedded","seed":7}` + "\n"},
		{[]string{"burst", "--seed=7", "-o", "yaml"}, "---\nprovider: embedded\nscenario: burst\nseed: 7\nsubject: ours\n"},
		{[]string{"--seed=7", "--profile=calm", "-o", "json"}, `{"scenario":"calm-7","subject":"ours","provider":"embedded","seed":7}` + "\n"},
	} {
		out, err := command(t, append([]string{"run", "--dry-run"}, test.args...)...)
		if err != nil || out != test.want {
			t.Errorf("run --dry-run %q: error %v, output\n%swant\n%s", test.args, err, out, test.want)
		}
	}
}

// TestDryRunRefuses checks that --dry-run refuses what the run refuses before it looks for
// executables.
func TestDryRunRefuses(t *testing.T) {
	const notebook = "../../../examples/operators/notebook/"
	crd, err := filepath.Abs(notebook + "crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	noProgram := file(t, "subject: {exec: nothing, manifests: ["+crd+"]}\n")
	external := file(t, "name: x\ndescription: D.\nexternalWorkload: {pods: 1}\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"burst", "--node-image=x", "--provider=virtual"}, "--node-image has no effect on the provider virtual"},
		{[]string{"burst", "--upstream-dir=" + t.TempDir()}, ": etcd: no such file or directory; expected an executable file"},
		{[]string{"burst", "--upstream-dir=/none"}, "--upstream-dir=/none: found no such directory; expected a directory with the binaries"},
		{[]string{"burst", "--kubeconfig=x"}, "--kubeconfig has no effect on the provider embedded"},
		{[]string{"burst", "--provider=existing", "--kubeconfig=none"}, "--kubeconfig: none: no such file or directory"},
		{[]string{"burst", "--baseline=none"}, "none: no such file or directory"},
		{[]string{"burst", "--subject=exec:/bin/true", "--provider=virtual"}, "subject exec:/bin/true: found provider virtual"},
		{[]string{"burst", "--subject=image:x:y"}, "subject image:x:y requires a provider with"},
		{[]string{"burst", "--subject=none.yaml", "--provider=virtual"}, `--subject=none.yaml requires a provider with "local processes that run the subject"; expected --provider=embedded`},
		{[]string{"burst", "--subject=none.yaml"}, "none.yaml: no such file or directory"},
		{[]string{notebook + "lost-update.yaml", "--subject=" + noProgram}, "subject.exec: "},
		{[]string{"burst", "--keep", "--provider=virtual"}, "--keep has no effect on the provider virtual"},
		{[]string{"burst", "--out=plan_test.go"}, "--out=plan_test.go: found a file; expected a directory"},
		{[]string{external}, "externalWorkload: found a workload that a Go program executes"},
		{[]string{external, "--provider=virtual"}, "externalWorkload has no effect on the provider virtual"},
	} {
		_, err := command(t, append([]string{"run", "--dry-run"}, test.args...)...)
		var unfinished *unfinishedError
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.As(err, &unfinished) {
			t.Errorf("run --dry-run %q: error %v, want bad usage with %q", test.args, err, test.want)
		}
	}
}

// TestValidateSubject checks that validate reads a subject file and its manifests. It must validate
// scenarios with the kinds of the subject file.
func TestValidateSubject(t *testing.T) {
	const notebook = "../../../examples/operators/notebook/"
	crd, err := filepath.Abs(notebook + "crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	valid := file(t, fmt.Sprintf("subject: {exec: %s, manifests: [%s]}\n", program, crd))
	noManifest := file(t, fmt.Sprintf("subject: {exec: %s, manifests: [none.yaml]}\n", program))
	module := file(t, "subject: {module: example.com/none@v1.0.0, manifests: [none.yaml]}\n")
	for _, test := range []struct{ name, args, out, err string }{
		{"subject file", "--subject=" + valid, valid + ": valid; controllers: notebook of Notebook\n", ""},
		{"scenario", notebook + "lost-update.yaml --subject=" + valid, "lost-update.yaml: valid; providers: embedded\n", ""},
		{"module", "--subject=" + module, "valid; the manifests of the Go module are not checked\n", ""},
		{"module without a version", "--subject=" + file(t, "subject: {module: example.com/none}\n"), "", `subject.module: found "example.com/none"; expected the path of a main package and a version`},
		{"missing manifest", "--subject=" + noManifest, "", "none.yaml: no such file or directory"},
		{"scenario of other kinds", "rollout --subject=" + valid, "valid; controllers", "found no object that the controllers of the subject file reconcile"},
		{"no subject file", "--subject=ours", "", `--subject: found "ours"; expected the path of a subject file`},
		{"no argument", "", "", "expected SCENARIO"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := command(t, append([]string{"validate"}, strings.Fields(test.args)...)...)
			if !strings.Contains(out, test.out) {
				t.Errorf("output %q, want %q", out, test.out)
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// TestStandardInput checks that run and validate read the scenario "-" from standard input. A
// second "-" must be an error.
func TestStandardInput(t *testing.T) {
	burst, _ := library.Find("burst")
	text, err := burst.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		input         string
		args          []string
		want, wantErr string
	}{
		{string(text), []string{"run", "-", "--dry-run", "--seed=7", "-o", "json"}, `{"scenario":"burst",`, ""},
		{string(text), []string{"validate", "-"}, "-: valid; providers: ", ""},
		{"name: x\nfalts: []\n", []string{"validate", "-"}, "", "standard input:2:1: "},
		{"", []string{"validate", "-"}, "", `found nothing; expected a scenario in YAML`},
		{string(text), []string{"validate", "-", "-"}, "-: valid; providers: ", `found nothing; "-" may occur only once`},
		{strings.Repeat("x", 1<<20), []string{"validate", "-"}, "", "standard input: found more than 262144 bytes; expected at most 262144 bytes"},
		{string(text), []string{"nightly", "-"}, "", `scenario "-": only "gauntlet run" and "gauntlet validate" read a scenario from standard input; expected a file or a built-in scenario`},
	} {
		out, err := commandWithInput(t, test.input, test.args...)
		if !strings.HasPrefix(out, test.want) || (err == nil) != (test.wantErr == "") || (err != nil && !strings.Contains(err.Error(), test.wantErr)) {
			t.Errorf("%q: error %v, output %q; want error %q, output %q", test.args, err, out, test.wantErr, test.want)
		}
	}
}

// TestInterruptedInput checks that a read of standard input returns when the context ends.
func TestInterruptedInput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe() // nobody writes to it
	defer out.Close()
	cancel()
	_, err := (&runFlags{stdin: &interruptibleReader{ctx, in}}).readScenario(io.Discard)
	var unfinished *unfinishedError
	if !errors.As(err, &unfinished) {
		t.Errorf("error %v, want one of an interrupt", err)
	}
}

// TestValidate checks that "gauntlet validate" prints the providers of valid scenarios, and every
// mistake of invalid ones.
func TestValidate(t *testing.T) {
	first := file(t, "name: x\nfalts: []\n")
	second := file(t, "name: y\nworkload: 3\n")
	out, err := command(t, "validate", first, "node-cut-off", second)
	if want := "node-cut-off: valid; providers: kind\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if err == nil || !strings.Contains(err.Error(), first+":2:1: ") || !strings.Contains(err.Error(), second+":2:11: ") {
		t.Errorf("error %v, want the mistakes of both files", err)
	}
	unknown := file(t, "name: z\ndescription: D.\nworkload: [{create: {kind: ReplicaSet, name: web, replicas: 1}}]\nexercises: [max-surg]\n")
	if _, err := command(t, "validate", unknown); err == nil || !strings.Contains(err.Error(), "max-surg") {
		t.Errorf("error %v, want one about the check", err)
	}
}

// TestQuiet checks that a quiet terminal prints no progress messages.
func TestQuiet(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var out bytes.Buffer
		terminal := newTerminal(&out)
		terminal.quiet = quiet
		terminal.progress("burst", "started")
		if got := strings.Contains(out.String(), "burst: started\n"); got == quiet {
			t.Errorf("quiet %t: printed %q", quiet, out.String())
		}
	}
}

func TestRecordText(t *testing.T) {
	for _, test := range []struct {
		record history.Record
		want   string
	}{
		{history.Record{Step: &history.Step{Index: 2, Event: history.StepBegun, Detail: "scale web"}}, "step 2 begun: scale web"},
		{history.Record{Step: &history.Step{Index: 2, Event: history.StepFailed, Detail: "scale web", Error: "not found"}}, "step 2 failed: scale web: not found"},
		{history.Record{Fault: &history.Fault{Name: "crash", Event: history.FaultInjected}}, "fault 0 injected: crash"},
		{history.Record{Fault: &history.Fault{Name: "crash", Event: history.FaultFired}}, ""},
		{history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted}}, "process subject-0 started"},
		{history.Record{Phase: &history.Phase{Name: history.PhaseChaos}}, ""},
	} {
		if got := recordText(&test.record); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.record, got, test.want)
		}
	}
}

// TestRunLines checks that -o json prints a run as one line to standard output. Everything else
// must go to standard error. No run starts, because the scenario has no workload.
func TestRunLines(t *testing.T) {
	var out, errOut bytes.Buffer
	var code int
	root := newRoot(&code)
	root.SetOut(&out)
	root.SetErr(&errOut)
	cmd, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetContext(t.Context())
	o := run.Options{Scenario: scenario.New("x", "It cannot run."), Progress: func(string) {}}
	_, err = runAll(cmd, asJSON, []run.Options{o}, campaign.Fixed(1), 1)
	if err == nil || out.Len() > 0 {
		t.Errorf("error %v, standard output %q; want an error and no line, because the run did not start", err, out.String())
	}
	for format, want := range map[outputFormat]string{asJSON: `{"scenario":"x",`, asYAML: "---\n"} {
		out.Reset()
		if err := writeDocument(cmd, format, func(w io.Writer) error { return reports.RunJSON(w, &reports.Run{Scenario: "x"}) }); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, want) || (format == asJSON && strings.Count(got, "\n") != 1) {
			t.Errorf("%s: got %q, want it to begin with %q", format, got, want)
		}
	}
}
