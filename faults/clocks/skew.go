// Package clocks contains the fault clock-skew: the clock of the subject differs from the
// clock of the API server. The subject is the controllers under test.
package clocks

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Skew is the fault type clock-skew: the subject receives shifted timestamps, as if the
// clocks differed.
var Skew = faults.Type{
	Name: "clock-skew",
	Description: "The clock of the API server and the nodes is ahead of the subject's clock, or behind it. " +
		"In everything that the subject receives, the fault proxy shifts creationTimestamp, deletionTimestamp and the timestamps in the status of pods and nodes. " +
		"In the subject's updates it restores the original timestamps.",
	Healing: "After healing, the subject receives the original timestamps. Objects that are already in its cache keep the shifted ones.",
	// An existing cluster may have a newer Kubernetes version. To shift timestamps, the
	// proxy decodes and encodes objects, and would lose fields that it does not know.
	Needs: []cluster.Capability{cluster.SkewsClocks},
	Params: []faults.Param{
		{Name: "ahead", Description: "The time by which the clock of the API server and the nodes is ahead; negative if it is behind. API timestamps have a resolution of 1 s. A shift of 300ms therefore changes 30 % of the timestamps, by 1 s each.", Bounds: "-1h to -10ms, or 10ms to 1h"},
	},
	New:    newSkew,
	Sample: sampleSkew,
}

// SkewParams contains the parameters of a clock-skew fault in a scenario. The field Params
// of [Skew] describes each of them.
type SkewParams struct {
	Ahead time.Duration `yaml:"ahead"`
}

const (
	aheadMin = 10 * time.Millisecond
	aheadMax = time.Hour
)

// newSkew returns a clock-skew fault with the given parameters, or an error if a parameter
// is invalid.
func newSkew(params faults.Params) (faults.Fault, error) {
	var p SkewParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if size := p.Ahead.Abs(); size < aheadMin || size > aheadMax {
		return nil, params.Errorf("ahead", "%v is out of bounds; expected %v to %v, positive or negative", p.Ahead, aheadMin, aheadMax)
	}
	return &skew{params: p}, nil
}

// sampleSkew draws random parameters of a clock-skew fault for a generated scenario.
//
// The clock of the API server is at most 5 s ahead. A new pod then seems to become ready in the
// future, and the subject counts it as available only later. A larger shift would delay the
// workload too much.
func sampleSkew(r *rand.Rand, _ faults.SampleInput) any {
	return &SkewParams{Ahead: faults.Pick(r, 300*time.Millisecond, 700*time.Millisecond, 2*time.Second, 5*time.Second,
		-300*time.Millisecond, -700*time.Millisecond, -2*time.Second, -30*time.Second, -10*time.Minute)}
}

// skew is a fault of type clock-skew, which shifts the timestamps that the subject receives.
//
// It records that it fired once for each object in the namespace of the run. It records no
// other objects, such as the lease, because they are not part of the workload.
type skew struct {
	params  SkewParams
	env     *faults.Env
	restore func() // ends the shift; nil before Inject

	mu       sync.Mutex
	reported map[types.UID]bool // objects with a record of a firing
}

func (s *skew) Inject(_ context.Context, env *faults.Env) error {
	s.env, s.reported = env, map[types.UID]bool{}
	s.restore = env.Interceptor.SkewClock(s.params.Ahead, s.report)
	return nil
}

// report records that the fault fired when the subject first receives an object with shifted
// timestamps. It ignores objects outside the namespace of the run.
func (s *skew) report(request uint64, object *history.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.Namespace != s.env.Namespace || s.reported[object.UID] {
		return
	}
	s.reported[object.UID] = true
	s.env.Report.Fired(request, object, "received with shifted timestamps")
}

func (s *skew) Heal(context.Context) error {
	if s.restore != nil {
		s.restore()
	}
	return nil
}

func (s *skew) Summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "shifted the timestamps of " + faults.Counted(len(s.reported), "object")
}
