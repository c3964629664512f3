package compare

import (
	"fmt"
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Cost is what the controllers under test (the subject) used in one run: time, requests, bytes,
// CPU time and memory.
type Cost struct {
	// Unfinished is true if the run ended early, or if its history misses records. The cost of
	// such a run is not compared.
	Unfinished bool
	// Steps has the completed steps of the workload, in the order in which they ended.
	Steps []Step
	// Converged is the time from the moment when all faults were healed until the system
	// converged. It is 0 if the system did not converge.
	Converged time.Duration
	// Requests counts the requests of the controllers under test for each verb and resource. It is
	// empty if these controllers did not use the fault proxy.
	Requests map[Call]int
	// Sent is the total size of the request bodies of the controllers under test, in bytes.
	Sent int64
	// Received is the total size of the responses and watch events that the controllers under test
	// received, in bytes before compression.
	Received int64
	// EndpointsWrong is the time during which the Endpoints of any Service did not match the pods
	// in etcd. See [check.WrongEndpoints].
	EndpointsWrong time.Duration
	// CPU is the user and system CPU time that all processes of the controllers under test used
	// together.
	CPU time.Duration
	// PeakMemory is the largest resident set size of any process of the controllers under test, in
	// bytes.
	PeakMemory int64
}

// Step is a completed step of the workload, with its duration. These durations show how fast two
// controllers under test are.
type Step struct {
	Index    int           // the position in the workload, counted from 0
	Name     string        // the step as text, such as "scale ReplicaSet web to 5"
	Duration time.Duration // the operation, plus the wait for its result
}

// Call is a verb and a resource by which requests are counted, such as "update
// deployments.apps/status".
type Call struct {
	Verb string
	// Resource is the resource with its API group, such as deployments.apps. A subresource follows
	// after a slash.
	Resource string
}

func (c Call) String() string { return c.Verb + " " + c.Resource }

// CostOf computes the cost of a run from the records of its history. It ignores requests without a
// resource, such as discovery. It also ignores requests for leases, because their number depends on
// flags of the controllers under test. It returns an error if the records cannot be read.
func CostOf(records iter.Seq2[*history.Record, error]) (Cost, error) {
	cost := Cost{Requests: map[Call]int{}, Unfinished: true}
	hasGap := false
	excluded := map[uint64]bool{} // the IDs of requests that are not counted
	wrong := check.NewWrongEndpoints()
	started := map[int]time.Duration{}
	var healed time.Duration
	for record, err := range records {
		if err != nil {
			return Cost{}, fmt.Errorf("computing the cost of a run: %w", err)
		}
		if err := wrong.Observe(record); err != nil {
			return Cost{}, fmt.Errorf("computing the time with wrong Endpoints: %w", err)
		}
		switch {
		case record.Request != nil && !isCounted(record.Request):
			excluded[record.Request.ID] = true
		case record.Request != nil:
			cost.request(record.Request)
		case record.Response != nil && !excluded[record.Response.ID]:
			cost.Received += int64(record.Response.Bytes)
		case record.Delivery != nil && !excluded[record.Delivery.ID]:
			cost.Received += int64(record.Delivery.Bytes)
		case record.Phase != nil && record.Phase.Name == history.PhaseSettle:
			healed = record.At
		case record.Phase != nil && record.Phase.Name == history.PhaseQuiet:
			cost.Converged = record.At - healed
		case record.Phase != nil && record.Phase.Name == history.PhaseEnd:
			cost.Unfinished = hasGap
		case record.Gap != nil:
			hasGap = true
		case record.Step != nil && record.Step.Event == history.StepBegun:
			started[record.Step.Index] = record.At
		case record.Step != nil && record.Step.Event == history.StepDone:
			cost.Steps = append(cost.Steps, Step{
				Index:    record.Step.Index,
				Name:     record.Step.Detail,
				Duration: record.At - started[record.Step.Index],
			})
		case record.Process != nil && record.Process.Usage != nil:
			cost.CPU += record.Process.Usage.CPU
			cost.PeakMemory = max(cost.PeakMemory, record.Process.Usage.PeakMemory)
		}
	}
	cost.EndpointsWrong = wrong.Total()
	return cost, nil
}

// leases is the resource leases.coordination.k8s.io, whose requests are not counted.
var leases = resourceOf("Lease")

// isCounted reports whether [CostOf] counts a request. It does not count requests for leases and
// requests without a resource, such as discovery.
func isCounted(r *history.Request) bool { return r.Resource != "" && r.Resource != leases }

// request counts a request of the controllers under test by its verb and resource. It adds the size
// of the request's body to the bytes sent.
func (c *Cost) request(r *history.Request) {
	call := Call{Verb: r.Verb, Resource: r.Resource}
	if r.Subresource != "" {
		call.Resource += "/" + r.Subresource
	}
	c.Requests[call]++
	c.Sent += int64(r.Bytes)
}
