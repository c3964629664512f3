package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// directory is the path of a run directory, which contains all files of a run. The subdirectory
// state, which exists only during the run, contains credentials and databases.
type directory string

func (d directory) scenario() string    { return filepath.Join(string(d), "scenario.yaml") }
func (d directory) environment() string { return filepath.Join(string(d), "environment.json") }
func (d directory) baseline() string    { return filepath.Join(string(d), "baseline.yaml") }
func (d directory) history() string     { return filepath.Join(string(d), "history.jsonl") }
func (d directory) logs() string        { return filepath.Join(string(d), "logs") }
func (d directory) diagnostics() string { return filepath.Join(string(d), "diagnostics") }
func (d directory) state() string       { return filepath.Join(string(d), "state") }

// progress returns the path of the file to which gauntlet-virtual writes its progress messages. The
// gauntlet process reads them after the run.
func (d directory) progress() string { return filepath.Join(d.state(), "progress.jsonl") }

// recordError returns the path of the file to which gauntlet-virtual writes the error that ended the
// run. The gauntlet process reads it after the run.
func (d directory) recordError() string { return filepath.Join(d.state(), "error.txt") }

// ScenarioFile returns the path of the file scenario.yaml in the run directory at path.
func ScenarioFile(path string) string { return directory(path).scenario() }

// BaselineFile returns the path of the file baseline.yaml in the run directory at path. The file
// exists only if the run was compared with runs without faults (the baseline).
func BaselineFile(path string) string { return directory(path).baseline() }

// HistoryFile returns the path of the file history.jsonl in the run directory at path.
func HistoryFile(path string) string { return directory(path).history() }

// Environment is the content of environment.json in a run directory. It says how and where the run
// took place.
type Environment struct {
	Started  time.Time `json:"started"`
	Scenario string    `json:"scenario"`
	// ScenarioSHA256 is the SHA-256 of scenario.yaml, in hexadecimal. It is empty in old files.
	ScenarioSHA256 string `json:"scenarioSHA256,omitempty"`
	Seed           uint64 `json:"seed"`
	Subject        string `json:"subject"`
	// BuiltFromUpstream is true if the program under test is a modified kube-controller-manager,
	// such as a mutant; see [Options].
	BuiltFromUpstream bool   `json:"builtFromUpstream,omitempty"`
	Provider          string `json:"provider"`
	// Baseline is true if the run was compared with runs without faults. The run directory then has
	// the file baseline.yaml.
	Baseline bool `json:"baseline,omitempty"`
	// UpstreamDir is the value of the flag --upstream-dir, or "" if the flag was not set.
	UpstreamDir string `json:"upstreamDir,omitempty"`
	// NodeImage is the value of the flag --node-image, or "" if the flag was not set.
	NodeImage string `json:"nodeImage,omitempty"`
	// Kubeconfig, Context and ControllerSwitch are the values of --kubeconfig, --context and
	// --controller-switch. These flags select an existing cluster and turn off the cluster's own
	// controllers. An empty value means that the flag was not set.
	Kubeconfig       string `json:"kubeconfig,omitempty"`
	Context          string `json:"context,omitempty"`
	ControllerSwitch string `json:"controllerSwitch,omitempty"`
	// Displace is the old name of ControllerSwitch in files of gauntlet v0.2 and earlier.
	Displace string `json:"displace,omitempty"`
	// Command is the command line that started the run. The first element is the program.
	Command  []string `json:"command"`
	Revision string   `json:"revision"` // version of gauntlet that made the run
	Go       string   `json:"go"`       // Go version with which gauntlet was built
	// Versions contains the version of each control plane component, such as "kubernetes":
	// "v1.36.3".
	Versions map[string]string `json:"versions"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
	// Rules contains the RBAC rules that were granted to a program with a subject file. It is empty
	// for all other subjects, and for a program that has all permissions.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// createRunDirectory creates a run directory and returns its path. It writes scenario.yaml and
// environment.json. If the run is compared with runs without faults (the baseline), it also writes
// baseline.yaml. It never reuses a directory: two runs that start in the same second get different
// directories.
func createRunDirectory(o *Options) (directory, error) {
	encoded, err := o.Scenario.Marshal()
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(o.Out)
	if err == nil {
		path, err = outputfile.CreateDirectory(path, runName(o))
	}
	dir := directory(path)
	if err != nil {
		return "", fmt.Errorf("%s: cannot create a run directory: %w", o.Out, inputfile.Reason(err))
	}
	environment, err := json.MarshalIndent(Environment{
		Started:           o.Clock.Now().UTC(),
		Scenario:          o.Scenario.Name,
		ScenarioSHA256:    digest(encoded),
		Seed:              o.Scenario.Seed,
		Subject:           o.Target.String(),
		BuiltFromUpstream: o.BuiltFromUpstream,
		Provider:          o.Provider,
		Baseline:          o.Baseline != nil,
		UpstreamDir:       o.UpstreamDir,
		NodeImage:         o.NodeImage,
		Kubeconfig:        o.Existing.Kubeconfig,
		Context:           o.Existing.Context,
		ControllerSwitch:  o.Existing.ControllerSwitch,
		Command:           os.Args,
		Revision:          o.Revision,
		Go:                runtime.Version(),
		Versions:          o.Versions,
		OS:                runtime.GOOS,
		Arch:              runtime.GOARCH,
		CPUs:              runtime.NumCPU(),
		Rules:             grantedRules(o.Target.Definition()),
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding environment.json: %w", err)
	}
	if o.Baseline != nil {
		err = o.Baseline.Write(dir.baseline())
	}
	err = errors.Join(
		err,
		os.WriteFile(dir.scenario(), encoded, 0o644),
		os.WriteFile(dir.environment(), append(environment, '\n'), 0o644),
		os.Mkdir(dir.logs(), 0o755),
	)
	if err != nil {
		return "", fmt.Errorf("writing to the run directory: %w", err)
	}
	return dir, nil
}

// notAllowedInNames matches characters that the name of a run directory must not contain, such
// as slashes.
var notAllowedInNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// runName returns the name of a run directory, such as 20260102T030405-burst-ours-seed5. It
// contains the start time, the scenario, the name of the controllers under test (ours) and the
// seed.
func runName(o *Options) string {
	target := o.Target.String()
	if kind, path, ok := strings.Cut(target, ":"); ok {
		target = kind + "-" + filepath.Base(path)
	} else if strings.Contains(target, "/") { // a subject file
		target = strings.TrimSuffix(filepath.Base(target), filepath.Ext(target))
	}
	return fmt.Sprintf("%s-%s-%s-seed%d",
		o.Clock.Now().UTC().Format("20060102T150405"), o.Scenario.Name,
		strings.Trim(notAllowedInNames.ReplaceAllString(target, "-"), "-"), o.Scenario.Seed)
}

// describeMissing returns the error to report if a file of the run directory cannot be read. The
// argument file is the path of the file, and err is the error of the read. If err says that the
// file does not exist, the result says that d is not a run directory. Otherwise, the result is
// err.
func (d directory) describeMissing(file string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: found no %s; expected a run directory", d, filepath.Base(file))
	}
	return err
}

// readBaseline returns the baseline in the run directory. A baseline says what runs of the
// scenario without faults have in common. The result is nil if the run was not compared with a
// baseline.
func (d directory) readBaseline(environment *Environment) (*baseline.Baseline, error) {
	b, err := baseline.Read(d.baseline())
	switch {
	case err == nil && b.Scenario != environment.Scenario:
		return nil, fmt.Errorf("%s: found the baseline of scenario %s; expected scenario %s, which environment.json names", d.baseline(), b.Scenario, environment.Scenario)
	case !errors.Is(err, os.ErrNotExist):
		return b, err
	case environment.Baseline:
		return nil, fmt.Errorf("%w; expected the baseline with which the run was compared", err)
	}
	return nil, nil
}

// digest returns the SHA-256 of a file's content, in hexadecimal.
func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// checkSameRun returns an error if scenario.yaml and environment.json in the run directory belong to
// different runs.
func (d directory) checkSameRun(spec *scenario.Scenario, environment *Environment) error {
	if environment.Scenario != spec.Name {
		return fmt.Errorf("%s: found scenario %s; expected scenario %s, which environment.json names", d.scenario(), spec.Name, environment.Scenario)
	}
	if spec.Seed != 0 && spec.Seed != environment.Seed {
		return fmt.Errorf("%s: seed: found %d; expected %d, which environment.json names", d.scenario(), spec.Seed, environment.Seed)
	}
	if text, err := inputfile.Read(d.scenario()); err == nil && environment.ScenarioSHA256 != "" && digest(text) != environment.ScenarioSHA256 {
		return fmt.Errorf("%s: found a file with the SHA-256 %s; expected %s, which environment.json names; the file was changed after the run; restore it, or run the changed scenario with gauntlet run", d.scenario(), digest(text), environment.ScenarioSHA256)
	}
	return nil
}

// sameRun returns an error if the start record of a history is that of another run. The argument may
// be nil.
func (e *Environment) sameRun(start *history.Start) error {
	if start == nil {
		return nil
	}
	describe := func(scenario string, seed uint64, subject, provider string) string {
		const none = "without a name"
		return fmt.Sprintf("scenario %s, seed %d, subject %s, provider %s", cmp.Or(scenario, none), seed, cmp.Or(subject, none), cmp.Or(provider, none))
	}
	found := describe(start.Scenario, start.Seed, start.Subject, start.Provider)
	if want := describe(e.Scenario, e.Seed, e.Subject, e.Provider); found != want {
		return fmt.Errorf("found the history of %s; expected %s, which environment.json names", found, want)
	}
	if start.Time.IsZero() {
		return errors.New("start.time: found none; expected when the run began")
	}
	return nil
}

// openRunDirectory reads scenario.yaml and environment.json from the run directory at path, and
// returns their contents. It returns an error if path is not a run directory.
func openRunDirectory(path string) (directory, *scenario.Scenario, *Environment, error) {
	dir := directory(path)
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", nil, nil, fmt.Errorf("%s: %w; expected a run directory", path, inputfile.Reason(err))
	case !info.IsDir():
		return "", nil, nil, fmt.Errorf("%s: found %s; expected a run directory", path, inputfile.Known(path))
	}
	spec, err := scenario.Load(dir.scenario())
	if err != nil {
		return "", nil, nil, dir.describeMissing(dir.scenario(), err)
	}
	encoded, err := inputfile.Read(dir.environment())
	if err != nil {
		return "", nil, nil, dir.describeMissing(dir.environment(), err)
	}
	environment := new(Environment)
	if err := history.Unmarshal(encoded, environment); err != nil {
		place, reason := inputfile.Locate(dir.environment(), encoded, err, environment)
		return "", nil, nil, fmt.Errorf("%s: expected the JSON object that gauntlet writes to this file, with the command, subject and seed of the run: %s", place, reason)
	}
	environment.ControllerSwitch = cmp.Or(environment.ControllerSwitch, environment.Displace)
	if len(environment.Command) == 0 {
		return "", nil, nil, fmt.Errorf("%s: found no field command; expected the command line of the run", dir.environment())
	}
	for _, field := range []struct{ name, value string }{
		{"scenario", environment.Scenario}, {"scenarioSHA256", environment.ScenarioSHA256}, {"subject", environment.Subject}, {"provider", environment.Provider},
	} {
		if strings.Contains(field.value, "\n") {
			return "", nil, nil, fmt.Errorf("%s: %s: found %q; expected a text of one line", dir.environment(), field.name, field.value)
		}
	}
	return dir, spec, environment, nil
}
