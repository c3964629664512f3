package faults

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// SampleInput describes a generated scenario to the Sample function of a [Type]. No list in
// it is empty.
type SampleInput struct {
	// Requests are the requests that the subject will make for the workload.
	Requests []Request
	// Resources are the resources that the subject watches and whose objects will
	// change during the run.
	Resources []string
	// Span is how long the fault is in force, at least 500 ms.
	Span time.Duration
	// Edit draws workload steps of a second user. It returns nil if such steps would
	// have no effect at the time when the fault is injected.
	Edit func() []scenario.Step
}

// Request identifies requests by verb, resource and subresource.
type Request struct{ Verb, Resource, Subresource string }

// Pick returns one of the values at random.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// PickTime returns a random duration from least to most, in increments of step. Coarse steps
// keep scenario files readable.
func PickTime(r *rand.Rand, least, most, step time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64((most-least)/step)+1))*step
}
