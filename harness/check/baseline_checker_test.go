package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// withBaseline returns settings with a baseline.
func withBaseline(learnt *baseline.Baseline) Settings {
	settings := genericSettings(widgetController)
	settings.Baseline = learnt
	return settings
}

// oneConfigMap is a baseline in which the subject creates one ConfigMap.
var oneConfigMap = &baseline.Baseline{
	Scenario: "test", Runs: 3, Written: []string{configMaps},
	End:     baseline.Facts{"configmaps ns/c": "1", "configmaps ns/c data/size": "1", "configmaps ns/c data/time": baseline.Any},
	Effects: baseline.Facts{"configmaps ns/c": "1 created, 0 deleted, 0 lost"},
}

// createConfigMap lets the process create the ConfigMap c with a value.
func createConfigMap(h *historyBuilder, size string) *history.Object {
	return h.apply("create", "", objectOf(configMaps, "c", `{"data":{"size":"`+size+`","time":"now"}}`))
}

// fires records that a fault fired.
func (h *historyBuilder) fires(name string) {
	h.append(history.Record{Fault: &history.Fault{Name: name, Event: history.FaultFired}})
}
