// Package clocks contains the fault of clocks that differ between the subject and the API
// server.
package clocks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Skew is the fault type clock-skew.
var Skew = faults.Type{
	Name: "clock-skew",
	Description: "The clock of the API server and the nodes is ahead of the subject's clock, or behind it. " +
		"In everything that the subject receives, the fault proxy shifts creationTimestamp, deletionTimestamp and the timestamps in the status of pods and nodes. " +
		"In the subject's updates it restores the original timestamps.",
	Healing: "After healing, the subject receives the original timestamps. Objects that are already in its cache keep the shifted ones.",
	// An existing cluster may have another Kubernetes version. The proxy decodes and encodes
	// objects to shift their timestamps, and would lose unknown fields.
	Needs: []cluster.Capability{cluster.SkewsClocks},
	Params: []faults.Param{
		{Name: "ahead", Description: "The time by which the clock of the API server and the nodes is ahead; negative if it is behind. API timestamps have a resolution of 1 s. A shift of 300ms therefore changes 30 % of the timestamps, by 1 s each.", Bounds: "-1h to -10ms, or 10ms to 1h"},
	},
	New:    newSkew,
	Sample: sampleSkew,
}

// SkewParams are the parameters of clock-skew; [Skew] documents them.
type SkewParams struct {
	Ahead time.Duration `yaml:"ahead"`
}

const (
	aheadMin = 10 * time.Millisecond
	aheadMax = time.Hour
)

func newSkew(params faults.Params) (faults.Fault, error) {
	var p SkewParams
	if err := params.Decode(&p); err != nil {
		return nil, err
	}
	if size := p.Ahead.Abs(); size < aheadMin || size > aheadMax {
		return nil, params.Errorf("ahead", "%v is out of bounds; expected %v to %v, ahead or behind", p.Ahead, aheadMin, aheadMax)
	}
	return &skew{params: p}, nil
}

// sampleSkew draws the parameters of a generated scenario. It never draws a clock that
// is far ahead, because a pod that became ready in the future would become available
// only that much later.
func sampleSkew(r *rand.Rand, _ faults.SampleInput) any {
	return &SkewParams{Ahead: faults.Pick(r, 300*time.Millisecond, 700*time.Millisecond, 2*time.Second, 5*time.Second,
		-300*time.Millisecond, -700*time.Millisecond, -2*time.Second, -30*time.Second, -10*time.Minute)}
}

// skew is a clock-skew fault in force. It records one firing for each object of the run's
// namespace. It does not record other objects, such as the lease, because they are not part
// of the workload.
type skew struct {
	params  SkewParams
	env     *faults.Env
	restore func()

	mu       sync.Mutex
	reported map[types.UID]bool
}

func (s *skew) Inject(_ context.Context, env *faults.Env) error {
	s.env, s.reported = env, map[types.UID]bool{}
	s.restore = env.Proxy.SkewClock(s.params.Ahead, s.report)
	return nil
}

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
	return fmt.Sprintf("the subject received %d objects with shifted timestamps", len(s.reported))
}
