package reports

import (
	"os"
	"slices"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// traitsOf maps the checks of contracts in the tests to the trait to which they apply. The
// other checks are general.
var traitsOf = map[string]kube.Trait{
	"burst-limit":      kube.BurstLimit,
	"converged":        kube.OwnsPods,
	"endpoints-exact":  kube.PublishesAddresses,
	"expectations":     kube.Expectations,
	"rollout-complete": kube.RollsOut,
	"scale-down-order": kube.RanksVictims,
}

func TestMain(m *testing.M) {
	scopeOf = func(id string) string {
		if traitsOf[id] == "" {
			return generalScope
		}
		return contractScope
	}
	appliesTo = func(id string, controllers []kube.Controller) bool {
		return traitsOf[id] == "" || slices.ContainsFunc(controllers, func(c kube.Controller) bool { return c.Has(traitsOf[id]) })
	}
	os.Exit(m.Run())
}
