package embedded

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

//go:embed stages.yaml
var stagesSource string

var stagesTemplate = template.Must(template.New("stages.yaml").Delims("<<", ">>").Option("missingkey=error").Parse(stagesSource))

// renderStages returns the configuration of KWOK.
// Its Stage objects define how a simulated kubelet changes nodes and pods, and when.
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
