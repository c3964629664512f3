package embedded

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// stagesSource is the template of the KWOK configuration.
//
//go:embed stages.yaml
var stagesSource string

// stagesTemplate is the parsed template of the KWOK configuration. Its delimiters are << and
// >>, because the file also contains templates in {{ }}, which KWOK renders.
var stagesTemplate = template.Must(template.New("stages.yaml").Delims("<<", ">>").Option("missingkey=error").Parse(stagesSource))

// renderStages returns the configuration file of KWOK. The Stage objects in the file define when
// simulated kubelets change nodes and pods, and how.
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
