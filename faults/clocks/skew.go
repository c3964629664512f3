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
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Skew is the fault type clock-skew.
var Skew = faults.Type{
	Name: "clock-skew",
	Description: "The clock of the API server and the nodes is ahead of the subject's, or behind it: the times of creation and deletion of all objects, " +
		"and those in the status of pods and nodes, are shown to the subject as that clock would have set them, and what it writes back has the true ones.",
	Healing: "What is shown from then on has the true times; what was shown before stays as it was.",
	// An existing cluster may have another Kubernetes version. The proxy decodes and encodes
	// objects to shift their timestamps, and would lose unknown fields.
	Providers: faults.OwnClusters,
	Params: []faults.Param{
		{Name: "ahead", Description: "How far that clock is ahead; negative, behind. Times are in whole seconds: of a fraction, such a part of the seconds is shown as one more.", Bounds: "-1h to -10ms, or 10ms to 1h"},
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

// sampleSkew does not draw a clock that is far ahead: a pod that became ready in the future
// becomes available that much later.
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

	mu    sync.Mutex
	moved map[types.UID]bool
}

func (s *skew) Inject(_ context.Context, env *faults.Env) error {
	s.env, s.moved = env, map[types.UID]bool{}
	s.restore = env.Proxy.SkewClock(s.params.Ahead, s.report)
	return nil
}

func (s *skew) report(request uint64, object *history.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.Namespace != s.env.Namespace || s.moved[object.UID] {
		return
	}
	s.moved[object.UID] = true
	s.env.Report.Fired(request, object, "shown with other times")
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
	return fmt.Sprintf("showed %d objects with other times", len(s.moved))
}
