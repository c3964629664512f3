package compare

import (
	"fmt"
	"iter"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Cost is what one run cost its subject.
type Cost struct {
	// Unfinished: the run ended before it was over, or was not seen whole.
	Unfinished bool
	// Steps are the steps of the workload that were done, in order.
	Steps []Step
	// Converged is how long it took from the healing of all faults until nothing
	// was pending; 0 if it never came to that.
	Converged time.Duration
	// Requests counts what the subject sent by kind of request. It is empty when
	// the subject did not go through the fault proxy.
	Requests map[Call]int
	// Sent is the bytes of those requests' bodies; Received is those of their answers
	// and of watch events, uncompressed, as the subject was handed them.
	Sent, Received int64
	// EndpointsWrong is for how long some Service had other Endpoints than the truth
	// asked for; see [check.WrongEndpoints].
	EndpointsWrong time.Duration
	// CPU is the user and system time of all the subject's processes together.
	CPU time.Duration
	// PeakMemory is the largest resident set of any one of them, in bytes.
	PeakMemory int64
}

// Step is a step of the workload and how long it took, its await included.
type Step struct {
	Index    int // position in the scenario, from 0
	Name     string
	Duration time.Duration
}

// Call is a kind of request.
type Call struct {
	Verb string
	// Resource is the resource with its group, and its subresource behind a slash.
	Resource string
}

func (c Call) String() string { return c.Verb + " " + c.Resource }

// CostOf measures the run whose history the records are. Leases, and what is no
// resource, are left out of the requests: how often a lease is renewed is a matter of
// the subject's flags.
func CostOf(records iter.Seq2[*history.Record, error]) (Cost, error) {
	cost := Cost{Requests: map[Call]int{}, Unfinished: true}
	missed := false
	spared := map[uint64]bool{} // requests that are left out, by ID
	wrong := check.NewWrongEndpoints()
	begun := map[int]time.Duration{}
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
			spared[record.Request.ID] = true
		case record.Request != nil:
			cost.request(record.Request)
		case record.Response != nil && !spared[record.Response.ID]:
			cost.Received += int64(record.Response.Bytes)
		case record.Delivery != nil && !spared[record.Delivery.ID]:
			cost.Received += int64(record.Delivery.Bytes)
		case record.Phase != nil && record.Phase.Name == history.PhaseSettle:
			healed = record.At
		case record.Phase != nil && record.Phase.Name == history.PhaseQuiet:
			cost.Converged = record.At - healed
		case record.Phase != nil && record.Phase.Name == history.PhaseEnd:
			cost.Unfinished = missed
		case record.Gap != nil:
			missed = true
		case record.Step != nil && record.Step.Event == history.StepBegun:
			begun[record.Step.Index] = record.At
		case record.Step != nil && record.Step.Event == history.StepDone:
			cost.Steps = append(cost.Steps, Step{
				Index:    record.Step.Index,
				Name:     record.Step.Detail,
				Duration: record.At - begun[record.Step.Index],
			})
		case record.Process != nil && record.Process.Usage != nil:
			cost.CPU += record.Process.Usage.CPU
			cost.PeakMemory = max(cost.PeakMemory, record.Process.Usage.PeakMemory)
		}
	}
	cost.EndpointsWrong = wrong.Total()
	return cost, nil
}

const leases = "leases.coordination.k8s.io"

// isCounted reports whether a request is among those of a cost.
func isCounted(r *history.Request) bool { return r.Resource != "" && r.Resource != leases }

func (c *Cost) request(r *history.Request) {
	call := Call{Verb: r.Verb, Resource: r.Resource}
	if r.Subresource != "" {
		call.Resource += "/" + r.Subresource
	}
	c.Requests[call]++
	c.Sent += int64(r.Bytes)
}
