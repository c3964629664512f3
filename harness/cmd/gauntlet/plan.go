package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// plannedRun is one run that "gauntlet run --dry-run" prints instead of making it.
type plannedRun struct {
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	Provider string `json:"provider"`
	Seed     uint64 `json:"seed"`
}

// printPlan prints which runs the command would make, and makes none of them. It returns an error
// if the flags or the subject file are wrong, or if the provider does not support one of the scenarios.
// Without --upstream-dir, it does not look for the executables of ours and upstream.
func (f *runFlags) printPlan(cmd *cobra.Command, format outputFormat, scenarios []*scenario.Scenario) error {
	target, provider, err := f.check(scenarios)
	if err != nil {
		return err
	}
	if err := f.checkProvider(cmd, target, provider); err != nil {
		return err
	}
	if info, err := os.Stat(f.upstreamDir); f.upstreamDir != "" && (err != nil || !info.IsDir()) {
		found := "no such directory"
		if err == nil {
			found = "a file"
		}
		return fmt.Errorf("--upstream-dir=%s: found %s; expected a directory with the binaries of etcd, Kubernetes and KWOK", f.upstreamDir, found)
	}
	if f.upstreamDir != "" { // setUpPrograms then builds nothing
		if err := setUpPrograms(cmd.Context(), provider, target, f.upstreamDir); err != nil {
			return fmt.Errorf("--upstream-dir: %w", err)
		}
	}
	if isSubjectFile(f.subject) {
		if err := checkSubjectFile(cmd, f.subject, scenarios); err != nil {
			return err
		}
	}
	rows := [][]string{{"SCENARIO", "SUBJECT", "PROVIDER", "SEED"}}
	for _, s := range scenarios {
		o := run.Options{Scenario: s, Target: target, Provider: provider.Name}
		if f.keepUp {
			o.KeepUp = f.newTerminal(cmd).keepUpUntilInterrupt
		}
		if err := o.Check(); err != nil {
			return err
		}
		planned := plannedRun{Scenario: s.Name, Subject: cmp.Or(target.String(), f.subject), Provider: provider.Name, Seed: s.Seed}
		rows = append(rows, []string{planned.Scenario, planned.Subject, planned.Provider, strconv.FormatUint(planned.Seed, 10)})
		if format == asTable {
			continue
		}
		if err := writeDocument(cmd, format, func(w io.Writer) error { return json.NewEncoder(w).Encode(planned) }); err != nil {
			return err
		}
	}
	if format != asTable {
		return nil
	}
	return writeText(cmd, formatTable(rows, terminalWidth(cmd.OutOrStdout())))
}
