package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Pending is the fault type pod-pending: it prevents the scheduler from assigning pods to
// nodes.
var Pending = faults.Type{
	Name:        "pod-pending",
	Description: "New pods of the workload stay Pending: a ValidatingAdmissionPolicy denies the bindings by which the scheduler assigns them to nodes.",
	Healing:     "The fault deletes the policy and waits until the API server admits bindings. The scheduler retries each pod within 10 s.",
	Needs:       []cluster.Capability{cluster.OwnsControlPlane, cluster.ControlsAdmission},
	Params: []faults.Param{
		{Name: "prefix", Description: "The prefix of the pod names, such as web- for the pods of owner web.", Bounds: "lower-case letters, digits and -, not starting with -, at most 63 characters", Default: "all pods of the namespace"},
	},
	New:    newPending,
	Sample: func(*rand.Rand, faults.SampleInput) any { return &PendingParams{} },
}

// PendingParams contains the parameters that a scenario sets for a pod-pending fault. The Params
// field of [Pending] documents each parameter.
type PendingParams struct {
	Prefix string `yaml:"prefix"`
}

// prefixPattern matches the permitted values of [PendingParams.Prefix]. It excludes quotation
// marks, because the fault inserts the prefix into a CEL expression.
var prefixPattern = regexp.MustCompile("^([a-z0-9][a-z0-9-]{0,62})?$")

// newPending returns a pod-pending fault with the given parameters, or an error if the
// prefix is invalid.
func newPending(params faults.Params) (faults.Fault, error) {
	var p PendingParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if !prefixPattern.MatchString(p.Prefix) {
		return nil, params.Errorf("prefix", "found %q; expected a prefix of pod names such as web-: at most 63 lower-case letters, digits and -, not starting with -", p.Prefix)
	}
	return &pending{denyPolicy: denyPolicy{
		resource: schema.GroupResource{Resource: "pods/binding"},
		// Only a Binding has a target. The policy also denies the ConfigMap of the probe.
		expression: fmt.Sprintf("has(object.target) && !object.metadata.name.startsWith('%s')", p.Prefix),
		message:    "bindings of pods are denied " + injectedFault,
		reason:     metav1.StatusReasonForbidden,
	}}, nil
}

// pendingInterval is the time between two list requests for pods. It is short, so that the fault
// sees each denied binding.
//
// A pod's PodScheduled condition contains the denial until the scheduler retries the pod, which
// takes at least one second.
const pendingInterval = 100 * time.Millisecond

// pending is a fault of type pod-pending. It makes the API server deny the bindings that assign
// pods to nodes.
type pending struct {
	denyPolicy
	faults.Background
	count atomic.Int64 // number of pods whose binding the API server denied
}

// Inject creates the policy and returns when the API server enforces the policy.
func (p *pending) Inject(ctx context.Context, env *faults.Env) error {
	if err := p.create(ctx, env, "pending"); err != nil {
		return err
	}
	p.Begin(ctx, p.run)
	return nil
}

func (p *pending) Heal(ctx context.Context) error {
	if err := p.End(ctx); err != nil {
		return fmt.Errorf("waiting until the current list request for pods has ended: %w", err)
	}
	return p.remove(ctx)
}

func (p *pending) Summary() string {
	return "denied the bindings of " + faults.Counted(int(p.count.Load()), "pod")
}

// run lists the pods repeatedly until the fault is healed. It writes a "fired" record to the
// history for each pod that the scheduler cannot bind because of the policy.
func (p *pending) run(ctx context.Context) {
	ticker := p.env.Clock.NewTicker(pendingInterval)
	defer ticker.Stop()
	reported, failing := map[types.UID]bool{}, false
	for {
		err := p.reportDenied(ctx, reported)
		if err != nil && !failing { // record only the first error of an outage
			p.env.Report.Failed(nil, err)
		}
		failing = err != nil
		select {
		case <-p.Stopping():
			return
		case <-ticker.C():
		}
	}
}

// reportDenied writes a "fired" record to the history for each pod whose binding the policy has
// denied. The keys of the argument reported are the UIDs of the pods that already have such a
// record. reportDenied skips these pods, and adds the UIDs of the other denied pods to the map.
func (p *pending) reportDenied(ctx context.Context, reported map[types.UID]bool) error {
	list, err := p.env.Admin.CoreV1().Pods(p.env.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // lists from the watch cache
	if err != nil {
		return fmt.Errorf("listing the pods of namespace %s: %w", p.env.Namespace, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if reported[pod.UID] || !deniedBy(pod, p.name) {
			continue
		}
		reported[pod.UID] = true
		p.count.Add(1)
		p.env.Report.Fired(0, &history.Ref{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, "denied its binding to a node")
	}
	return nil
}

// deniedBy reports whether a pod has no node because the policy with the given name denied the
// pod's binding.
func deniedBy(pod *corev1.Pod, policy string) bool {
	if pod.Spec.NodeName != "" {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, policy)
		}
	}
	return false
}
