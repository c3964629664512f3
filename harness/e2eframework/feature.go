package e2eframework

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// feature is a feature (a test with steps) that [Chaos] records, or that has a cluster of its
// own. From Chaos.Begin to Chaos.End, the context of the steps contains the feature.
type feature struct {
	name     string
	recorded bool
	own      support.E2EClusterProvider // the cluster that only this feature uses, or nil
	reserved *provider                  // the cluster on which the feature is recorded, or nil
	session  *run.Session               // the recording of the feature, or nil if the feature is not recorded
	ended    bool

	heals    []func(context.Context) error // functions that heal the faults that steps have injected, in the order of injection
	injected int                           // number of background faults, plus number of faults that steps have injected
	// background runs the faults in Chaos.Faults while the steps run. It is nil if Chaos.Faults
	// is empty.
	background *background
}

// background runs the faults in Chaos.Faults in a goroutine while the steps of the feature run.
type background struct {
	cancel    context.CancelFunc // function that aborts the background faults
	stepsDone chan struct{}      // closed after the last step, to end faults without a duration
	healed    chan error         // receives an error or nil when all faults are healed
}

type featureKey struct{}

// currentFeature returns the feature that ctx contains. It returns nil before Chaos.Begin, and for a
// feature that is neither recorded nor has a cluster of its own.
func currentFeature(ctx context.Context) *feature {
	f, _ := ctx.Value(featureKey{}).(*feature)
	return f
}

// errNotRecorded is the error of steps such as [Inject] in a feature that [Chaos] does not record.
var errNotRecorded = errors.New("the feature is not recorded; call testenv.BeforeEachFeature(chaos.Begin), and remove the label recording=off from the feature")

// featureOf returns the feature that ctx contains. If the feature is not recorded, it returns
// [errNotRecorded].
func featureOf(ctx context.Context) (*feature, error) {
	f := currentFeature(ctx)
	if f == nil || !f.recorded {
		return nil, errNotRecorded
	}
	return f, nil
}

// begin begins the chaos phase of the recording, in which the steps run and faults act. It also
// starts to inject the faults in Chaos.Faults.
func (f *feature) begin(ctx context.Context) error {
	if len(f.session.Scenario.Faults) == 0 {
		return f.session.Begin(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel, make(chan struct{}), make(chan error, 1)}
	began := make(chan struct{})
	go func() {
		b.healed <- f.session.Chaos(ctx, func(ctx context.Context, _ *run.Session) error {
			close(began)
			select {
			case <-b.stepsDone:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	select {
	case <-began:
		f.background = b
		return nil
	case err := <-b.healed: // the start of the chaos phase has failed
		cancel()
		return err
	}
}

// end heals all faults, waits for convergence, and runs the checks. It returns the verdicts as
// part of the run's report. For a feature that is not recorded, it only releases the cluster and
// returns no report.
func (f *feature) end(ctx context.Context) (*reports.Run, error) {
	if !f.recorded {
		f.ended = true
		return nil, f.release(ctx)
	}
	err := f.heal(ctx)
	if f.background != nil {
		close(f.background.stepsDone)
		err = errors.Join(err, <-f.background.healed)
	}
	if err == nil {
		err = f.session.Settle(ctx)
	}
	return f.stop(ctx, err)
}

// errAbandoned means that the recording of a feature ended without a call of [Chaos.End]. For
// example, a step called t.FailNow.
var errAbandoned = errors.New("the feature did not reach its end, because a step ended the test")

// abandon ends the recording if Chaos.End was not called. The reason is usually a step that has
// called t.FailNow or t.SkipNow.
//
// The controllers may have stopped, so abandon does not wait for convergence.
func (f *feature) abandon(ctx context.Context, t *testing.T) {
	if f.ended {
		return
	}
	if !f.recorded {
		if _, err := f.end(ctx); err != nil {
			t.Errorf("feature %q: %v", f.name, err)
		}
		return
	}
	if f.background != nil {
		f.background.cancel()
		if err := <-f.background.healed; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("feature %q: injecting or healing the faults in Chaos.Faults: %v", f.name, err)
		}
	}
	result, err := f.stop(ctx, errors.Join(errAbandoned, f.heal(ctx)))
	if result != nil {
		report(t, result, violations(result))
	}
	if err.Error() == errAbandoned.Error() {
		t.Logf("feature %q: %v", f.name, err)
	} else {
		t.Errorf("feature %q: %v", f.name, err)
	}
}

// stop ends the recording: it stops the fault proxy and the program under test, and runs the
// checks. It returns the report of the run. The argument runErr is the reason why the feature did
// not reach its end, or nil.
func (f *feature) stop(ctx context.Context, runErr error) (*reports.Run, error) {
	f.ended = true
	if f.background != nil {
		f.background.cancel()
	}
	result, err := f.session.End(ctx, runErr)
	if released := f.release(ctx); released != nil {
		err = errors.Join(err, released)
	}
	return result, err
}

// release makes the cluster available to other features. It destroys a cluster that only this
// feature uses.
func (f *feature) release(ctx context.Context) error {
	if f.reserved != nil {
		f.reserved.reserved.Store(nil)
	}
	if f.own != nil {
		return f.own.Destroy(ctx)
	}
	return nil
}

func (f *feature) inject(ctx context.Context, fault, params string) error {
	heal, err := f.session.Environment.Inject(ctx, environment.Injection{Fault: fault, Params: params, Index: f.injected})
	if err != nil {
		return err
	}
	f.injected++
	f.heals = append(f.heals, heal)
	return nil
}

// heal heals all faults that steps have injected, in reverse order of injection.
func (f *feature) heal(ctx context.Context) error {
	var errs []error
	for len(f.heals) > 0 {
		last := len(f.heals) - 1
		errs = append(errs, f.heals[last](ctx))
		f.heals = f.heals[:last]
	}
	return errors.Join(errs...)
}

// reserve reserves the cluster for one user, such as "feature scale-up". If the cluster is already
// reserved, reserve returns an error, because a cluster has only one history and one fault proxy.
func (p *provider) reserve(user string) error {
	if !p.reserved.CompareAndSwap(nil, &user) {
		return fmt.Errorf("cluster %s is in use by %s, and can record only one feature or scenario at a time; for features that run in parallel, set Chaos.NewCluster; to a feature that calls RunScenario, add the label %s=off",
			p.clusterName, *p.reserved.Load(), Recording)
	}
	return nil
}
