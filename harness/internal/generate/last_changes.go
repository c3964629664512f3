package generate

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// lastChange is a fault that changes one or two pods of an object when users change nothing any
// more. A controller that ignores this change rarely receives another event that makes it look at
// the object again.
type lastChange struct {
	weight       int // the relative probability of the change
	kind         faults.Type
	capabilities []cluster.Capability // what the cluster must support for the parameters
	params       string               // parameters of the fault, as fields of a YAML mapping
}

// lastChanges has the changes that may end a workload. No two of them change pods of the same
// object.
var lastChanges = []lastChange{
	// The controller deletes no pod of the object at this time. Otherwise, a pod without owner could
	// block the controller's expectations (known upstream issue delete-after-owner-change).
	{weight: 3, kind: podfaults.Disown, params: "how: strip, times: 2"},
	{weight: 1, kind: podfaults.Disown, params: "how: give, times: 1"},
	{weight: 2, kind: podfaults.Relabel, params: "times: 1"},
	{weight: 2, kind: podfaults.Churn, params: "action: delete, times: 1"},
	{weight: 1, kind: podfaults.Churn, params: "action: fail, times: 1"},
	{weight: 2, kind: podfaults.Churn, params: "action: unready, times: 1, downtime: 1s", capabilities: []cluster.Capability{cluster.ControlsContainers}},
}

// finish ends the workload with faults that change pods, at most one fault for each object with
// replicas. Each fault begins after all replicas of its object are available. finish uses each item
// of u.last at most once. In a workload of hours, finish changes nothing, because faults may still
// be active.
func (u *users) finish() {
	if u.profile.long {
		return
	}
	u.finishes = len(u.steps)
	owners := u.existing(active)
	u.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	left := slices.Clone(u.last)
	for _, o := range owners {
		if len(left) == 0 {
			return
		}
		i := weighted(u.Rand, left, func(c lastChange) int { return c.weight })
		u.untilAvailable(o)
		if len(u.steps) == u.finishes+1 {
			u.steps[u.finishes].After = finishPause
		}
		u.inject(left[i].kind.Name, scenario.Done, 3*time.Second, fmt.Sprintf("{selector: app=%s, every: 500ms, %s}", o.Name, left[i].params))
		left = slices.Delete(left, i, i+1)
	}
}

// finishPause is longer than most faults that begin near the end of a workload.
const finishPause = 3 * time.Second

// lastChanges returns the last changes that the generator may make on the provider.
func (o *Options) lastChanges() []lastChange {
	return slices.DeleteFunc(slices.Clone(lastChanges), func(c lastChange) bool { return !o.permits(c.capabilities, c.kind) })
}

// changeService appends a step that changes a random Service, some seconds after the last other
// change. If the workload has no Service, it calls the method finish instead.
func (u *users) changeService() {
	before := len(u.steps)
	if u.IntN(2) == 0 {
		u.reselect()
	} else {
		u.republish()
	}
	if len(u.steps) == before { // no Service exists
		u.finish()
		return
	}
	u.steps[before].After = finishPause
}
