package faults

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// SampleInput tells the Sample function of a [Type] what the generated scenario contains. The
// lists in SampleInput are never empty.
type SampleInput struct {
	// Requests lists the requests that the controllers under test will send because of the
	// scenario's workload.
	Requests []Request
	// Resources lists the resources that the controllers under test watch, such as "pods". Objects
	// of each of these resources will change during the test run.
	Resources []string
	// Span is the time from the fault's injection until its healing. It is at least 500 ms.
	Span time.Duration
	// Long is true if a fault may affect all requests, or delay all events, for its whole Span of
	// minutes. If Long is false, Sample draws a fault from which the controllers recover within
	// seconds.
	Long bool
	// Edit draws random workload steps, such as scale, for a user-edit fault. This fault simulates
	// a second user. Edit returns nil if no step would have an effect when the test run injects
	// the fault.
	Edit func() []scenario.Step
}

// Request describes requests of the controllers under test by verb, resource and subresource.
// The resource includes the API group, such as "replicasets.apps".
type Request struct{ Verb, Resource, Subresource string }

// Pick returns one of the given values, chosen at random with equal probability.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// PickTime returns a random duration from the minimum least to the maximum most, both inclusive.
// The result differs from the minimum by a multiple of the argument step, so that generated
// scenarios contain round values.
func PickTime(r *rand.Rand, least, most, step time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64((most-least)/step)+1))*step
}
