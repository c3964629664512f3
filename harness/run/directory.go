package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// directory is the path of a run directory, which contains all files of a run. Its
// subdirectory state contains credentials and databases, and exists only during the run.
type directory string

func (d directory) scenario() string    { return filepath.Join(string(d), "scenario.yaml") }
func (d directory) environment() string { return filepath.Join(string(d), "environment.json") }
func (d directory) baseline() string    { return filepath.Join(string(d), "baseline.yaml") }
func (d directory) history() string     { return filepath.Join(string(d), "history.jsonl") }
func (d directory) logs() string        { return filepath.Join(string(d), "logs") }
func (d directory) diagnostics() string { return filepath.Join(string(d), "diagnostics") }
func (d directory) state() string       { return filepath.Join(string(d), "state") }

// ScenarioFile returns the path of the scenario in a run directory.
func ScenarioFile(path string) string { return directory(path).scenario() }

// HistoryFile returns the path of the history in a run directory.
func HistoryFile(path string) string { return directory(path).history() }

// Environment records how and where a run was made. It is the content of environment.json.
type Environment struct {
	Started  time.Time `json:"started"`
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Subject  string    `json:"subject"`
	// BuiltFromUpstream is the value of [Options.BuiltFromUpstream].
	BuiltFromUpstream bool   `json:"builtFromUpstream,omitempty"`
	Provider          string `json:"provider"`
	// UpstreamDir is the value of the flag --upstream-dir. It is empty if the flag was not
	// set.
	UpstreamDir string `json:"upstreamDir,omitempty"`
	// NodeImage is the value of the flag --node-image. It is empty if the flag was not set.
	NodeImage string `json:"nodeImage,omitempty"`
	// Kubeconfig, Context and ControllerSwitch are the values of --kubeconfig, --context and
	// --controller-switch, which select an existing cluster and switch off its controllers. A
	// value is empty if the flag was not set.
	Kubeconfig       string `json:"kubeconfig,omitempty"`
	Context          string `json:"context,omitempty"`
	ControllerSwitch string `json:"controllerSwitch,omitempty"`
	// Displace is the old name of ControllerSwitch in files of gauntlet v0.2 and earlier.
	Displace string `json:"displace,omitempty"`
	// Command is the command line that started the run, with the program first.
	Command  []string `json:"command"`
	Revision string   `json:"revision"` // version of gauntlet
	Go       string   `json:"go"`       // Go version with which gauntlet was built
	// Versions are the versions of the components of the control plane.
	Versions map[string]string `json:"versions"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
}

// createRunDirectory creates the run directory, and writes the scenario and the environment to
// it. It never reuses a directory: two runs that start in the same second get different
// directories.
func createRunDirectory(o *Options) (directory, error) {
	encoded, err := o.Scenario.Marshal()
	if err != nil {
		return "", err
	}
	dir, err := createDirectory(o.Out, runName(o))
	if err != nil {
		return "", fmt.Errorf("creating the run directory: %w", err)
	}
	environment, err := json.MarshalIndent(Environment{
		Started:           o.Clock.Now().UTC(),
		Scenario:          o.Scenario.Name,
		Seed:              o.Scenario.Seed,
		Subject:           o.Target.String(),
		BuiltFromUpstream: o.BuiltFromUpstream,
		Provider:          o.Provider,
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
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the environment: %w", err)
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

// notAllowedInNames matches the characters that a directory name must not contain.
var notAllowedInNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// runName returns the name of a run directory: start time, scenario, subject and seed.
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

// createDirectory creates the directory name in parent. If it exists, createDirectory appends
// a number to the name.
func createDirectory(parent, name string) (directory, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		path := filepath.Join(parent, name)
		if i > 1 {
			path = fmt.Sprintf("%s-%d", path, i)
		}
		err := os.Mkdir(path, 0o755)
		if err == nil {
			return directory(path), nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
}

// describeMissing returns the error about a file of the run directory. If the file does not
// exist, the error says that the directory is not that of a run.
func (d directory) describeMissing(file string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: found no %s; expected a run directory", d, filepath.Base(file))
	}
	return err
}

// readBaseline reads the baseline from the run directory. It returns nil if there is none.
func (d directory) readBaseline() (*baseline.Baseline, error) {
	b, err := baseline.Read(d.baseline())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// openRunDirectory reads the scenario and the environment from the run directory at path.
func openRunDirectory(path string) (directory, *scenario.Scenario, *Environment, error) {
	dir := directory(path)
	switch info, err := os.Stat(path); {
	case err != nil:
		return "", nil, nil, fmt.Errorf("%s: %w; expected a run directory", path, inputfile.Reason(err))
	case !info.IsDir():
		return "", nil, nil, fmt.Errorf("%s: found a file; expected a run directory", path)
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
	if err := json.Unmarshal(encoded, environment); err != nil {
		return "", nil, nil, fmt.Errorf("%s: expected the environment of a run, in JSON: %w", dir.environment(), err)
	}
	environment.ControllerSwitch = cmp.Or(environment.ControllerSwitch, environment.Displace)
	if len(environment.Command) == 0 {
		return "", nil, nil, fmt.Errorf("%s: found no command; expected the command line of the run", dir.environment())
	}
	return dir, spec, environment, nil
}
