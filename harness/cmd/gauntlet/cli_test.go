package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/internal/standing"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// command runs gauntlet with the given arguments and returns the standard output.
func command(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	out, _, err = commandOutput(t, args...)
	return out, err
}

// commandOutput runs gauntlet with the given arguments and returns the standard output and the
// standard error.
func commandOutput(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	var code int
	root := newRoot(&code)
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(args)
	err = runRoot(t.Context(), root)
	return stdout.String(), stderr.String(), err
}

// TestRenamedFlags checks that each old flag name has the effect of the new name. The command must
// print one warning, which contains the new flag name.
func TestRenamedFlags(t *testing.T) {
	for old, current := range renamedFlags {
		_, errOut, err := commandOutput(t, "nightly", "nothing", "--"+old+"=x", "--"+old+"=y")
		want := "warning: " + scenario.RenameWarning("--"+old, "--"+current) + "\n"
		if errOut != want || err == nil || strings.Contains(err.Error(), "unknown flag") {
			t.Errorf("--%s: standard error %q, error %v; want %q and the flag to be accepted", old, errOut, err, want)
		}
	}
}

// TestRenamedScenario checks the warning about an old name in a scenario. A command must print the
// warning once, even if it loads the scenario several times. No run starts, because the directory
// of binaries is empty.
func TestRenamedScenario(t *testing.T) {
	for _, args := range [][]string{
		{"run", "moments"}, {"nightly", "moments"}, {"compare", "moments", "--pairs=2"},
	} {
		_, errOut, err := commandOutput(t, append(args, "--upstream-dir="+t.TempDir(), "--out="+t.TempDir())...)
		if err == nil || strings.Count(errOut, "warning: ") != 1 || !strings.Contains(errOut, "triggers") {
			t.Errorf("%s: standard error %q, error %v; want one warning that names triggers, and an error", strings.Join(args, " "), errOut, err)
		}
	}
}

// TestRenamedEntries checks that the commands list and explain accept old names. For the old name of
// a check or a scenario, they must print a warning.
func TestRenamedEntries(t *testing.T) {
	for line, current := range map[string]string{
		"explain check/claims":    "adopt-and-release",
		"explain alive":           "process-alive",
		"list checks claims":      "adopt-and-release",
		"list scenarios moments":  "triggers",
		"explain check/max-surge": "",
	} {
		out, errOut, err := commandOutput(t, strings.Fields(line)...)
		if err != nil || !strings.Contains(out, current) || strings.Contains(errOut, "warning: found the old name") != (current != "") {
			t.Errorf("%s: standard error %q, error %v; want the entry %s and a warning", line, errOut, err, current)
		}
	}
}

// TestDefaultScenarios checks which scenarios a command runs if the user names none. It must run
// the scenarios that the provider supports, and print the names of the others.
func TestDefaultScenarios(t *testing.T) {
	f := runFlags{provider: "embedded", tier: tierFlag(library.Full)}
	var warnings strings.Builder
	scenarios, err := f.loadScenarios(t.Context(), nil, &warnings)
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("%d scenarios, error %v", len(scenarios), err)
	}
	for _, s := range scenarios {
		if err := run.Supported(s, f.provider); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(warnings.String(), "skipping scenario node-cut-off: ") {
		t.Errorf("warnings %q, want one of node-cut-off", warnings.String())
	}
}

// TestTierScenarios checks that --tier selects the scenarios of a tier. Each of these scenarios
// must have the seed of --seed.
func TestTierScenarios(t *testing.T) {
	for _, tier := range library.Tiers {
		f := runFlags{provider: "embedded", tier: tierFlag(tier)}
		scenarios, err := f.loadScenarios(t.Context(), nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(library.InTier(tier), func(s *scenario.Scenario) bool { return run.Supported(s, "embedded") != nil })
		if len(scenarios) != len(want) {
			t.Errorf("tier %s: %d scenarios; expected %d", tier, len(scenarios), len(want))
		}
	}
}

// TestBadUsage checks that gauntlet rejects wrong command lines before anything starts.
func TestBadUsage(t *testing.T) {
	dir := t.TempDir()
	bad, empty := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("name: x\nworkload: []\nfalts: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frob"}, `unknown command "frob" for "gauntlet"; "gauntlet --help" lists the commands`},
		{[]string{"frob", "-f", "x.yaml"}, `unknown command "frob" for "gauntlet"; "gauntlet --help" lists the commands`},
		{[]string{"nightlyy"}, `unknown command "nightlyy" for "gauntlet"; did you mean nightly?`},
		{[]string{"--", "run"}, `found the command "run" after --; omit --`},
		{[]string{"sweep"}, "sweep: found no command; expected one of crash, seeds"},
		{[]string{"sweep", "seds"}, `unknown command "seds" for "gauntlet sweep"; expected one of crash, seeds; did you mean seeds?`},
		{[]string{"completion", "tcsh"}, "expected one of bash, fish, powershell, zsh"},
		{[]string{"help", "frob"}, `unknown command "frob" for "gauntlet"`},
		{[]string{"run", "-dry-run"}, `unknown flag: -dry-run for "gauntlet run"; did you mean --dry-run?`},
		{[]string{"run", "-seed=4"}, `unknown flag: -seed for "gauntlet run"; did you mean --seed?`},
		{[]string{"run", "-help"}, `unknown flag: -help for "gauntlet run"; did you mean --help?`},
		{[]string{"run", "-f", "x.yaml"}, `unknown flag: -f for "gauntlet run"; "gauntlet run --help" lists the flags`},
		{[]string{"run", "--speed=9"}, `unknown flag: --speed for "gauntlet run"; did you mean --seed?`},
		{[]string{"run", "--seed=x"}, `--seed: found "x"; expected a whole number from 0 to`},
		{[]string{"run", "--seed=010"}, "--seed: found a number that begins with 0; expected a decimal number"},
		{[]string{"run", "--attempts=99999999999999999999"}, `--attempts: found "99999999999999999999"; expected a whole number of at most 18 digits`},
		{[]string{"image", "x", "--programs"}, "--programs: found no value; expected one, such as --programs=VALUE"},
		{[]string{"run", "--attempts=03"}, "--attempts: found a number that begins with 0"},
		{[]string{"run", "--tier"}, "--tier: found no value; expected one of quick, default, full"},
		{[]string{"run", "burst", "-o"}, "--output: found no value; expected one of table, json, yaml"},
		{[]string{"run", "burst.yaml"}, `scenario "burst.yaml": no such file; did you mean burst?`},
		{[]string{"run", "burst", "--audit-dir=cli_test.go", "--subject=" + startsOnce(t)}, "--audit-dir=cli_test.go: found a file; expected a directory"},
		{[]string{"run", "--subject=ours,upstream"}, "which has a comma; expected one subject, such as ours"},
		{[]string{"run", "--tier=fast"}, `--tier: found "fast"; expected`},
		{[]string{"run", "burst", "--tier=quick"}, "--tier selects built-in scenarios: omit --tier, or omit scenario burst"},
		{[]string{"run", "--profile=calm", "--tier=quick"}, "--tier selects built-in scenarios"},
		{[]string{"nightly", "burst", "--tier=quick"}, "--tier selects built-in scenarios"},
		{[]string{"compare", "burst", "--tier=quick"}, "--tier selects built-in scenarios"},
		{[]string{"mutants", "matrix", "R0"}, `mutant "R0": no such mutant`},
		{[]string{"mutants", "matrix", "--scenarios=brust"}, `--scenarios: found "brust"; expected a built-in scenario that can run on mutants; did you mean burst?`},
		{[]string{"mutants", "matrix", "--scenarios=burst,,rollout"}, `--scenarios: found ""; expected a built-in scenario that can run on mutants; "gauntlet list scenarios" lists`},
		{[]string{"mutants", "matrix", "--scenarios=burst,burst"}, `--scenarios: found "burst" twice; name each scenario once`},
		{[]string{"mutants", "R1", "R1"}, `mutant "R1": found the mutant twice; name each mutant once`},
		{[]string{"sweep", "seeds", "--subjects=ours,ours"}, `--subjects: found "ours" twice; name each subject once`},
		{[]string{"sweep", "crash", "burst", "--at=crash,crash"}, `--at: found fault "crash" twice; name each fault once`},
		{[]string{"explore", "burst", "--at=stale,stale"}, `--at: found fault "stale" twice; name each fault once`},
		{[]string{"run", "rollout", "--provider=kind", "--node-image=a b"}, `--node-image: found "a b"; expected the reference of an image, such as kindest/node:v1`},
		{[]string{"fleet", "nightly", "x", "--store=s3://b", "--mount=/x", "--dry-run"}, "--mount has an effect only with --claim"},
		{[]string{"mutants", "matrix", "--scenarios=burst", "--tier=quick"}, "found --scenarios and --tier; use at most one of these flags"},
		{[]string{"coverage", "scenarios", "--seeds=-1"}, "--seeds=-1: expected 1 to 10000"},
		{[]string{"coverage", "scenarios", "--seeds=10001"}, "--seeds=10001: expected 1 to 10000"},
		{[]string{"coverage", "scenarios", "--profile=calm"}, "--profile has no effect without --seeds"},
		{[]string{"coverage", "scenarios", "--prefer-uncovered=/none"}, "--prefer-uncovered has no effect without --seeds"},
		{[]string{"explore", "rollout", "--at=crash", "--delay=2s"}, "--delay has no effect without the faults held, late and stale: add one of them to --at, or omit --delay"},
		{[]string{"run", "rollout", "--provider=kind", "--node-image=.."}, `--node-image: found ".."; expected the reference of an image, such as kindest/node:v1`},
		{[]string{"mutants", "R1", "--profile=calm"}, "--profile has no effect without --seeds"},
		{[]string{"mutants", "R1", "--seeds=1000000000"}, "--seeds=1000000000: expected 0 to 10000"},
		{[]string{"mutants", "matrix", "--scenarios="}, "--scenarios: found no scenario; name one or more"},
		{[]string{"mutants", "matrix", "--budget=-1s"}, "--budget=-1s: expected a duration that is not negative"},
		{[]string{"explore", "burst", "--budget=-1s"}, "--budget=-1s: expected a duration that is not negative"},
		{[]string{"explore", "burst", "--baseline=1000000000"}, "--baseline=1000000000: expected 1 to 1000"},
		{[]string{"baseline", "burst", "--runs=1000000000"}, "--runs=1000000000: expected 1 to 1000"},
		{[]string{"coverage", "scenarios", "burst", "--seeds=3"}, "--seeds counts generated scenarios: omit --seeds, or omit the scenario burst"},
		{[]string{"coverage", "scenarios", "burst", "--tier=quick"}, "--tier selects built-in scenarios"},
		{[]string{"mutants", "tiers", "R1"}, `mutants tiers: found the argument "R1"; expected none`},
		{[]string{"run", "../../../examples/operators/notebook/lost-update.yaml", "--dry-run"}, "workload[0].create.kind: found the kind Notebook of the group example.com, but no CustomResourceDefinition; expected the subject file of an operator"},
		{[]string{"run", "--subject=theirs"}, `--subject: found "theirs"; expected ours, upstream, exec:PATH, image:REF, go:PATH or FILE.yaml`},
		{[]string{"run", "--provider=cloud"}, `--provider: found "cloud"; expected embedded, kind, existing or virtual`},
		{[]string{"up", "--nodes=0"}, "--nodes=0: expected 1 to 20"},
		{[]string{"up", "now"}, `up: found the argument "now"; expected none`},
		{[]string{"down", "--all", "x"}, "found --all and the names x; use either --all or names"},
		{[]string{"run", "nothing"}, `scenario "nothing": no such file, and no built-in scenario of this name; "gauntlet list scenarios" lists`},
		{[]string{"run", "\u2013dry-run"}, "scenario \"\u2013dry-run\": found a dash that is not the character -; did you mean --dry-run?"},
		{[]string{"run", "brust"}, `scenario "brust": no such file, and no built-in scenario of this name; did you mean burst?`},
		{[]string{"run", "x.yaml"}, `scenario "x.yaml": no such file; "gauntlet list`},
		{[]string{"run", ""}, "run: found an empty argument in position 1; expected [SCENARIO…]"},
		{[]string{"run", "--subject=our"}, `expected ours, upstream, exec:PATH, image:REF, go:PATH or FILE.yaml; did you mean ours?`},
		{[]string{"generate", "--duration=soon"}, `--duration: found "soon"; expected a duration such as 500ms`},
		{[]string{"generate", "--duration=9999999h"}, `--duration: found "9999999h"; expected at most 2562047h`},
		{[]string{"baseline", "burst", "--output=none/b.yaml"}, "--output=none/b.yaml: directory none: no such file or directory"},
		{[]string{"baseline", "burst", "--output=cli_test.go"}, "--output=cli_test.go: the file exists already"},
		{[]string{"baseline", "burst", "--output=cli_test.go/b.yaml"}, "--output=cli_test.go/b.yaml: not a directory; expected a new file"},
		{[]string{"baseline", "burst", "--seed=18446744073709551614", "--runs=3"}, "expected at most 18446744073709551613"},
		{[]string{"compare", "burst", "--seed=18446744073709551615", "--pairs=2"}, "expected at most 18446744073709551614"},
		{[]string{"nightly", "--seed=18446744073709551615"}, "expected at most 18446744073709551614"},
		{[]string{"sweep", "seeds", "--to=18446744073709551615"}, "--to=18446744073709551615: expected at most 18446744073709551614"},
		{[]string{"fleet", "collect", "../n", "--store=x"}, `name of the campaign: found "../n"; expected at most 48 lower-case letters`},
		{[]string{"fleet", "nightly", "x", "--claim=c", "--mount=rel", "--dry-run"}, "--mount=rel: expected an absolute path"},
		{[]string{"fleet", "nightly", "../x", "--name=n", "--claim=c", "--dry-run"}, `series: found "../x"; expected at most 200 letters`},
		{[]string{"image"}, "image: found no argument; expected BINARY, or --fleet"},
		{[]string{"image", "x", "--fleet"}, `image: found the argument "x" and --fleet; use one of them`},
		{[]string{"run", "--baseline=x"}, "--baseline: found 0 scenarios on the command line; expected exactly one"},
		{[]string{"compare", "burst", `--subjects="ours,upstream`}, "--subjects: found \"\\\"ours,upstream\"; expected one or more, separated by commas"},
		{[]string{"image", "x", "--push", "--output=x"}, "image: found --push and --output"},
		{[]string{"image", "x", "--output=."}, "--output=.: found a directory; expected a file"},
		{[]string{"image", "x", "--label==v"}, "--label: found an empty key; expected KEY=VALUE"},
		{[]string{"generate", "--seed"}, "--seed: found no value; expected a whole number"},
		{[]string{"run", "file:///etc/passwd"}, `scenario "file:///etc/passwd": found a URL; expected the path of a file, or a built-in scenario`},
		{[]string{"help", "run", "extra"}, `unknown command "extra" for "gauntlet run"; "gauntlet run" has no commands`},
		{[]string{"list", "all"}, "allowed-behaviors, known-issues"},
		{[]string{"run", "burst", "--subject=exec:op.yaml"}, `--subject: found "exec:op.yaml"; expected exec:PATH with the path of a program, or only the path of the subject file: --subject=op.yaml`},
		{[]string{"run", "burst", "--subject=exec:"}, `found "exec:"; expected exec:PATH with the path of a program`},
		{[]string{"run", "burst", "--baseline=" + dir + "/none"}, `none: no such file or directory; expected a baseline`},
		{[]string{"baseline", "burst", "--output=-"}, `--output: found "-"; expected the path of a new file`},
		{[]string{"run", "burst", "--upstream-dir=" + bad}, "directory of binaries " + bad + ": found a file; expected a directory"},
		{[]string{"mutants", "teirs"}, `mutant "teirs": no such mutant; did you mean tiers?`},
		{[]string{"coverage", "scenrios"}, "scenrios: no such file or directory; expected a run directory; did you mean scenarios?"},
		{[]string{"nightly", "burst", "--tier=quick"}, "--tier selects built-in scenarios: omit --tier, or omit scenario burst"},
		{[]string{"nightly", "--profile=steady", "--tier=quick"}, "--tier selects built-in scenarios: omit --tier, or omit --profile"},
		{[]string{"report", filepath.Join(dir, "nonexistent")}, "nonexistent: no such file or directory; expected a run directory, or "},
		{[]string{"report", bad}, "bad.yaml: found a scenario; expected a run directory, or "},
		{[]string{"mutants", "own-brust"}, `mutant "own-brust": no such mutant; did you mean own-burst?`},
		{[]string{"run", bad}, bad + ":3:1: "},
		{[]string{"run", "--profile=breeze"}, `--profile: found "breeze"; expected calm, steady, storm, slow, hours or orders`},
		{[]string{"run", "--seed=7", "--duration=1h"}, "--duration: found 1h0m0s; expected 1s to 2m0s"},
		{[]string{"run", "burst", "--profile=calm"}, "--profile, --duration and --prefer-uncovered apply to generated scenarios only: omit these flags, or omit the scenario burst"},
		{[]string{"run", "burst", "-q", "-v"}, "--quiet and --verbose: use at most one of these flags"},
		{[]string{"run", "burst", "--dry-run", "--provider=kind"}, "the workload needs 1200 pods"},
		{[]string{"run", "burst", "--dry-run", "--keep", "rollout"}, "--keep: the command line selects 2 scenarios; expected exactly one"},
		{[]string{"validate"}, "validate: found no argument; expected SCENARIO…"},
		{[]string{"validate", "burst", bad}, bad + ":3:1: "},
		{[]string{"validate", "nothing"}, `scenario "nothing": no such file, and no built-in scenario`},
		{[]string{"run", "--attempts=0"}, "--attempts=0: expected at least 1"},
		{[]string{"compare", "--attempts=0"}, "--attempts=0: expected at least 1"},
		{[]string{"generate", "--seed=seven"}, `--seed: found "seven"; expected a whole number from 0 to`},
		{[]string{"generate", "--profile=breeze"}, `--profile: found "breeze"; expected calm, steady, storm, slow, hours or orders`},
		{[]string{"generate", "--provider=cloud"}, `--provider: found "cloud"; expected embedded, kind, existing or virtual`},
		{[]string{"generate", "7"}, `generate: found the argument "7"; expected none`},
		{[]string{"nightly", "--duration=0s"}, "--duration: found 0s; expected more than 0"},
		{[]string{"nightly", "--subjects=theirs"}, `--subjects: found "theirs"; expected`},
		{[]string{"nightly", "nothing"}, `scenario "nothing": no such file, and no built-in scenario`},
		{[]string{"nightly", "--seed=x"}, `--seed: found "x"; expected a whole number from 0 to`},
		{[]string{"nightly", "--profile=breeze"}, `--profile: found "breeze"; expected calm, steady, storm, slow, hours or orders`},
		{[]string{"nightly", "--lean=" + bad}, "--prefer-uncovered: " + bad + `: found a scenario; expected a file that "gauntlet coverage --out" wrote`},
		{[]string{"nightly", "burst", "--prefer-uncovered=" + bad}, "--profile and --prefer-uncovered apply to generated scenarios"},
		{[]string{"run", "--parallel=-1"}, "--parallel=-1: expected 1 to 64, or 0"},
		{[]string{"sweep", "seeds", "--parallel=-1"}, "--parallel=-1: expected 1 to 64, or 0"},
		{[]string{"sweep", "crash", "burst", "--parallel=65"}, "--parallel=65: expected 1 to 64, or 0"},
		{[]string{"nightly", "--parallel=65"}, "--parallel=65: expected 1 to 64, or 0"},
		{[]string{"sweep", "seeds", "--from=x"}, `--from: found "x"; expected a whole number from 0 to`},
		{[]string{"sweep", "seeds", "--from=7", "--to=3"}, "--from=7 --to=3: --from must be at least 1"},
		{[]string{"sweep", "seeds", "--to=99999999999"}, "found 99999999999 seeds; expected at most 1000000"},
		{[]string{"sweep", "seeds", "--profile=breeze"}, `--profile: found "breeze"; expected calm, steady, storm, slow, hours or orders`},
		{[]string{"sweep", "seeds", "--subjects=theirs"}, `--subjects: found "theirs"; expected`},
		{[]string{"sweep", "crash"}, "sweep crash: found no argument; expected SCENARIO"},
		{[]string{"sweep", "crash", "nothing"}, `scenario "nothing": no such file, and no built-in scenario`},
		{[]string{"sweep", "crash", "burst", "--at=luck"}, `--at: found unknown fault "luck"; expected`},
		{[]string{"sweep", "crash", "burst", "--from=9", "--to=3"}, "--from=9 --to=3: --from must be at least 1"},
		{[]string{"shrink"}, "shrink: found no argument; expected RUNDIR"},
		{[]string{"shrink", "a", "b"}, `shrink: found 2 arguments ("a", "b"); expected RUNDIR`},
		{[]string{"shrink", bad}, "found a scenario; expected a run directory"},
		{[]string{"check"}, "check: found no argument; expected RUNDIR…"},
		{[]string{"compare", "--subjects=ours"}, "--subjects: the number of subjects is 1 (ours); expected two subjects"},
		{[]string{"compare", "--pairs=0"}, "--pairs=0: expected 1 to 1000"},
		{[]string{"compare", "--pairs=1000000000"}, "--pairs=1000000000: expected 1 to 1000"},
		{[]string{"compare", "--subjects=ours,theirs"}, `--subjects: found "theirs"; expected`},
		{[]string{"compare", "nothing"}, `scenario "nothing": no such file, and no built-in scenario`},
		{[]string{"report"}, "report: found no argument; expected RUNDIR…"},
		{[]string{"check", bad}, "found a scenario; expected a run directory"},
		{[]string{"list", "wishes"}, `"wishes" is unknown: expected one of scenarios, checks`},
		{[]string{"list", "check", "burst-limt"}, `check "burst-limt" is unknown; did you mean burst-limit?`},
		{[]string{"list", "-o", "xml"}, `--output: found "xml"; expected table, json or yaml`},
		{[]string{"explain"}, "explain: found no argument; expected"},
		{[]string{"explain", "max-surg"}, "; did you mean max-surge?"},
		{[]string{"explain", "scenario.fault"}, "; did you mean faults?"},
		{[]string{"version", "now"}, `version: found the argument "now"; expected none`},
		{[]string{"run", "burst", "--kubeconfig=x"}, "--kubeconfig has no effect on the provider embedded"},
		{[]string{"run", "burst", "--displace=x"}, "--controller-switch has no effect on the provider embedded"},
		{[]string{"run", "burst", "--provider=existing", "--node-image=x"}, "--node-image has no effect on the provider existing"},
		{[]string{"compare", "burst", "--context=x"}, "--context has no effect on the provider embedded"},
		{[]string{"nightly", "burst", "--node-image=x"}, "--node-image has no effect on the provider embedded"},
		{[]string{"sweep", "seeds", "--node-image=x"}, "--node-image has no effect on the provider embedded"},
		{[]string{"sweep", "seeds", "--provider=virtual", "--confirm=kind"}, "--confirm=kind: expected embedded or none"},
		{[]string{"sweep", "seeds", "--confirm=none"}, "--confirm has no effect on the provider embedded"},
		{[]string{"image", "--virtual", "DIR/none"}, "found --virtual, --object-store or --programs without --fleet"},
		{[]string{"image", "--fleet", "--programs=DIR", "--programs=DIR"}, "found --programs several times without --push"},
		{[]string{"image", "--fleet", "--programs=DIR"}, "--programs: DIR/gauntlet: no such file or directory"},
		{[]string{"up", "--node-image=x"}, "--node-image has no effect on the provider embedded"},
		{[]string{"up", "--dns=false"}, "--dns has no effect on the provider embedded"},
		{[]string{"run", "rollout", "--provider=existing", "--kubeconfig=/no/kubeconfig"}, "--kubeconfig: /no/kubeconfig: no such file or directory; expected a kubeconfig"},
		{[]string{"up", "--provider=kind", "--upstream-dir=x"}, "--upstream-dir has no effect on the provider kind"},
		{[]string{"up", "--replicas=2"}, "--replicas has no effect without a subject"},
		{[]string{"run", "rollout", "--provider=existing", "--kubeconfig=."}, "--kubeconfig: .: found a directory; expected a regular file"},
		{[]string{"run", "rollout", "--provider=existing", "--kubeconfig=/dev/null"}, "--kubeconfig: /dev/null: found a device"},
		{[]string{"clean", "--provider=existing", "--kubeconfig=cli_test.go"}, "--kubeconfig: cli_test.go:51: expected a kubeconfig: found "},
		{[]string{"compare", "burst", "--parallel=2"}, "--parallel has no effect on compare"},
		{[]string{"sweep", "crash", "crash", "--subjects="}, "--subjects: found no subject; name one or more"},
		{[]string{"mutants", "tiers", "--tree=none"}, "--tree=none: none/harness/mutant: no such file or directory; expected the root directory"},
		{[]string{"clean", "--context=x"}, "--kubeconfig and --context have an effect only with --provider=existing"},
		{[]string{"run", "--seed=1", "--seed=2"}, "--seed: found the flag twice; give the flag only once"},
		{[]string{"run", "--keep", "--keep"}, "found the flag twice"},
		{[]string{"run", "burst", "--out=cli_test.go", "--subject=" + startsOnce(t)}, "--out=cli_test.go: found a file; expected a directory"},
		{[]string{"run", "cli_test.go/x.yaml"}, "reading the scenario: cli_test.go/x.yaml: not a directory"},
		{[]string{"explore", "burst", "--dir=cli_test.go", "--subject=" + startsOnce(t)}, "--dir=cli_test.go: found a file; expected a directory"},
		{[]string{"run", "--out="}, "--out: found an empty value; give the flag a value, or omit the flag"},
		{[]string{"run", "burst", ""}, "run: found an empty argument in position 2; expected [SCENARIO…]"},
		{[]string{"coverage", "scenarios", "--seeds=3", "--tier=quick"}, "found --seeds and --tier; use at most one of these flags"},
		{[]string{"fleet", "acknowledge", "x"}, "--store: found no value; expected one, such as --store=DIRECTORY"},
		{[]string{"image", empty, "--reference=UPPER/Case:v1", "--output=" + dir + "/x.tar"}, "expected REGISTRY/NAME:TAG, such as localhost/manager:dev, with a NAME in lower case"},
		{[]string{"--version", "extra"}, `unknown command "extra" for "gauntlet"`},
		{[]string{"coverage", "scenarios", "--seeds=0"}, "--seeds=0: expected 1 to 10000"},
		{[]string{"run", "burst", "--provider=existing", "--controller-switch=no-such-program"}, "--controller-switch=no-such-program: executable file not found in $PATH; expected the path or name of a program"},
		{[]string{"run", "burst", "--provider=existing", "--controller-switch=/etc/passwd"}, "--controller-switch=/etc/passwd: permission denied; expected"},
		{[]string{"run", "burst", "--provider=existing", "--parallel=2"}, "--parallel=2: an existing cluster allows only 1"},
		{[]string{"run", "burst", "--baseline="}, "--baseline: found an empty value; give the flag a value, or omit the flag"},
		{[]string{"run", "--prefer-uncovered="}, "--prefer-uncovered: found an empty value"},
		{[]string{"run", "--controller-switch="}, "--controller-switch: found an empty value"},
		{[]string{"coverage", dir, "--out="}, "--out: found an empty value"},
		{[]string{"run", "burst", "--subject=exec:" + empty}, "found an empty file"},
		{[]string{"run", "--subject=none.yaml"}, "--subject=none.yaml: found no scenario"},
		{[]string{"run", "burst", "--subject=none.yaml"}, "reading the subject file: none.yaml: no such file"},
		{[]string{"compare", "burst", "--subjects=none.yaml,ours"}, "reading the subject file: none.yaml: no such file"},
		{[]string{"sweep", "crash", "burst", "--subjects=none.yaml"}, "reading the subject file: none.yaml: no such file"},
		{[]string{"run", "burst", "--subject=image:manager:v1"}, "subject image:manager:v1 requires a provider with \"pods that run the subject\"; expected --provider=kind, or --subject=exec:PATH"},
		{[]string{"run", "burst", "--subject=go:."}, "found provider embedded; expected --provider=virtual, or an executable as --subject=exec:PATH"},
		{[]string{"run", "burst", "--subject=go:.", "--provider=virtual"}, "found package main, which no program can import; expected a package with the function Run"},
		{[]string{"run", "burst", "--subject=go:./s.yaml", "--provider=virtual"}, "go:./s.yaml: expected a directory with a Go package: no such file"},
		{[]string{"run", "burst", "--subject=go:cli_test.go", "--provider=virtual"}, "go:cli_test.go: found a file; expected the directory of a Go package"},
		{[]string{"run", "burst", "--subject=go:" + empty + ".d", "--provider=virtual"}, "expected a directory with a Go package: no such file or directory"},
		{[]string{"up", "--subject=image:manager:v1"}, "subject image:manager:v1 requires a provider with \"pods that run the subject\"; expected --provider=kind"},
		{[]string{"up", "--provider=existing"}, `--provider: found "existing"; expected embedded or kind`},
		{[]string{"run", "burst", "--upstream-dir=" + empty + "/none"}, "directory of binaries " + empty + "/none: not a directory"},
		{[]string{"up", "--upstream-dir=" + dir}, "directory of binaries " + dir + ": etcd: no such file or directory"},
		{[]string{"mutants", "--tree=" + dir}, dir + " is not the source tree of gauntlet; run gauntlet in the source tree, or name the tree with --tree"},
		{[]string{"mutants"}, ". is not the source tree of gauntlet"},
		{[]string{"mutants", "--tree=../../..", "--upstream-dir=" + dir, "--out=" + dir}, "directory of binaries " + dir + ": etcd: no such file or directory"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			_, err := command(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			var unfinished *unfinishedError
			if errors.As(err, &unfinished) {
				t.Errorf("error %v is taken for a broken run, want bad usage", err)
			}
		})
	}
}

func want(t *testing.T, out, part string) {
	t.Helper()
	if !strings.Contains(out, part) {
		t.Errorf("no %q in %.300q", part, out)
	}
}

func TestVerdictCode(t *testing.T) {
	for _, test := range []struct {
		verdicts []check.Verdict
		want     int
	}{
		{nil, exitUnknown},
		{[]check.Verdict{check.Pass, check.Pass}, exitPass},
		{[]check.Verdict{check.Pass, check.Unknown}, exitUnknown},
		{[]check.Verdict{check.Unknown, check.Fail, check.Pass}, exitFail},
	} {
		var runs []reports.Run
		for _, verdict := range test.verdicts {
			runs = append(runs, reports.Run{Verdict: verdict})
		}
		if got := verdictCode(runs); got != test.want {
			t.Errorf("%v: exit %d, want %d", test.verdicts, got, test.want)
		}
	}
}

func TestSeedOf(t *testing.T) {
	if got := seedOf(0, 7); got != 7 {
		t.Errorf("the scenario's seed: got %d, want 7", got)
	}
	if got := seedOf(5, 7); got != 5 {
		t.Errorf("the flag's seed: got %d, want 5", got)
	}
	if seedOf(0, 0) == 0 {
		t.Error("no seed was drawn")
	}
}

func TestExitCode(t *testing.T) {
	broken := &unfinishedError{errors.New("the disk is full")}
	for _, test := range []struct {
		verdicts int
		err      error
		want     int
	}{
		{exitPass, nil, exitPass},
		{exitFail, nil, exitFail},
		{exitUnknown, nil, exitUnknown},
		{exitPass, broken, exitUnknown},
		{exitUnknown, broken, exitUnknown},
		{exitFail, broken, exitFail}, // a failed check remains a failure, even if another run was aborted
		{exitUnknown, &unfinishedError{&cluster.RefusedError{}}, exitUsage},
		{exitUnknown, &unfinishedError{fmt.Errorf("building: %w", setup.ErrNoGo)}, exitUsage},
		{exitUnknown, &unfinishedError{fmt.Errorf("creating: %w", setup.ErrCache)}, exitUsage},
		{exitFail, &unfinishedError{setup.ErrNoGo}, exitFail},
		{exitPass, errors.New("unknown flag"), exitUsage},
		{exitPass, fmt.Errorf("--baseline: %w", inputfile.ErrInterrupted), exitUnknown},
	} {
		if got := exitCode(test.verdicts, test.err); got != test.want {
			t.Errorf("verdicts %d, error %v: exit %d, want %d", test.verdicts, test.err, got, test.want)
		}
	}
}

func TestChooseDown(t *testing.T) {
	kept := func(name string) standing.Cluster { return standing.Cluster{Name: name, State: standing.Standing} }
	used := standing.Cluster{Name: "used", State: standing.InUse}
	left := standing.Cluster{Name: "left", State: standing.LeftBehind}
	for _, test := range []struct {
		name          string
		found         []standing.Cluster
		names         []string
		all           bool
		want, wantErr string
	}{
		{name: "the only one", found: []standing.Cluster{kept("a"), used, left}, want: "a"},
		{name: "which one", found: []standing.Cluster{kept("a"), kept("b")}, wantErr: "found 2 standing control planes (a, b); expected exactly one; otherwise, add a NAME or --all"},
		{name: "none", found: []standing.Cluster{used}, wantErr: "found no standing control plane; \"gauntlet up\" starts one"},
		{name: "all", found: []standing.Cluster{kept("a"), used, kept("b")}, all: true, want: "a, b"},
		{name: "all of none", all: true, want: "none"},
		{name: "by name", found: []standing.Cluster{kept("a"), kept("b"), left}, names: []string{"b", "left"}, want: "b, left"},
		{name: "twice", found: []standing.Cluster{kept("a")}, names: []string{"a", "a"}, want: "a"},
		{name: "unknown", found: []standing.Cluster{kept("a")}, names: []string{"other"}, wantErr: `control plane "other" does not exist; standing control planes: a`},
		{name: "in use", found: []standing.Cluster{used}, names: []string{"used"}, wantErr: "used is in use"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chosen, err := chooseDown(test.found, test.names, test.all)
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
			case err != nil || namesOf(chosen) != test.want:
				t.Errorf("chose %s, %v; want %s", namesOf(chosen), err, test.want)
			}
		})
	}
}

// TestEscapeArguments checks that a line break in an argument does not break a message.
func TestEscapeArguments(t *testing.T) {
	for _, test := range []struct {
		text string
		args []string
		want string
	}{
		{"a\nb: no such file", []string{"check", "a\nb"}, `a\nb: no such file`},
		{"--out=a\nb: x", []string{"--out=a\nb"}, `--out=a\nb: x`},
		{"a\nb: x\nc: y", []string{"--out=a\nb"}, `a\nb: x` + "\nc: y"},
		{"x: 1\ny: 2", []string{"\n", "x"}, "x: 1\ny: 2"},
		{"unknown flag: --a\nb for x", []string{"--a\nb=1"}, `unknown flag: --a\nb for x`},
		{"--subject: exec:\n: no such file", []string{"--subject=exec:\n"}, `--subject: exec:\n: no such file`},
	} {
		if got := escapeArguments(test.text, test.args); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestClipWords(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for _, test := range []struct{ name, text, want string }{
		{"short", "a b", "a b"},
		{"many words", strings.Repeat("a ", 1000), strings.Repeat("a ", 1000)},
		{"a long word", "x: " + strings.Repeat("a", 5000) + ": y", "x: " + strings.Repeat("a", wordStart) + "…(4501 bytes)…" + strings.Repeat("a", wordEnd-1) + ": y"},
		{"characters of two bytes", long, long[:wordStart] + "…(1500 bytes)…" + long[:wordEnd]},
	} {
		if got := clipWords(test.text); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestShrinkAdvice checks that errors of "gauntlet shrink" advise no flag that the command lacks.
func TestShrinkAdvice(t *testing.T) {
	flags := &shrinkFlags{}
	flags.runs.provider = "virtual"
	for _, test := range []struct {
		text  string
		ofRun bool
		want  string
	}{
		{"subject exec:x: found provider virtual; expected --provider=embedded", false, "subject exec:x: found provider virtual; shrink repeats the run on its provider virtual: omit the flag, or set another value"},
		{`--subject: found "x"; expected ours`, false, `--subject: found "x"; expected ours`},
		{`--subject: found "x"; expected ours`, true, `the subject of the run in environment.json: found "x"; expected ours`},
	} {
		if got := flags.explain(errors.New(test.text), test.ofRun).Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestWrongState checks that commands exit with status 3 if the environment has no valid directory
// for standing clusters.
func TestWrongState(t *testing.T) {
	for state, want := range map[string]string{
		"relative":   "expected an absolute path in XDG_STATE_HOME",
		file(t, "a"): "found a file; expected a directory in XDG_STATE_HOME",
	} {
		t.Setenv("XDG_STATE_HOME", state)
		for _, name := range []string{"down", "clean"} {
			_, err := command(t, name)
			if exitCode(exitPass, err) != exitUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s with the exit status %d", name, err, want, exitUsage)
			}
		}
	}
}

// TestNoCache checks the exit status if the environment has no valid cache directory.
func TestNoCache(t *testing.T) {
	if code := exitCode(exitPass, &unfinishedError{fmt.Errorf("building: %w", setup.ErrNoCache)}); code != exitUsage {
		t.Errorf("exit status %d, want %d", code, exitUsage)
	}
}

// TestEmptyArgument checks that commands refuse an empty argument. The hidden command of a standing
// cluster accepts it, because "gauntlet up" passes an empty directory by default.
func TestEmptyArgument(t *testing.T) {
	if _, err := command(t, "shrink", ""); err == nil || !strings.Contains(err.Error(), `shrink: found an empty argument in position 1; expected RUNDIR`) {
		t.Errorf("shrink: error %v; want one about the argument", err)
	}
	if _, err := command(t, "host-cluster", "embedded", t.TempDir(), "x", ""); err == nil || !strings.Contains(err.Error(), "argument NODES") {
		t.Errorf("host-cluster: error %v; want one about NODES only", err)
	}
}
