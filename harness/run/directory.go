package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// directory is the run directory: everything that is known of a run. Credentials
// and databases are in state, which does not outlive the run.
type directory string

func (d directory) scenario() string    { return filepath.Join(string(d), "scenario.yaml") }
func (d directory) environment() string { return filepath.Join(string(d), "environment.json") }
func (d directory) history() string     { return filepath.Join(string(d), "history.jsonl") }
func (d directory) logs() string        { return filepath.Join(string(d), "logs") }
func (d directory) diagnostics() string { return filepath.Join(string(d), "diagnostics") }
func (d directory) state() string       { return filepath.Join(string(d), "state") }

// ScenarioFile is what was asked of the run in a directory.
func ScenarioFile(path string) string { return directory(path).scenario() }

// HistoryFile is the history of the run in a directory.
func HistoryFile(path string) string { return directory(path).history() }

// Environment is what a run ran on.
type Environment struct {
	Started  time.Time `json:"started"`
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Subject  string    `json:"subject"`
	Provider string    `json:"provider"`
	// UpstreamDir is the directory of binaries that was given, if one was.
	UpstreamDir string `json:"upstreamDir,omitempty"`
	// NodeImage is the image of a kind node that was given, if one was.
	NodeImage string `json:"nodeImage,omitempty"`
	// Kubeconfig, Context and Displace are those of an existing cluster, as given.
	Kubeconfig       string `json:"kubeconfig,omitempty"`
	Context          string `json:"context,omitempty"`
	ControllerSwitch string `json:"displace,omitempty"`
	// Command is the command line that made the run.
	Command  []string `json:"command"`
	Revision string   `json:"revision"` // of gauntlet
	Go       string   `json:"go"`
	// Versions are those of the control plane's parts.
	Versions map[string]string `json:"versions"`
	OS       string            `json:"os"`
	Arch     string            `json:"arch"`
	CPUs     int               `json:"cpus"`
}

// createRunDirectory makes the run directory and writes into it what is asked. It takes
// nothing that exists: two runs of the same second get two directories.
func createRunDirectory(o *Options) (directory, error) {
	encoded, err := o.Scenario.Marshal()
	if err != nil {
		return "", fmt.Errorf("writing the scenario %s: %w", o.Scenario.Name, err)
	}
	dir, err := createDirectory(o.Out, runName(o))
	if err != nil {
		return "", fmt.Errorf("making the run directory: %w", err)
	}
	environment, err := json.MarshalIndent(Environment{
		Started:          o.Clock.Now().UTC(),
		Scenario:         o.Scenario.Name,
		Seed:             o.Scenario.Seed,
		Subject:          o.Target.String(),
		Provider:         o.Provider,
		UpstreamDir:      o.UpstreamDir,
		NodeImage:        o.NodeImage,
		Kubeconfig:       o.Existing.Kubeconfig,
		Context:          o.Existing.Context,
		ControllerSwitch: o.Existing.ControllerSwitch,
		Command:          os.Args,
		Revision:         o.Revision,
		Go:               runtime.Version(),
		Versions:         o.Versions,
		OS:               runtime.GOOS,
		Arch:             runtime.GOARCH,
		CPUs:             runtime.NumCPU(),
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("describing the environment: %w", err)
	}
	err = errors.Join(
		os.WriteFile(dir.scenario(), encoded, 0o644),
		os.WriteFile(dir.environment(), append(environment, '\n'), 0o644),
		os.Mkdir(dir.logs(), 0o755),
	)
	if err != nil {
		return "", fmt.Errorf("filling the run directory: %w", err)
	}
	return dir, nil
}

// notAllowedInNames is what does not go into the name of a directory.
var notAllowedInNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// runName says when, what, whom and with which seed.
func runName(o *Options) string {
	target := o.Target.String()
	if kind, path, ok := strings.Cut(target, ":"); ok {
		target = kind + "-" + filepath.Base(path)
	}
	return fmt.Sprintf("%s-%s-%s-seed%d",
		o.Clock.Now().UTC().Format("20060102T150405"), o.Scenario.Name,
		strings.Trim(notAllowedInNames.ReplaceAllString(target, "-"), "-"), o.Scenario.Seed)
}

// createDirectory makes a directory of the given name, or of the name and a number.
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

// openRunDirectory reads what a run directory says of its run.
func openRunDirectory(path string) (directory, *scenario.Scenario, *Environment, error) {
	dir := directory(path)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", nil, nil, fmt.Errorf("%s: expected a run directory: %w", path, notDirectory(err))
	}
	asked, err := scenario.Load(dir.scenario())
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: no run directory: %w", path, err)
	}
	encoded, err := os.ReadFile(dir.environment())
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: no run directory: %w", path, err)
	}
	environment := new(Environment)
	if err := json.Unmarshal(encoded, environment); err != nil {
		return "", nil, nil, fmt.Errorf("%s: expected a run's environment: %w", dir.environment(), err)
	}
	if len(environment.Command) == 0 {
		return "", nil, nil, fmt.Errorf("%s: expected the command line of the run", dir.environment())
	}
	return dir, asked, environment, nil
}

func notDirectory(err error) error {
	if err == nil {
		return errors.New("it is a file")
	}
	return err
}
