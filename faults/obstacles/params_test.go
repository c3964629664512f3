package obstacles

import (
	"testing"

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
