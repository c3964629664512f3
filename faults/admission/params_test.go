package admission

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
)

func TestNameParams(t *testing.T) {
	faulttest.Params(t, Name, []faulttest.Case{
		{Text: "{}"},
		{Text: "{owner: Deployment/web-*, template: same, times: 100}"},
		{Text: "owner: web", Want: `s.yaml:1:8: name-taken.owner: found "web"; expected a kind and a name, such as Deployment/web-*`},
		{Text: "owner: 'Deployment/[a'", Want: `s.yaml:1:8: name-taken.owner: found "Deployment/[a"; expected a kind and a name, such as Deployment/web-*`},
		{Text: "template: mine", Want: `s.yaml:1:11: name-taken.template: unknown value "mine"; expected one of other, same`},
		{Text: "times: 0", Want: "s.yaml:1:8: name-taken.times: 0 is out of bounds; expected 1 to 100"},
	})
}

func TestQuotaParams(t *testing.T) {
	faulttest.Params(t, Quota, []faulttest.Case{
		{Text: "{}"},
		{Text: "left: 10000"},
		{Text: "left: -1", Want: "s.yaml:1:7: quota-exhausted.left: -1 is out of bounds; expected 0 to 10000"},
	})
}

func TestPolicyParams(t *testing.T) {
	faulttest.Params(t, Policy, []faulttest.Case{
		{Text: "{}"},
		{Text: "{resource: replicasets.apps, reason: Forbidden}"},
		{Text: "resource: configmaps"},
		{Text: "resource: widgets", Want: `s.yaml:1:11: admission-denied.resource: unknown value "widgets"; expected one of ` + strings.Join(faults.Resources, ", ") + ", or the resource of a kind in the field operator.kinds of the scenario"},
		{Text: "reason: Why", Want: `s.yaml:1:9: admission-denied.reason: unknown value "Why"; expected one of Invalid, Forbidden`},
	})
}

func TestPendingParams(t *testing.T) {
	faulttest.Params(t, Pending, []faulttest.Case{
		{Text: "{}"},
		{Text: "prefix: web-"},
		{Text: "prefix: -x", Want: `s.yaml:1:9: pod-pending.prefix: found "-x"; expected a prefix of pod names such as web-: at most 63 lower-case letters, digits and -, not starting with -`},
		{Text: "prefix: 0a"},
		{Text: "prefix: " + strings.Repeat("a", 63)},
		{Text: "prefix: a" + strings.Repeat("-", 63), Want: `s.yaml:1:9: pod-pending.prefix: found "a` + strings.Repeat("-", 63) + `"; expected a prefix of pod names such as web-: at most 63 lower-case letters, digits and -, not starting with -`},
		{Text: `prefix: "')"`, Want: `s.yaml:1:9: pod-pending.prefix: found "')"; expected a prefix of pod names such as web-: at most 63 lower-case letters, digits and -, not starting with -`},
	})
}
