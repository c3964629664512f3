package watches

import (
	"net/url"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func TestParams(t *testing.T) {
	resources := strings.Join(faults.Resources, ", ")
	tests := []struct {
		faultType  faults.Type
		text, want string
	}{
		{Stall, "{resource: pods}", ""},
		{Stall, "{resource: po}", `s.yaml:1:12: watch-stall.resource: unknown value "po"; expected pods`},
		{Delay, "{resource: pods, delay: 1s, type: ADDED, name: web-*, owner: ReplicaSet/web, nth: 2}", ""},
		{Skip, "{resource: pods}", ""},
		{Skip, "{resource: pods, type: MODIFIED, name: web, nth: 2, within: 10m}", ""},
		{Skip, "{name: web}", "s.yaml: watch-skip.resource: not given; expected one of " + resources},
		{Skip, "{resource: pods, type: BOOKMARK}", `s.yaml:1:24: watch-skip.type: unknown value "BOOKMARK"; expected one of ADDED, MODIFIED, DELETED; for bookmarks, use the fault bookmark-loss`},
		{Skip, `{resource: pods, name: "["}`, `s.yaml:1:24: watch-skip.name: found "[", which is not a valid glob; expected each [ to be closed, such as web-[a-c]*`},
		{Skip, "{resource: pods, owner: web}", `s.yaml:1:25: watch-skip.owner: found "web"; expected a kind and a name, such as ReplicaSet/web-*`},
		{Skip, "{resource: pods, nth: 0}", "s.yaml:1:23: watch-skip.nth: 0 is out of bounds; expected 1 to 1000000"},
		{Skip, "{resource: pods, within: 0s}", "s.yaml:1:26: watch-skip.within: 0s is out of bounds; expected 1ms to 10m0s"},
		{Bookmarks, "{resource: pods}", ""},
		{Bookmarks, "{}", "s.yaml: bookmark-loss.resource: not given; expected one of " + resources},
		{Stale, "{resource: pods}", ""},
		{Stale, "{}", "s.yaml: stale-list.resource: not given; expected one of " + resources},
		{End, "{resource: pods, how: expired, blind: 4m, every: 10ms, times: 1000000}", ""},
		{End, "{resource: pods}", "s.yaml: watch-end.how: not given; expected one of closed, reset, disconnected, expired"},
		{End, "{resource: pods, how: shut}", `s.yaml:1:23: watch-end.how: unknown value "shut"; expected one of closed, reset, disconnected, expired`},
		{End, "{how: reset}", "s.yaml: watch-end.resource: not given; expected one of " + resources},
		{End, "{resource: pods, how: reset, blind: 5m}", "s.yaml:1:37: watch-end.blind: 5m0s is out of bounds; expected 0s to 4m0s"},
		{End, "{resource: pods, how: reset, every: 1ms}", "s.yaml:1:37: watch-end.every: 1ms is out of bounds; expected 10ms to 10m0s, or 0s"},
		{End, "{resource: pods, how: reset, times: -1}", "s.yaml:1:37: watch-end.times: -1 is out of bounds; expected 0 to 1000000"},
	}
	for _, test := range tests {
		params, err := scenario.ParseParams("s.yaml", test.faultType.Name, []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := test.faultType.New(params); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s %s:\n got %s\nwant %s", test.faultType.Name, test.text, got, test.want)
		}
	}
}

// TestMayAnswerAtVersion checks for which queries of a list request a stale-list fault changes
// the answer.
func TestMayAnswerAtVersion(t *testing.T) {
	s := &stale{version: 100}
	for query, want := range map[string]bool{
		"":                   false,
		"limit=500":          false,
		"resourceVersion=0":  true,
		"resourceVersion=99": true,
		"resourceVersion=100&resourceVersionMatch=NotOlderThan": true,
		"resourceVersion=101":                              false,
		"resourceVersion=99&resourceVersionMatch=Exact":    false,
		"resourceVersion=99&limit=500":                     false,
		"resourceVersion=0&limit=500":                      true,
		"resourceVersion=0&continue=abc":                   false,
		"resourceVersion=last":                             false,
		"watch=true&sendInitialEvents=true":                true,
		"sendInitialEvents=true&resourceVersion=101":       false,
		"sendInitialEvents=true&resourceVersion=50&watch=": true,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.mayAnswerAtVersion(values); got != want {
			t.Errorf("%q may be old: %v, want %v", query, got, want)
		}
	}
}
