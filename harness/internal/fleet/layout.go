package fleet

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// These are the names of the files in the store. Each attempt, which is one pod, has the files of
// a Prow build, so that TestGrid and Spyglass can read them.
//
//	CAMPAIGN/campaign.json                                   the campaign
//	CAMPAIGN/INDEX/ATTEMPT/started.json                      in Prow's format, when the pod starts
//	CAMPAIGN/INDEX/ATTEMPT/progress.json                     the run in progress
//	CAMPAIGN/INDEX/ATTEMPT/artifacts/results/SEED-SUBJECT.json   a verdict
//	CAMPAIGN/INDEX/ATTEMPT/artifacts/runs/SEED-SUBJECT.tar.gz    the directory of a run that did not pass
//	CAMPAIGN/INDEX/ATTEMPT/artifacts/journals/SEED-SUBJECT-CHECK        the state of a shrink or exploration in progress
//	CAMPAIGN/INDEX/ATTEMPT/artifacts/coverage.json           how often faults acted in the runs of the pod
//	CAMPAIGN/INDEX/ATTEMPT/artifacts/junit_runs.xml          when the pod ends
//	CAMPAIGN/INDEX/ATTEMPT/finished.json                     in Prow's format, when the pod ends
const (
	campaignName = "campaign.json"
	startedName  = "started.json"
	progressName = "progress.json"
	finishedName = "finished.json"
	coverageName = "artifacts/coverage.json"
	junitName    = "artifacts/junit_runs.xml"
	resultsDir   = "artifacts/results"
	runsDir      = "artifacts/runs"
	journalsDir  = "artifacts/journals"

	resultSuffix = ".json"
	runSuffix    = ".tar.gz"
)

// indexDir returns the name of the directory with the results of one completion index of the Job,
// such as "nightly/00007". Sorted by name, the directories are in the order of the indexes.
func indexDir(campaign string, index int) string {
	return path.Join(campaign, fmt.Sprintf("%05d", index))
}

// base returns the beginning of the names of the run's files in the store, such as "12-ours" for
// seed 12.
func (u Unit) base() string {
	base := strconv.FormatUint(u.Seed, 10) + "-" + escapeName(u.Subject)
	for _, part := range []string{u.Check, u.Scenario} {
		if part != "" {
			base += "-" + part
		}
	}
	return base
}

// escapeName replaces characters such as "/" in the name of a subject by underscores, for file
// names. A subject is, for example, "exec:/bin/x".
func escapeName(subject string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:\\ ", r) {
			return '_'
		}
		return r
	}, subject)
}

// resultFile is the name of a file with the result of one run, split into its parts. The file is in
// the store of the campaign's results.
type resultFile struct {
	name    string // the whole name of the file
	attempt string // the directory of the attempt, as a name in the store
	base    string // the seed and the name of the controllers under test; see [Unit.base]
}

// parseResult splits the name of a file in the store into its parts. The second result is false if
// the file does not contain the result of a run.
func parseResult(name string) (resultFile, bool) {
	attempt, file, ok := strings.Cut(name, "/"+resultsDir+"/")
	base, isResult := strings.CutSuffix(file, resultSuffix)
	return resultFile{name, attempt, base}, ok && isResult
}

// started is the content of started.json, in the format of Prow.
type started struct {
	Timestamp int64             `json:"timestamp"` // the start time, in seconds since 1970
	Node      string            `json:"node,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// finished is the content of finished.json, in the format of Prow.
type finished struct {
	Timestamp int64             `json:"timestamp"` // the end time, in seconds since 1970
	Passed    bool              `json:"passed"`
	Result    string            `json:"result"` // SUCCESS, FAILURE or ABORTED
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// progress is the content of progress.json, which says what a pod is doing. If the pod is killed,
// the file shows during which run.
type progress struct {
	// InProgress is the run that the pod is making. It is nil between two runs.
	InProgress *Unit `json:"inProgress,omitempty"`
	// Journal is how often this pod has saved the journal of that run. A journal is the progress of
	// a shrink or exploration. Journal is 0 for a single run.
	Journal int `json:"journal,omitempty"`
	// Runs is the number of results that this pod has written.
	Runs int `json:"runs"`
	// Seconds is the time since the start of the pod's program.
	Seconds float64 `json:"seconds"`
}

// decode decodes JSON that was read from the store of a campaign's results. Errors contain the
// file's name.
func decode[T any](name string, content []byte) (T, error) {
	var value T
	if err := json.Unmarshal(content, &value); err != nil {
		place, reason := inputfile.Locate(name, content, err, value)
		return value, fmt.Errorf("%s of the campaign: expected JSON that gauntlet writes: %s", place, reason)
	}
	return value, nil
}
