package embedded

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// stagesSource is the content of stages.yaml, the Go template of KWOK's configuration file.
//
//go:embed stages.yaml
var stagesSource string

// stagesTemplate is the parsed form of [stagesSource]. The template's delimiters are << and >>,
// because the file also contains templates in {{ }}, which KWOK renders.
var stagesTemplate = template.Must(template.New("stages.yaml").Delims("<<", ">>").Option("missingkey=error").Parse(stagesSource))

// renderStages returns the content of KWOK's configuration file. The Stage objects in this file
// define when and how the simulated kubelets change nodes and pods.
func renderStages(opts Options) ([]byte, error) {
	var out bytes.Buffer
	values := struct {
		Options
		Collapsed string
	}{opts, cluster.PodCollapsed}
	if err := stagesTemplate.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("rendering the KWOK configuration: %w", err)
	}
	return out.Bytes(), nil
}
