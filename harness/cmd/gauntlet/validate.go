package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func newValidate() *cobra.Command {
	var subjectFile string
	cmd := &cobra.Command{
		Use:   "validate SCENARIO…",
		Short: "Validate scenarios without running them",
		Long: `Validate scenarios without running them: the fields, the parameters of faults and the
IDs of checks. SCENARIO is a YAML file, the name of a built-in scenario, or "-" for
standard input.

With --subject, validate also the subject file and its manifests, and each scenario
with the kinds of that file. SCENARIO may then be omitted.

For each valid scenario, the command prints the providers that support it. For all
others, it prints each mistake with file, line and column, and exits with status 3.`,
		Example: `  gauntlet validate my-scenario.yaml
  gauntlet validate my-scenario.yaml --subject=my-operator.yaml
  gauntlet generate --seed=7 | gauntlet validate -`,
		ValidArgsFunction: completeScenarios,
		Args: func(cmd *cobra.Command, names []string) error {
			if cmd.Flags().Changed("subject") {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, names)
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			if cmd.Flags().Changed("subject") && !isSubjectFile(subjectFile) {
				return fmt.Errorf("--subject: found %q; expected the path of a subject file, such as my-operator.yaml", subjectFile)
			}
			flags := runFlags{stdin: &interruptibleReader{cmd.Context(), cmd.InOrStdin()}, subject: subjectFile}
			subject, err := validateSubject(cmd, subjectFile)
			failed := []error{err}
			for _, name := range names {
				text, err := flags.validateScenario(cmd, name, subject)
				failed = append(failed, err)
				if err := writeText(cmd, text); err != nil {
					return err
				}
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().StringVar(&subjectFile, "subject", "", "validate this subject `file`, too; a subject file describes a controller that is not built in")
	return cmd
}

// validateSubject validates a subject file, which describes a program under test, and prints the controllers
// of the program. It returns nil if the file is invalid, or if the path is empty. For a program in a Go
// module, it also returns nil.
func validateSubject(cmd *cobra.Command, path string) (*operator.Operator, error) {
	if path == "" {
		return nil, nil
	}
	checked, err := operator.Check(cmd.Context(), path)
	if err != nil {
		return nil, err
	}
	if checked == nil {
		return nil, writeText(cmd, fmt.Sprintf("%s: valid; the manifests of the Go module are not checked\n", path))
	}
	warnOfMissing(cmd, path, checked)
	var controllers []string
	for _, c := range checked.Scenario.Controllers {
		controllers = append(controllers, fmt.Sprintf("%s of %s", c.Name, c.Kind))
	}
	ignored := ""
	if len(checked.Ignored) > 0 {
		ignored = "; a run does not create these objects of the manifests: " + strings.Join(checked.Ignored, ", ")
	}
	return checked, writeText(cmd, fmt.Sprintf("%s: valid; controllers: %s%s\n", path, strings.Join(controllers, ", "), ignored))
}

// validateScenario validates a scenario. It returns a text with the providers that support it. If the argument
// subject is not nil, the scenario is also validated with the kinds of this program under test.
func (f *runFlags) validateScenario(cmd *cobra.Command, name string, subject *operator.Operator) (string, error) {
	loaded, err := f.loadScenarios(cmd.Context(), []string{name}, cmd.ErrOrStderr())
	if err != nil {
		return "", err
	}
	if subject != nil {
		if err := setOperators(loaded, f.subject, subject); err != nil {
			return "", err
		}
		warnOfFlags(cmd.ErrOrStderr(), f.subject, loaded)
	}
	if err := run.Validate(loaded[0]); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: valid; providers: %s\n", name, f.supportedBy(loaded[0])), nil
}

// supportedBy returns the names of the providers that support a scenario, separated by commas. With
// --subject, they support subject files, too. If there is no such provider, the result is "none".
func (f *runFlags) supportedBy(s *scenario.Scenario) string {
	names := providers.Names()
	if f.subject != "" {
		names = providers.With(subjectFileCapabilities...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return run.Supported(s, name) != nil })
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// readScenario returns the scenario that it reads from standard input. It prints a warning for
// each old name in the scenario.
func (f *runFlags) readScenario(warnings io.Writer) (*scenario.Scenario, error) {
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
	s, err := scenario.Parse("standard input", data, validatorFor(f.subject))
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
