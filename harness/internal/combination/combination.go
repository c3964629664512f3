// Package combination counts the combinations of pods, operations and faults in scenarios. An
// example of a combination is slow pods, a scale operation during a rollout, and late watch events.
// The package reads scenario files, not runs. Whether the three things happen at the same time
// depends on the run.
package combination

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Combination says what happens to a Deployment or a Service in a scenario. An example is a
// Deployment whose pods are slow to start. Users scale it during a rollout, while a fault delays
// the watch events of pods. In the table that [Table.WriteText] prints, each combination is one
// cell.
type Combination struct {
	// Object is what the combination happens to: "Service" for a Service. A Deployment is named by
	// its update strategy, "RollingUpdate" or "Recreate".
	Object string
	Pods   Pods   // how the object's pods behave
	Change Change // what users do to the object
	Watch  Watch  // what faults do to the watches of the controllers under test
}

// Service is the value of [Combination.Object] for a Service. For a Deployment, the value is the
// update strategy.
const Service = "Service"

// Pods says how the pods of a Deployment or a Service behave, such as "slow to start".
type Pods string

// These values of Pods say how the pods of a Deployment or a Service behave, such as a slow start.
const (
	Prompt    Pods = "prompt"        // the pods start and end promptly, and no fault makes them unready
	SlowStart Pods = "slow to start" // podStartDelay is at least 500 ms (slow)
	SlowEnd   Pods = "slow to end"   // podStopDelay is at least 500 ms (slow), or pods have a finalizer
	NeverUp   Pods = "never ready"   // a fault keeps pods pending or unready until the fault ends
	LateUp    Pods = "ready late"    // a fault makes pods unready or restarts them for a time
)

// slow is the podStartDelay or podStopDelay from which on pods count as slow.
const slow = 500 * time.Millisecond

// Change is what users do to a Deployment or a Service. For a Service, changes of a Deployment
// whose pods the Service selects count as well.
type Change string

// These values of Change say what users do to a Deployment or a Service. Reselect is a new selector
// of a Service. Each other change happens while a rollout of the Deployment is in progress.
const (
	PausedInRollout     Change = "pause in mid-rollout"
	ScaledInRollout     Change = "scale in mid-rollout"
	RolledBackInRollout Change = "rollback in mid-rollout"
	Reselect            Change = "new selector"
)

// Watch says what faults do to the watches of the controllers under test. For example, a fault
// delays the watch events of pods.
type Watch string

// These values of Watch say what faults do to the watches of the controllers under test. Each value
// is a column of the table that [Table.WriteText] prints.
//
// A value such as PodsLag means that a fault delays or stops the watch events of that kind. Relist
// means that a fault makes the controllers under test list objects of one of these kinds again.
const (
	PodsLag        Watch = "pods lag"
	ReplicaSetsLag Watch = "ReplicaSets lag"
	DeploymentsLag Watch = "Deployments lag"
	ServicesLag    Watch = "Services lag"
	EndpointsLag   Watch = "Endpoints lag"
	Relist         Watch = "relist"
)

// These lists contain the values of the fields of [Combination], in the order in which
// [Table.WriteText] prints them.
var (
	allPods           = []Pods{Prompt, SlowStart, SlowEnd, NeverUp, LateUp}
	rolloutChanges    = []Change{PausedInRollout, ScaledInRollout, RolledBackInRollout}
	deploymentWatches = []Watch{PodsLag, ReplicaSetsLag, DeploymentsLag, Relist}
	serviceWatches    = []Watch{PodsLag, ServicesLag, EndpointsLag, Relist}
)

// lagging maps a resource to the Watch value for delayed watch events of that resource.
var lagging = map[string]Watch{
	"pods": PodsLag, "replicasets.apps": ReplicaSetsLag, "deployments.apps": DeploymentsLag,
	"services": ServicesLag, "endpoints": EndpointsLag,
}

// all returns all possible combinations, in the order in which [Table.WriteText] prints them.
func all() []Combination {
	var combinations []Combination
	add := func(object string, changes []Change, watches []Watch) {
		for _, pods := range allPods {
			for _, change := range changes {
				for _, watch := range watches {
					combinations = append(combinations, Combination{object, pods, change, watch})
				}
			}
		}
	}
	add(string(scenario.RollingUpdate), rolloutChanges, deploymentWatches)
	add(string(scenario.Recreate), rolloutChanges, deploymentWatches)
	add(Service, append(slices.Clone(rolloutChanges), Reselect), serviceWatches)
	return combinations
}

// Of returns the combinations that occur in a scenario, in the order in which [Table.WriteText]
// prints them.
func Of(s *scenario.Scenario) []Combination {
	w := workloadOf(s)
	watches := watchesOf(s)
	return slices.DeleteFunc(all(), func(c Combination) bool {
		return !watches[c.Watch] || !slices.ContainsFunc(w.objects, func(o *object) bool {
			return o.kind == c.Object && slices.Contains(o.changes, c.Change) && slices.Contains(podsOf(s, o), c.Pods)
		})
	})
}

// object is a Deployment or a Service that the workload of a scenario creates.
type object struct {
	scenario.Target
	kind     string            // "Service" or the update strategy, as in [Combination.Object]
	labels   map[string]string // labels of the Deployment's pods; for a Service, of the pods that it selects, if known
	selector map[string]string // selector of the Service; nil for a Deployment
	changes  []Change          // what users do to the object
	rolling  bool              // true after a rollout has begun, until a step has awaited its completion
}

// workload contains the Deployments and Services that the steps of a scenario create and change.
type workload struct{ objects []*object }

// workloadOf returns the Deployments and Services of a scenario, with the changes that the workload
// steps make to them.
func workloadOf(s *scenario.Scenario) *workload {
	w := &workload{}
	for _, step := range s.Workload {
		w.do(step.Operation)
		if step.Await == nil {
			continue
		}
		if o := w.find(step.Await.Target); o != nil && step.Await.Until == scenario.Complete {
			o.rolling = false
		}
	}
	return w
}

// do records the effect of a workload step's operation, such as create, scale or rollout, on the
// objects.
func (w *workload) do(operation scenario.Operation) {
	switch op := operation.(type) {
	case *scenario.Create:
		w.create(op)
	case *scenario.Rollout:
		if o := w.find(op.Target); o != nil {
			o.rolling = true
		}
	case *scenario.Pause:
		w.change(op.Target, PausedInRollout)
	case *scenario.Scale:
		w.change(op.Target, ScaledInRollout)
	case *scenario.Rollback:
		w.change(op.Target, RolledBackInRollout)
	case *scenario.Select:
		if o := w.find(op.Target); o != nil && o.kind == Service {
			o.selector = op.Selector
			o.changes = append(o.changes, Reselect)
		}
	}
}

// create adds the Deployment or Service that a create operation creates. It ignores other kinds.
func (w *workload) create(op *scenario.Create) {
	switch op.Kind {
	case scenario.Deployment:
		strategy := op.Strategy
		if strategy == "" {
			strategy = scenario.RollingUpdate
		}
		w.objects = append(w.objects, &object{Target: op.Target, kind: string(strategy), labels: op.Labels})
	case scenario.Service:
		w.objects = append(w.objects, &object{Target: op.Target, kind: Service, selector: op.Selector})
	}
}

// change records a change, such as a pause, of a Deployment during a rollout. It also records the
// change for each Service that selects the Deployment's pods. It ignores a change outside of a
// rollout.
func (w *workload) change(target scenario.Target, change Change) {
	deployment := w.find(target)
	if deployment == nil || !deployment.rolling {
		return
	}
	deployment.changes = append(deployment.changes, change)
	for _, o := range w.objects {
		if o.kind == Service && len(o.selector) > 0 && labels.SelectorFromSet(o.selector).Matches(labels.Set(deployment.labels)) {
			o.changes = append(o.changes, change)
			o.labels = deployment.labels
		}
	}
}

// find returns the object that the workload created with the kind and the name of the target. If
// there are several, it returns the last one. It returns nil if there is none.
func (w *workload) find(target scenario.Target) *object {
	for _, o := range slices.Backward(w.objects) {
		if o.Target == target {
			return o
		}
	}
	return nil
}

// podsOf returns how the pods of a Deployment or Service behave in a scenario. The result is
// Prompt alone if nothing makes the pods slow or unready.
func podsOf(s *scenario.Scenario, o *object) []Pods {
	var found []Pods
	if s.Cluster.PodStartDelay >= slow {
		found = append(found, SlowStart)
	}
	if s.Cluster.PodStopDelay >= slow {
		found = append(found, SlowEnd)
	}
	for _, fault := range s.Faults {
		if pods, ok := churn(fault); ok && selects(fault, o) {
			found = append(found, pods)
		}
	}
	if len(found) == 0 {
		return []Pods{Prompt}
	}
	return found
}

// churn returns how a fault makes pods behave, for example [SlowEnd]. It returns false for a fault
// that does not change the behavior of pods.
func churn(fault scenario.Fault) (Pods, bool) {
	switch action := fault.Params.Text("action"); {
	case fault.Name == "pod-pending":
		return NeverUp, true
	case fault.Name != "pod-churn":
		return "", false
	case action == "linger":
		return SlowEnd, true
	case action == "unready" && untilEnd(fault):
		return NeverUp, true
	case action == "unready" || action == "restart":
		return LateUp, true
	}
	return "", false
}

// untilEnd reports whether a fault makes pods unready until the fault ends. It returns true if the
// fault's parameter "downtime" is at least as long as fault.For. It returns false if one of the two
// is not set.
func untilEnd(fault scenario.Fault) bool {
	downtime, err := time.ParseDuration(fault.Params.Text("downtime"))
	return err == nil && fault.For > 0 && downtime >= fault.For
}

// selects reports whether a fault on pods may act on the pods of a Deployment or Service. A fault
// selects pods by a name prefix or by a label selector. A prefix must consist of the pods' label
// "app" and a hyphen. If the workload does not say the pods' labels, selects uses the selector of
// the Service instead.
func selects(fault scenario.Fault, o *object) bool {
	set := o.labels
	if set == nil {
		set = o.selector
	}
	if prefix := fault.Params.Text("prefix"); prefix != "" {
		return set["app"]+"-" == prefix
	}
	selector, err := labels.Parse(fault.Params.Text("selector"))
	return err == nil && selector.Matches(labels.Set(set))
}

// watchesOf returns, as a set, what the faults of a scenario do to the watches of the controllers
// under test.
func watchesOf(s *scenario.Scenario) map[Watch]bool {
	found := map[Watch]bool{}
	for _, fault := range s.Faults {
		switch fault.Name {
		case "watch-delay", "watch-stall":
			found[lagging[fault.Params.Text("resource")]] = true
		case "watch-end":
			_, known := lagging[fault.Params.Text("resource")]
			found[Relist] = found[Relist] || known && fault.Params.Text("how") == "expired"
		case "restart", "crash", "stale-list", "api-server-restart", "etcd-restart":
			found[Relist] = true
		}
	}
	return found
}
