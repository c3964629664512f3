package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/operator"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// subjectFileCapabilities has what a provider needs to run the program of a subject file. The file
// describes a program under test in YAML.
var subjectFileCapabilities = []cluster.Capability{cluster.OwnsControlPlane, cluster.SubjectAsProcess}

// isSubjectFile reports whether a value of --subject is the path of a subject file, which
// describes a controller in YAML.
func isSubjectFile(value string) bool {
	named := strings.HasPrefix(value, "exec:") || strings.HasPrefix(value, "go:")
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(value)) && !named
}

// checkSubject returns an error if a value of the flag --subject or --subjects is invalid. A valid
// value is a target, such as ours, or the path of a subject file. A subject file is a YAML file that
// describes a program under test. checkSubject does not read the file.
func checkSubject(flag, value string) error {
	if isSubjectFile(value) {
		return nil
	}
	if program, ok := strings.CutPrefix(value, "exec:"); ok && isSubjectFile(program) {
		return fmt.Errorf("--%s: found %q; expected exec:PATH with the path of a program, or only the path of the subject file: --%s=%s", flag, value, flag, program)
	}
	if _, err := subject.ParseTarget(value, "FILE.yaml"); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// loadSubject reads the YAML file that --subject names, and builds and returns the program that
// the file describes. It reads and builds only once, for all runs.
//
// The controllers in the file become the controllers under test of the scenarios.
func (f *runFlags) loadSubject(cmd *cobra.Command, scenarios []*scenario.Scenario) (subject.Target, error) {
	loaded, ok := f.operators[f.subject]
	if !ok {
		var err error
		if loaded, err = operator.Load(cmd.Context(), f.subject); err != nil {
			return subject.Target{}, err
		}
		if len(loaded.Ignored) > 0 {
			f.announce(cmd, "%s: a run does not create these objects of the manifests: %s\n", f.subject, strings.Join(loaded.Ignored, ", "))
		}
		warnOfMissing(cmd, f.subject, loaded)
		if err := subject.VolumesSupported(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: the program finds no files of a service account, of volumes or of certificates at their fixed paths, because this machine does not permit it: %v; see docs/reference/subject-file.md\n", f.subject, err)
		}
		if f.operators == nil {
			f.operators = map[string]*operator.Operator{}
		}
		f.operators[f.subject] = loaded
	}
	return loaded.Target, setOperators(scenarios, f.subject, loaded)
}

// warnOfMissing prints warnings about the parts of a Deployment that the program of a subject file does not
// get. It also prints the mistakes in the manifests that do not change a run. The argument path is the subject
// file, which describes a program under test.
func warnOfMissing(cmd *cobra.Command, path string, loaded *operator.Operator) {
	for _, text := range loaded.Incomplete {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: %s\n", path, text)
	}
	if len(loaded.Missing) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: the program does not get these parts of the Deployment in the manifests: %s; set the fields env and files of the subject file if it needs them\n", path, strings.Join(loaded.Missing, ", "))
	}
}

// checkSubjectFile reads a subject file, which describes a program under test, and builds nothing. It prints
// warnings as a run does. The
// controllers in the file become the controllers under test of the scenarios, except those of a program
// in a Go module.
func checkSubjectFile(cmd *cobra.Command, path string, scenarios []*scenario.Scenario) error {
	checked, err := operator.Check(cmd.Context(), path)
	if err != nil || checked == nil {
		return err
	}
	warnOfMissing(cmd, path, checked)
	return setOperators(scenarios, path, checked)
}

// setOperators sets the controllers under test of scenarios. The argument loaded describes these
// controllers, and comes from the given subject file.
func setOperators(scenarios []*scenario.Scenario, subjectFile string, loaded *operator.Operator) error {
	for _, s := range scenarios {
		if err := setOperator(s, &loaded.Scenario); err != nil {
			return err
		}
		if err := loaded.Target.Definition().CheckReplicas(s.Subject.Replicas); err != nil {
			return fmt.Errorf("%s: scenario %s: %w", subjectFile, s.Name, err)
		}
	}
	return nil
}

// errNothingToReconcile is the error of a scenario that creates no object for the controllers in
// the subject file. A subject file describes the program under test in YAML.
var errNothingToReconcile = errors.New("found no object that the controllers of the subject file reconcile")

// setOperator sets the controllers under test of a scenario. The argument o describes these
// controllers, and comes from a subject file. The workload can still use the kinds that the
// scenario itself declares in its field operator.
//
// setOperator returns an error if the workload creates no object that one of the controllers
// reconciles.
func setOperator(s *scenario.Scenario, o *scenario.Operator) error {
	var kinds []string
	for _, c := range o.Controllers {
		kinds = append(kinds, c.Kind)
	}
	combined := scenario.Operator{Kinds: slices.Clone(o.Kinds), Controllers: o.Controllers}
	if s.Operator != nil {
		for _, kind := range s.Operator.Kinds {
			if !slices.ContainsFunc(o.Kinds, func(k scenario.ExternalKind) bool { return k.Kind == kind.Kind }) {
				combined.Kinds = append(combined.Kinds, kind)
			}
		}
	}
	s.Operator = &combined
	if err := s.Validate(); err != nil {
		return err
	}
	for _, target := range s.CreatedObjects() {
		if slices.Contains(kinds, string(target.Kind)) {
			return validateBeforeStart(s)
		}
	}
	words := nearest.AnyOf(kinds)
	if s.File() == "" { // there is no file to which the user could add a step
		return fmt.Errorf("scenario %s: %w; name the file of a scenario that creates %s, because built-in and generated scenarios test only the controllers of Kubernetes", s.Name, errNothingToReconcile, words)
	}
	return s.Errorf("workload", "%w; add a step that creates %s", errNothingToReconcile, words)
}

// errSubjectFileWithoutScenario returns the error for a command line with a subject file and no
// scenario. A subject file describes the program under test in YAML.
func errSubjectFileWithoutScenario(file string) error {
	return fmt.Errorf("--subject=%s: found no scenario; name the file of a scenario that creates custom resources, because the built-in scenarios test only the controllers of Kubernetes", file)
}

// warnOfFlags prints a warning about the first scenario with fields that become flags of
// kube-controller-manager. The program of a subject file does not get these flags.
func warnOfFlags(warnings io.Writer, subjectFile string, scenarios []*scenario.Scenario) {
	unset := scenario.DefaultSubject()
	for _, s := range scenarios {
		var fields []string
		for _, field := range []struct {
			name string
			set  bool
		}{
			{"qps", s.Subject.QPS != unset.QPS}, {"burst", s.Subject.Burst != unset.Burst},
			{"concurrency", s.Subject.Concurrency != unset.Concurrency}, {"leaseDuration", s.Subject.LeaseDuration != unset.LeaseDuration},
		} {
			if field.set {
				fields = append(fields, "subject."+field.name)
			}
		}
		if len(fields) > 0 {
			fmt.Fprintf(warnings, "warning: %s: the program of %s does not get %s; set flags of the program in the field args of the subject file\n", s.Name, subjectFile, nearest.List(fields, "and"))
			return
		}
	}
}
