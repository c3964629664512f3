package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestScenarios checks every YAML code block that contains a complete scenario. The scenario
// must be valid.
func TestScenarios(t *testing.T) {
	checked := 0
	for _, d := range readDocuments(t) {
		for _, b := range d.blocks {
			if b.language != "yaml" || !strings.HasPrefix(b.lines[0], "name:") {
				continue
			}
			name := fmt.Sprintf("%s:%d", d.path, b.line)
			s, err := scenario.Parse(name, []byte(strings.Join(b.lines, "\n")))
			if err == nil {
				err = run.Validate(s)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("found no scenario; expected some")
	}
}
