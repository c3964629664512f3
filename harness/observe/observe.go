// Package observe records every committed version of the observed objects in a run's
// namespace. Where etcd is reachable, it follows etcd (see [Follow]). Elsewhere it
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Resources are the resources that a run observes: those that the workload controllers
// read and write.
var Resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "replicationcontrollers"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "endpoints"},
}

// Options says what to observe and where to record it.
type Options struct {
	// Config connects to the API server directly, with permission to read Resources.
	Config    *rest.Config
	Namespace string
	Resources []schema.GroupVersionResource
	Recorder  Recorder
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
// open. Stop the Observer before you close its Recorder.
func Start(ctx context.Context, o Options) (*Observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	observer := &Observer{cancel: cancel, group: new(errgroup.Group)}
	for _, resource := range o.Resources {
		client, err := clientFor(o.Config, resource.GroupVersion())
		if err != nil {
			observer.Stop()
			return nil, fmt.Errorf("observing %s: %w", resource.GroupResource(), err)
		}
		w := newResourceWatcher(client, resource, o.Namespace, o.Recorder)
		stream, err := w.start(ctx)
		if err != nil {
			observer.Stop()
			return nil, fmt.Errorf("observing %s: %w", w.resource, err)
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

// clientFor returns a client for one API group version. It uses protobuf to save CPU on
// the machine that also runs the control plane.
func clientFor(config *rest.Config, version schema.GroupVersion) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &version
	c.APIPath = "/apis"
	if version.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.QPS = -1 // no client-side limit: it would delay the records
	c.UserAgent = "gauntlet-observer"
	return rest.RESTClientFor(c)
}

// retryDelay is the time before a watcher reopens a broken watch. It keeps the watchers
// from overloading an API server that is starting.
const retryDelay = 50 * time.Millisecond
