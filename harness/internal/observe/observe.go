// Package observe records every version of the observed objects that etcd commits. The caller
// chooses the observed API kinds. Of a namespaced kind, only objects in the namespace of the run
// are observed.
//
// If gauntlet can connect to etcd, the caller uses [Follow], which reads the changes from etcd.
// Otherwise the caller uses [Start], which watches the API server on a connection that bypasses
// the fault proxy.
//
// If the package may have missed a version, it records a gap: a part of the history is missing.
// Checks that need the missing versions then return the verdict unknown.
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

// Options says which objects an [Observer] observes and where it records their committed
// versions.
type Options struct {
	// Config configures a connection to the API server that bypasses the fault proxy. Its user
	// needs permission to list and watch Kinds.
	Config    *rest.Config
	Namespace string
	// Kinds lists the API kinds to observe. For a namespaced kind, the Observer observes only
	// objects in Namespace. For a cluster-scoped kind, it observes all objects. The
	// CustomResourceDefinition of a custom resource may be created after the start of the
	// Observer.
	Kinds    []kube.Kind
	Recorder Recorder
}

// Recorder appends commit records (committed versions of objects) and gap records (missing
// versions) to the history. [history.Recorder] implements it.
type Recorder interface{ Append(history.Record) }

// Observer watches the API server and records every change of the observed objects, until the
// caller stops it.
//
// An API server that exits may not have sent all watch events. An Observer can therefore miss
// the last changes before the exit.
type Observer struct {
	watchers []*resourceWatcher
	cancel   context.CancelFunc
	group    *errgroup.Group
}

// Start records all existing objects and watches them for changes. It returns when all watches
// are open, except watches of custom resources that are not defined yet. If ctx ends later, the
// Observer continues. The caller must stop the Observer before it closes the Recorder.
func Start(ctx context.Context, o Options) (*Observer, error) {
	setUp := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(setUp, cancel)() // the call at the end of Start stops the AfterFunc
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

// CatchUp waits until the Observer has recorded every change that was committed before the call
// of CatchUp. If ctx ends first, the error names versions that the Observer has not received.
//
// CatchUp records no gap, because the missing events may still arrive. The caller decides
// whether to record a gap.
func (o *Observer) CatchUp(ctx context.Context) error {
	missing := make([]error, len(o.watchers))
	var group errgroup.Group
	for i, w := range o.watchers {
		group.Go(func() error { missing[i] = w.catchUp(ctx); return nil })
	}
	_ = group.Wait() // the errors are in missing
	return errors.Join(missing...)
}

// Stop ends all watches. When Stop returns, the Observer no longer records anything.
func (o *Observer) Stop() {
	o.cancel()
	_ = o.group.Wait() // never an error, because the watchers record their failures as gaps
}

// retryDelay is the time to wait after a failed attempt to list, to open a watch, or to read
// etcd. Without this delay, retries would overload an API server that is starting.
const retryDelay = 50 * time.Millisecond
