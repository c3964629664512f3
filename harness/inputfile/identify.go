package inputfile

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// knownFile is a kind of file that users take for another one.
type knownFile struct {
	pattern   *regexp.Regexp
	name, use string
}

// runFiles are the files that a run writes.
var runFiles = []knownFile{
	{regexp.MustCompile(`(?i)\A\s*<(?:!doctype html|html)`), "an HTML page", "a browser shows it, such as report.html of a run; from a web site, download the file itself"},
	{regexp.MustCompile(`\A\s*<(?:\?xml|testsuites)`), "XML", "junit.xml of a run is for CI systems"},
	{regexp.MustCompile(`\A\{"seq":`), "the history of a run", "gauntlet check reads the directory of the run"},
	{regexp.MustCompile(`\A\{\s*"schema":\s*\d+,\s*"verdict"`), "the verdicts of runs", "gauntlet report reads the directory of the run"},
	{regexp.MustCompile(`\A\{\s*"series":\s*"[^"]*",\s*"campaign":`), "a file that \"gauntlet fleet nightly\" wrote", "gauntlet fleet acknowledge reads it"},
	{regexp.MustCompile(`\A\{\s*"started":[^\n]*\n\s*"scenario":`), "the environment.json of a run", "gauntlet check reads the directory of the run"},
}

// inputs are the files that users write or name in flags.
var inputs = []knownFile{
	{regexp.MustCompile(`(?m)^clusters:(?s:.*)^(?:contexts|users):|^contexts:(?s:.*)^clusters:`), "a kubeconfig", "pass it with the flag --kubeconfig"},
	{regexp.MustCompile(`(?m)^effects:(?s:.*)^end:`), "a baseline", "pass it with the flag --baseline"},
	{regexp.MustCompile(`(?m)^workload:[ \t]*(?:\[.*|#.*)?$`), "a scenario", "gauntlet run reads it"},
	{regexp.MustCompile(`(?m)^subject:(?s:.*)\b(?:exec|module):`), "a subject file", "pass it with the flag --subject"},
	{regexp.MustCompile(`(?m)^apiVersion:[ \t]*["']?v[12]["']?[ \t]*$(?s:.*)^version:|^version:(?s:.*)^apiVersion:[ \t]*["']?v[12]["']?[ \t]*$`), "the Chart.yaml of a Helm chart", "render the chart with helm template"},
	{regexp.MustCompile(`(?m)^(?:nameReference|varReference):`), "a configuration of kustomize", "name the kustomization that uses it"},
	{regexp.MustCompile(`(?m)^\s+operators\.operatorframework\.io\.bundle\.`), "the annotations of an OLM bundle", "name the directory with the manifests of the bundle"},
	{regexp.MustCompile(`(?m)^layout:(?s:.*)^projectName:`), "the PROJECT file of kubebuilder", "name config/default of the project"},
	{regexp.MustCompile(`(?m)^apiVersion:(?s:.*)^kind:`), "a Kubernetes manifest", "list it in subject.manifests of a subject file"},
}

// Mistaken returns an error if a text is that of another known kind of file, such as a baseline. The argument expected
// says what the caller expected, such as "a scenario".
func Mistaken(text []byte, expected string) error {
	return mistaken(slices.Concat(runFiles, inputs), text, expected)
}

// MistakenRunFile is like [Mistaken], but only for the files that a run writes, such as its history.
func MistakenRunFile(text []byte, expected string) error { return mistaken(runFiles, text, expected) }

// Known returns what the file at path is, such as "a scenario". The text is "a file" for an unknown kind of file.
func Known(path string) string {
	start := Start(path)
	for _, known := range slices.Concat(runFiles, inputs) {
		if known.pattern.Match(start) {
			return known.name
		}
	}
	return "a file"
}

// Start returns the first bytes of a file, or nothing if it cannot be read.
func Start(path string) []byte {
	const bytesMax = 4096
	file, err := Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	start, _ := io.ReadAll(io.LimitReader(file, bytesMax))
	return start
}

func mistaken(files []knownFile, text []byte, expected string) error {
	for _, known := range files {
		if !known.pattern.Match(text) {
			continue
		}
		if !strings.HasPrefix(expected, known.name) {
			return fmt.Errorf("found %s; expected %s (%s)", known.name, expected, known.use)
		}
		return nil
	}
	return nil
}
