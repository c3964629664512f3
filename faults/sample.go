package faults

import (
	"math/rand/v2"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// SampleInput is what a scenario that is being generated offers to a fault: what
// there will be to spoil, and how long it acts. Every list has something in it.
type SampleInput struct {
	// Requests are what the workload has the subject ask for.
	Requests []Request
	// Resources are those that the subject watches and that change.
	Resources []string
	// Span is how long the fault acts, at least 500 ms.
	Span time.Duration
	// Edit draws what another user might do at a moment, nil if that comes to
	// nothing. The moment is the caller's to know.
	Edit func() []scenario.Step
}

// Request is a kind of request that a subject makes.
type Request struct{ Verb, Resource, Subresource string }

// Pick draws one of some things.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// PickTime draws a time between two bounds, in steps: what is drawn is to be read.
func PickTime(r *rand.Rand, least, most, step time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64((most-least)/step)+1))*step
}
