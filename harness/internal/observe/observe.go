// Package observe records every committed version of the observed objects. These are the
// objects of the observed kinds in the namespace of a run, and those of the observed
// cluster-scoped kinds. Where etcd is reachable, it follows etcd (see [Follow]). Elsewhere it
// watches the API server directly, without the fault proxy.
//
// The package only records. If it may have missed a version, it records a gap; checks
// that need the missing versions then report unknown.
package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Options says what to observe and where to record it.
type Options struct {
	// Config connects to the API server directly, with permission to read Kinds.
	Config    *rest.Config
	Namespace string
	// Kinds are the kinds to observe. Objects of a cluster-scoped kind are observed without
	// regard to Namespace. A custom resource may be defined after the observer has started.
	Kinds    []kube.Kind
	Recorder Recorder
}

// Recorder receives the commit records and gaps.
type Recorder interface{ Append(history.Record) }

// Observer records commits from watches on the API server until it is stopped. If an API
// server exits before it has sent all events, the Observer can miss the last commits.
type Observer struct {
	watchers []*resourceWatcher
	cancel   context.CancelFunc
	group    *errgroup.Group
}

// Start records all existing objects and watches them. It returns when all watches are
// open, except those of custom resources that are not defined yet. Stop the Observer before
// you close its Recorder.
func Start(ctx context.Context, o Options) (*Observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	observer := &Observer{cancel: cancel, group: new(errgroup.Group)}
	for _, kind := range o.Kinds {
		objects, err := newSource(o.Config, kind, o.Namespace)
		if err != nil {
			observer.Stop()
			return nil, fmt.Errorf("observing %s: %w", kind.Resource(), err)
		}
		w := newResourceWatcher(objects, kind, o.Namespace, o.Recorder)
		stream, err := w.start(ctx)
		if err != nil {
			observer.Stop()
			return nil, fmt.Errorf("observing %s: %w", kind.Resource(), err)
		}
		observer.watchers = append(observer.watchers, w)
		observer.group.Go(func() error { w.run(ctx, stream); return nil })
	}
	return observer, nil
}

// CatchUp waits until the observer has recorded everything that was committed before
// the call. If ctx ends first, the error says what is missing. CatchUp records no gap
// then, because the missing events may still arrive; the caller decides whether to
// record one.
func (o *Observer) CatchUp(ctx context.Context) error {
	missing := make([]error, len(o.watchers))
	var group errgroup.Group
	for i, w := range o.watchers {
		group.Go(func() error { missing[i] = w.catchUp(ctx); return nil })
	}
	_ = group.Wait() // the errors are in missing
	return errors.Join(missing...)
}

// Stop ends every watch and returns when nothing more is recorded.
func (o *Observer) Stop() {
	o.cancel()
	_ = o.group.Wait() // the watchers record their own failures
}

// retryDelay is the time before a watcher reopens a broken watch. It keeps the watchers
// from overloading an API server that is starting.
const retryDelay = 50 * time.Millisecond
