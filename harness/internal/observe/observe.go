// Package observe records every committed version of the observed objects. An object is
// observed if its kind is observed and it is in the namespace of the run, or in no
// namespace.
//
// If etcd is reachable, the caller uses [Follow], which reads the changes from etcd.
// Otherwise the caller uses [Start], which watches the API server on a connection without
// the fault proxy.
//
// The package only records. If it may have missed a version, it records a gap. Checks that
// need the missing versions then return unknown.
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

// Options says what an Observer observes and where it records the commits.
type Options struct {
	// Config is for a direct connection to the API server. It needs permission to list and
	// watch Kinds.
	Config    *rest.Config
	Namespace string
	// Kinds are the kinds to observe. For a namespaced kind, the Observer observes only
	// objects in Namespace. For a cluster-scoped kind, it observes all objects. A custom
	// resource may be defined after the start of the Observer.
	Kinds    []kube.Kind
	Recorder Recorder
}

// Recorder appends the commit records and gap records to the history.
type Recorder interface{ Append(history.Record) }

// Observer records commits from watches on the API server until the caller stops it.
//
// An API server that exits may not have sent all events, so an Observer can miss the last
// commits before the exit.
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

// CatchUp waits until the Observer has recorded everything that was committed before the call.
// If ctx ends first, the error names versions that are missing.
//
// The missing events may still arrive, so CatchUp records no gap. The caller decides whether to
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

// Stop ends all watches, and returns when the Observer no longer records anything.
func (o *Observer) Stop() {
	o.cancel()
	_ = o.group.Wait() // never an error: the watchers record their failures as gaps
}

// retryDelay is the time to wait after a failed attempt to list, to open a watch, or to read etcd.
// Without it, the retries would overload an API server that is starting.
const retryDelay = 50 * time.Millisecond
