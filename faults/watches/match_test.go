package watches

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestEventSelection checks which events of a sequence a fault's parameters select.
func TestEventSelection(t *testing.T) {
	second := 2
	web := history.Object{Ref: history.Ref{Resource: "pods", Name: "web-1"}, Owners: []history.Owner{{Kind: "ReplicaSet", Name: "web", Controller: true}}}
	db := history.Object{Ref: history.Ref{Resource: "pods", Name: "db-1"}}
	events := []history.Delivery{
		{Type: history.Added, Object: web}, {Type: history.Bookmark}, {Type: history.Added, Object: db},
		{Type: history.Modified, Object: web}, {Type: history.Deleted, Object: web},
	}
	tests := []struct {
		name  string
		match EventMatch
		want  string // one character for each event: x if the parameters select the event
	}{
		{"every event, with bookmarks", EventMatch{Resource: "pods"}, "xxxxx"},
		{"another resource", EventMatch{Resource: "services"}, "....."},
		{"a type", EventMatch{Resource: "pods", Type: "ADDED"}, "x.x.."},
		{"a name", EventMatch{Resource: "pods", Name: "web-*"}, "x..xx"},
		{"an owner", EventMatch{Resource: "pods", Owner: "ReplicaSet/*"}, "x..xx"},
		{"the second match; bookmarks do not count", EventMatch{Resource: "pods", Nth: &second}, "..x.."},
		{"the second match of a name", EventMatch{Resource: "pods", Name: "web-1", Nth: &second}, "...x."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			selection, got := eventSelection{matcher: test.match}, ""
			for i := range events {
				if selection.selects(&history.Request{Resource: "pods"}, &events[i]) {
					got += "x"
				} else {
					got += "."
				}
			}
			if got != test.want {
				t.Errorf("selected %s, want %s", got, test.want)
			}
		})
	}
}
