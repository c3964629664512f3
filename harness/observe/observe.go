// Package observe is the witness of the truth: it records every version of every
// object of a run's namespace. Where etcd is within reach it follows that (see
// [Follow]); elsewhere it watches the API server directly, past the fault proxy.
//
// It neither judges nor repairs. Where it cannot vouch for having seen
// everything, it records a gap, which makes what follows unknown.
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

// Resources is what a run observes: what the workload controllers read and write.
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
	// Config reaches the API server directly, with the right to read Resources.
	Config    *rest.Config
	Namespace string
	Resources []schema.GroupVersionResource
	Recorder  Recorder
}

// Recorder takes the records of the truth.
type Recorder interface{ Append(history.Record) }

// Observer records the truth, as the API server tells it, until it is stopped. It
// misses what an API server that ends has not told any more.
type Observer struct {
	watchers []*resourceWatcher
	cancel   context.CancelFunc
	group    *errgroup.Group
}

// Start records what is there, begins to watch what happens to it, and returns
// once every watch stands. Stop it before the Recorder is closed.
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

// CatchUp returns when the observer has recorded everything that was committed
// before the call. The error says what it has not seen by the end of ctx, or why it
// cannot tell; whether that is a gap is for the caller to say, who knows whether it
// may still come.
func (o *Observer) CatchUp(ctx context.Context) error {
	missing := make([]error, len(o.watchers))
	var group errgroup.Group
	for i, w := range o.watchers {
		group.Go(func() error { missing[i] = w.catchUp(ctx); return nil })
	}
	_ = group.Wait() // of all of them, not of the first that fails
	return errors.Join(missing...)
}

// Stop ends every watch and returns when nothing more is recorded.
func (o *Observer) Stop() {
	o.cancel()
	_ = o.group.Wait() // the witnesses record their own failures
}

// clientFor speaks protobuf: the witnesses share the machine with what they watch.
func clientFor(config *rest.Config, version schema.GroupVersion) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &version
	c.APIPath = "/apis"
	if version.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.QPS = -1 // no limit: a witness that waits is a witness that lags
	c.UserAgent = "gauntlet-observer"
	return rest.RESTClientFor(c)
}

// retryDelay is how long a witness waits before it opens a watch again that
// broke, so that it does not hammer an API server that is down.
const retryDelay = 50 * time.Millisecond
