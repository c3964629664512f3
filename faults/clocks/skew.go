// Package clocks contains the fault clock-skew. With this fault, the subject's clock seems to
// differ from the API server's clock. The subject is the controllers under test.
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

// Skew is the fault type clock-skew: the controller under test receives shifted timestamps. Its
// own clock and the API server's clock then seem to differ.
var Skew = faults.Type{
	Name: "clock-skew",
	Description: "The clock of the API server and the nodes is ahead of the subject's clock, or behind it. " +
		"In everything that the subject receives, the fault proxy shifts creationTimestamp, deletionTimestamp and the timestamps in the status of pods and nodes. " +
		"In the subject's updates it restores the original timestamps.",
	Healing: "After healing, the subject receives the original timestamps. Objects that are already in its cache keep the shifted ones.",
	// The fault does not run on existing clusters, which may have a newer Kubernetes version. To
	// shift timestamps, the proxy decodes and encodes objects. It would lose the fields that
	// only the newer version has.
	Needs: []cluster.Capability{cluster.SkewsClocks},
	Params: []faults.Param{
		{Name: "ahead", Description: "The time by which the clock of the API server and the nodes is ahead; negative if it is behind. API timestamps have a resolution of 1 s. A shift of 300ms therefore changes 30 % of the timestamps, by 1 s each.", Bounds: "-1h to -10ms, or 10ms to 1h"},
	},
	New:    newSkew,
	Sample: sampleSkew,
}

// SkewParams contains the parameters that a scenario sets for a clock-skew fault. The Params
// field of [Skew] documents each parameter.
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
	if p.Ahead == 0 {
		return nil, params.Errorf("ahead", "found 0s, or no duration; expected an absolute value of %v to %v", aheadMin, aheadMax)
	}
	if size := p.Ahead.Abs(); size < aheadMin || size > aheadMax {
		return nil, params.Errorf("ahead", "%v is out of bounds; expected an absolute value of %v to %v", p.Ahead, aheadMin, aheadMax)
	}
	return &skew{params: p}, nil
}

// sampleSkew returns random parameters of a clock-skew fault, for a generated scenario.
//
// It never draws a clock of the API server that is more than 5 s ahead. With such a clock, a new
// pod seems to become ready in the future. The controller under test then counts the pod as
// available only later, which would delay the workload too much.
func sampleSkew(r *rand.Rand, _ faults.SampleInput) any {
	return &SkewParams{Ahead: faults.Pick(r, 300*time.Millisecond, 700*time.Millisecond, 2*time.Second, 5*time.Second,
		-300*time.Millisecond, -700*time.Millisecond, -2*time.Second, -30*time.Second, -10*time.Minute)}
}

// skew is a fault of type clock-skew. It shifts the timestamps that the controller under test
// receives.
//
// It writes one "fired" record to the history for each object in the namespace of the test run. It
// ignores other objects, such as the lease, because they are not part of the workload.
type skew struct {
	params  SkewParams
	env     *faults.Env
	restore func() // ends the shift of timestamps; nil before Inject

	mu       sync.Mutex
	reported map[types.UID]bool // UIDs of the objects that already have a "fired" record in the history
}

func (s *skew) Inject(_ context.Context, env *faults.Env) error {
	s.env, s.reported = env, map[types.UID]bool{}
	s.restore = env.Interceptor.SkewClock(s.params.Ahead, s.report)
	return nil
}

// report writes a "fired" record to the history when the controller under test first receives an
// object with shifted timestamps. It ignores later versions of the same object, and objects
// outside the namespace of the test run.
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
