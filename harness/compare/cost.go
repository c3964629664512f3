package compare

import (
	"fmt"
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Cost is the resource usage of the subject in one run.
type Cost struct {
	// Unfinished reports whether the run or its history is incomplete.
	Unfinished bool
	// Steps are the completed steps of the workload, in order.
	Steps []Step
	// Converged is the time from the healing of all faults until the system converged; 0 if
	// it did not converge.
	Converged time.Duration
	// Requests counts the subject's requests by kind. It is empty if the subject did not use
	// the fault proxy.
	Requests map[Call]int
	// Sent is the size of the request bodies in bytes. Received is the size of the responses
	// and watch events, uncompressed, as delivered to the subject.
	Sent, Received int64
	// EndpointsWrong is the time during which the Endpoints of at least one Service did not
	// match the committed state. See [check.WrongEndpoints].
	EndpointsWrong time.Duration
	// CPU is the user and system time of all processes of the subject.
	CPU time.Duration
	// PeakMemory is the largest resident set size of a process of the subject, in bytes.
	PeakMemory int64
}

// Step is a completed step of the workload. Its duration includes its await.
type Step struct {
	Index    int // index in the scenario, from 0
	Name     string
	Duration time.Duration
}

// Call is a kind of request.
type Call struct {
	Verb string
	// Resource is the resource with its group, and the subresource after a slash.
	Resource string
}

func (c Call) String() string { return c.Verb + " " + c.Resource }

// CostOf measures a run from the records of its history. It does not count requests without
// a resource. It does not count requests for leases either, because the number of these
// requests depends on the subject's flags.
func CostOf(records iter.Seq2[*history.Record, error]) (Cost, error) {
	cost := Cost{Requests: map[Call]int{}, Unfinished: true}
	hasGap := false
	excluded := map[uint64]bool{} // requests that are not counted, by ID
	wrong := check.NewWrongEndpoints()
	started := map[int]time.Duration{}
	var healed time.Duration
	for record, err := range records {
		if err != nil {
			return Cost{}, fmt.Errorf("measuring a run: %w", err)
		}
		if err := wrong.Observe(record); err != nil {
			return Cost{}, fmt.Errorf("measuring a run: %w", err)
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

var leases = resourceOf("Lease")

// isCounted reports whether [Cost] counts a request; see [CostOf].
func isCounted(r *history.Request) bool { return r.Resource != "" && r.Resource != leases }

func (c *Cost) request(r *history.Request) {
	call := Call{Verb: r.Verb, Resource: r.Resource}
	if r.Subresource != "" {
		call.Resource += "/" + r.Subresource
	}
	c.Requests[call]++
	c.Sent += int64(r.Bytes)
}
