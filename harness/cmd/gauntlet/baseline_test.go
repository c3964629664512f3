package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestLoadBaseline checks for which values of --baseline loadBaseline returns an error.
func TestLoadBaseline(t *testing.T) {
	burst, other, edited := &scenario.Scenario{Name: "burst"}, &scenario.Scenario{Name: "other"}, &scenario.Scenario{Name: "burst", Cluster: scenario.Cluster{Nodes: 5}}
	disturbed := &scenario.Scenario{Name: "burst", Description: "With faults.", Seed: 7, Faults: []scenario.Fault{{Name: "restart"}}, Operator: &scenario.Operator{}}
	workload := burst.WorkloadHash()
	path := filepath.Join(t.TempDir(), "baseline.yaml")
	withHash := path + ".hash"
	learnt := baseline.Baseline{Scenario: "burst", Runs: 3, End: baseline.Facts{"pods ns/web-*": "3"}, Written: []string{"pods"}}
	hashed := learnt
	hashed.Workload = workload
	if err := errors.Join(learnt.Write(path), hashed.Write(withHash)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path      string
		scenarios []*scenario.Scenario
		want      string // text of the error; "" if none is expected
	}{
		{"", []*scenario.Scenario{burst, other}, ""},
		{path, []*scenario.Scenario{burst}, ""},
		{path, []*scenario.Scenario{burst, other}, "--baseline: the command line selects 2 scenarios; expected exactly one"},
		{path, []*scenario.Scenario{other}, "found the baseline of scenario burst; expected the baseline of scenario other"},
		{path, []*scenario.Scenario{edited}, ""},
		{withHash, []*scenario.Scenario{disturbed}, ""},
		{withHash, []*scenario.Scenario{edited}, "field workload: found " + workload + ", the hash of another workload; expected "},
		{path + ".none", []*scenario.Scenario{burst}, "no such file"},
	} {
		_, err := loadBaseline(test.path, test.scenarios)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("--baseline=%s of %d scenarios: error %v; want %q", test.path, len(test.scenarios), err, test.want)
		}
	}
}

// TestOtherSubject checks when a run with --baseline prints a warning about the subject.
func TestOtherSubject(t *testing.T) {
	for _, test := range []struct {
		learnt *baseline.Baseline
		want   string
	}{
		{nil, ""},
		{&baseline.Baseline{}, ""},
		{&baseline.Baseline{Subject: "/x/v1.yaml"}, ""},
		{&baseline.Baseline{Subject: "/x/v2.yaml"}, "found the baseline of the subject /x/v2.yaml; expected /x/v1.yaml; the checks also report how the two subjects differ without faults"},
	} {
		if got := otherSubject(test.learnt, "/x/v1.yaml"); got != test.want {
			t.Errorf("baseline %v: warning %q; want %q", test.learnt, got, test.want)
		}
	}
}

// TestBaselineKeepsFiles checks that "gauntlet baseline" does not replace an existing file. A user
// may have edited the file.
func TestBaselineKeepsFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := (&baseline.Baseline{Scenario: "burst", Runs: 3}).Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "baseline", "burst", "--output="+path); err == nil || !strings.Contains(err.Error(), "the file exists already; name a new file") {
		t.Errorf("error %v; want that the file exists", err)
	}
}

// TestBaselineProgress checks that the progress lines of each run without faults have the run's
// number.
func TestBaselineProgress(t *testing.T) {
	f := baselineFlags{runs: 2, run: runFlags{subject: startsOnce(t), provider: providers.Embedded, seed: 1}}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	var progress bytes.Buffer
	cmd.SetErr(&progress)
	burst, err := loadScenario(t.Context(), "burst", &progress)
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.options(cmd, burst)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		o.Progress("begins")
	}
	for _, want := range []string{"burst without faults, 1 of 2: begins", "burst without faults, 2 of 2: begins"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress %q; want %q", progress.String(), want)
		}
	}
}
