package admission

import (
	"math/rand/v2"
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults"
)

// sampleName returns random parameters of a name-taken fault, for a generated scenario. It returns
// nil if the controller under test will create no ReplicaSet.
func sampleName(r *rand.Rand, o faults.SampleInput) any {
	if !slices.Contains(o.Requests, faults.Request{Verb: "create", Resource: setResource}) {
		return nil
	}
	return &NameParams{Template: faults.Pick(r, templates...), Times: 1 + r.IntN(2)}
}

// sampleQuota returns random parameters of a quota-exhausted fault, for a generated scenario.
func sampleQuota(r *rand.Rand, _ faults.SampleInput) any { return &QuotaParams{Left: r.IntN(8)} }

// samplePolicy returns random parameters of an admission-denied fault, for a generated scenario.
func samplePolicy(r *rand.Rand, o faults.SampleInput) any {
	p := &PolicyParams{Resource: "pods", Reason: faults.Pick(r, reasons...)}
	if slices.Contains(o.Requests, faults.Request{Verb: "create", Resource: setResource}) && r.IntN(3) == 0 {
		p.Resource = setResource
	}
	return p
}
