package check

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestEndState(t *testing.T) {
	commit := func(kind history.EventType) *history.Record {
		return &history.Record{Commit: &history.Commit{Type: kind, Object: history.Object{Ref: history.Ref{Resource: "configmaps", Namespace: "ns", Name: "a", UID: "a"}}}}
	}
	fired := func(fault string) *history.Record {
		return &history.Record{Fault: &history.Fault{Name: fault, Event: history.FaultFired}}
	}
	end := &baseline.Baseline{End: baseline.Facts{"configmaps ns/a": "1"}}
	for _, test := range []struct {
		name     string
		baseline *baseline.Baseline
		records  []*history.Record
		want     bool
	}{
		{"an object is missing", end, nil, false},
		{"the same objects", end, []*history.Record{commit(history.Added)}, true},
		{"the object was deleted again", end, []*history.Record{commit(history.Added), commit(history.Deleted)}, false},
		{"a fault that changes nothing that users want", end, []*history.Record{fired("crash")}, false},
		{"a fault that changes what users want", end, []*history.Record{fired("user-edit")}, true},
		{"no baseline", nil, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := NewEndState(test.baseline, -1)
			for _, record := range test.records {
				state.Reached() // a later record must change the result
				state.Observe(record)
			}
			if got := state.Reached(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
