package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func newValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate SCENARIO…",
		Short: "Validate scenarios without running them",
		Long: `Validate scenarios without running them: the fields, the parameters of faults and the
IDs of checks. SCENARIO is a YAML file, the name of a built-in scenario, or "-" for
standard input.

For each valid scenario, the command prints the providers that support it. For all
others, it prints each mistake with file, line and column, and exits with status 3.`,
		Example: `  gauntlet validate my-scenario.yaml
  gauntlet generate --seed=7 | gauntlet validate -`,
		ValidArgsFunction: completeScenarios,
		Args:              cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			flags := runFlags{stdin: &interruptibleReader{cmd.Context(), cmd.InOrStdin()}}
			var failed []error
			for _, name := range names {
				loaded, err := flags.loadScenarios(cmd.Context(), []string{name}, cmd.ErrOrStderr())
				if err == nil {
					err = run.Validate(loaded[0])
				}
				if err != nil {
					failed = append(failed, err)
					continue
				}
				if err := writeText(cmd, fmt.Sprintf("%s: valid; providers: %s\n", name, supportedBy(loaded[0]))); err != nil {
					return err
				}
			}
			return errors.Join(failed...)
		},
	}
}

// supportedBy returns the names of the providers that support a scenario, separated by commas. If
// no provider supports it, the result is "none".
func supportedBy(s *scenario.Scenario) string {
	var names []string
	for _, name := range providers.Names() {
		if run.Supported(s, name) == nil {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// readScenario returns the scenario that it reads from standard input. It prints a warning for
// each old name in the scenario.
func (f *runFlags) readScenario(_ context.Context, _ string, warnings io.Writer) (*scenario.Scenario, error) {
	data, err := io.ReadAll(io.LimitReader(f.stdin, scenario.SizeLimit+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w; expected a scenario in YAML", inputfile.Reason(err))
	}
	second := f.stdinRead
	f.stdinRead = true
	switch {
	case len(data) == 0 && second:
		return nil, errors.New("reading the scenario from standard input: found nothing; \"-\" may occur only once, because standard input can be read only once")
	case len(data) == 0:
		return nil, errors.New("reading the scenario from standard input: found nothing; expected a scenario in YAML")
	}
	if len(data) > scenario.SizeLimit {
		return nil, fmt.Errorf("standard input: found more than %[1]d bytes; expected at most %[1]d bytes", scenario.SizeLimit)
	}
	s, err := scenario.Parse("standard input", data, run.ValidateBeforeStart)
	if err == nil {
		printWarnings(s, warnings)
	}
	return s, err
}

// interruptibleReader reads from in until ctx ends. With this type, gauntlet can be interrupted
// while it waits for input from a terminal or a pipe.
type interruptibleReader struct {
	ctx context.Context
	in  io.Reader
}

func (r *interruptibleReader) Read(into []byte) (int, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // after an interrupt, this goroutine ends with the process
		data := make([]byte, len(into))
		n, err := r.in.Read(data)
		done <- result{data[:n], err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, interrupted(r.ctx)
	case read := <-done:
		return copy(into, read.data), read.err
	}
}
