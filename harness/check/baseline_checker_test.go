package check

import (
	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// withBaseline returns the settings of the tests, with the given baseline.
func withBaseline(learnt *baseline.Baseline) Settings {
	settings := genericSettings(widgetController)
	settings.Baseline = learnt
	return settings
}

// oneConfigMap is a baseline in which the subject creates one ConfigMap, named c.
var oneConfigMap = &baseline.Baseline{
	Scenario: "test", Runs: 3, Written: []string{configMaps},
	End:     baseline.Facts{"configmaps ns/c": "1", "configmaps ns/c data/size": "1", "configmaps ns/c data/time": baseline.Any},
	Effects: baseline.Facts{"configmaps ns/c": "1 created, 0 deleted, 0 lost"},
}

// readyConfigMap is a baseline in which the subject writes the status of one ConfigMap, named c.
var readyConfigMap = &baseline.Baseline{
	Scenario: "test", Runs: 3, Written: []string{configMaps, configMaps + "/status"},
	End:     baseline.Facts{"configmaps ns/c": "1", "configmaps ns/c status/ready": "true"},
	Effects: baseline.Facts{"configmaps ns/c": "1 created, 0 deleted, 0 lost"},
}

// createConfigMap records that the process creates the ConfigMap c successfully. The parameter
// size is the value in its data.
func createConfigMap(h *historyBuilder, size string) *history.Object {
	return h.apply("create", "", objectOf(configMaps, "c", `{"data":{"size":"`+size+`","time":"now"}}`))
}

// unmet records that the awaited condition of step 0 was never met. With late true, the run had first
// ended its faults.
func (h *historyBuilder) unmet(late bool) {
	if late {
		h.append(history.Record{Step: &history.Step{Event: history.StepLate, Detail: "await c"}})
	}
	h.append(history.Record{Step: &history.Step{Event: history.StepFailed, Detail: "await c", Error: "not ready", Awaited: &history.Ref{Resource: configMaps, Namespace: namespace, Name: "c"}}})
}

// fires records that the fault with the given type, such as user-edit, fired.
func (h *historyBuilder) fires(name string) {
	h.append(history.Record{Fault: &history.Fault{Name: name, Event: history.FaultFired}})
}
