package obstacles

import (
	"math/rand/v2"
	"slices"

	"github.com/kube-gauntlet/gauntlet/faults"
)

func sampleName(r *rand.Rand, o faults.Occasion) any {
	if !slices.Contains(o.Requests, faults.Request{Verb: "create", Resource: replicaSets}) {
		return nil
	}
	return &NameParams{Template: faults.Pick(r, templates...), Times: 1 + r.IntN(2)}
}
