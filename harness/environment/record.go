package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/observe"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// RecordOptions says which objects [Environment.Record] records, and in which file.
type RecordOptions struct {
	// File is the path of the history file, which Record creates.
	File string
	// Namespace is the namespace of the workload. Empty means "gauntlet", the constant Namespace.
	// Record creates the namespace if necessary. On a cluster of the provider existing, the namespace
	// must exist, because Record does not create it there.
	Namespace string
	// Start is the first record of the history. Record fills in the fields Provider and Namespace.
	Start history.Start
	// Kinds lists the Kinds of objects that Record records. The history then contains every version
	// of such an object that etcd commits.
	Kinds []kube.Kind
	// OnRecord is called with each record, in the order of the history. OnRecord must return
	// quickly. It may be nil.
	OnRecord func(*history.Record)
}

// observer records every object version that etcd commits. It reads the versions from etcd or from
// watches; see package observe.
type observer interface {
	CatchUp(ctx context.Context) error
	Stop()
}

// Record creates the workload's namespace and the history file. Until Stop or Reset, the history
// receives every committed version of the objects in this namespace, for each Kind in o.Kinds.
func (e *Environment) Record(ctx context.Context, o RecordOptions) error {
	if err := e.canStart("the history", e.Recorder != nil); err != nil {
		return err
	}
	e.namespace = cmp.Or(o.Namespace, Namespace)
	for _, part := range []struct {
		name  string
		setUp func(context.Context) error
	}{
		{"namespace", e.setUpNamespace},
		{"history", func(context.Context) error { return e.setUpHistory(o) }},
		{"observer", func(ctx context.Context) error { return e.setUpObserver(ctx, o.Kinds) }},
	} {
		if err := e.setUp(ctx, part.name, part.setUp); err != nil {
			return err
		}
	}
	return nil
}

// setUpNamespace creates the workload's namespace, and waits until ServiceAccount default exists
// there. Without this ServiceAccount, the API server rejects pods.
//
// On a cluster of the provider existing, setUpNamespace creates nothing. The provider has created
// the namespace [Namespace]. Any other namespace must already exist, and gauntlet deletes only its
// own objects there.
func (e *Environment) setUpNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	namespaces := e.Admin.CoreV1().Namespaces()
	if _, shared := e.Cluster.(cluster.Shared); shared {
		if _, err := namespaces.Get(ctx, e.namespace, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("%w; expected a namespace that exists; without a name, the run uses the namespace %s", err, Namespace)
		}
	} else {
		_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	accounts, err := e.Admin.CoreV1().ServiceAccounts(e.namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		return err
	}
	defer accounts.Stop()
	for event := range accounts.ResultChan() {
		if event.Type == watch.Added || event.Type == watch.Modified {
			return nil
		}
	}
	return errors.New("the watch ended before ServiceAccount " + e.namespace + "/default existed")
}

// setUpHistory creates the history file, the Recorder that writes the file, and the Dispatcher.
func (e *Environment) setUpHistory(o RecordOptions) (err error) {
	o.Start.Provider, o.Start.Namespace = e.Provider, e.namespace
	e.watches.recording = true
	scheduling := newSchedulingDelays("/proc")
	observers := []func(*history.Record){e.watches.observe, scheduling.observe}
	if o.OnRecord != nil {
		observers = append(observers, o.OnRecord)
	}
	e.Recorder, err = history.Create(o.File, o.Start, e.Clock, observers...)
	if err != nil {
		return err
	}
	e.Dispatcher = NewDispatcher(e.Recorder, e.Clock)
	e.records = e.Dispatcher
	stop, stopScheduling := func() {}, func() {}
	if !e.Capabilities().Has(cluster.VirtualTime) { // in virtual time there are no stalls, because the clock stands still while a goroutine runs
		stop, stopScheduling = e.Recorder.RecordStalls(e.Clock), scheduling.record(e.Clock, e.Recorder)
	}
	e.teardowns = append(e.teardowns, func(context.Context) error {
		stop()
		stopScheduling()
		return e.Recorder.Close()
	})
	return nil
}

// setUpObserver starts the observer, which records committed object versions. If the provider has
// the capability AccessesEtcd, the observer reads from etcd. Otherwise, the observer watches the
// API server.
func (e *Environment) setUpObserver(ctx context.Context, kinds []kube.Kind) error {
	provider, ok := e.Cluster.(cluster.EtcdProvider)
	if !ok {
		watching, err := observe.Start(ctx, observe.Options{
			Config: e.Cluster.Config(cluster.Admin), Namespace: e.namespace, Kinds: kinds, Recorder: e.Dispatcher,
		})
		if err != nil {
			return err
		}
		e.useObserver(watching)
		return nil
	}
	etcd, err := provider.Etcd(ctx)
	if err != nil {
		return err
	}
	e.teardowns = append(e.teardowns, func(context.Context) error {
		if err := etcd.Close(); !errors.Is(err, context.Canceled) { // Close always returns Canceled for a client without a connection
			return err
		}
		return nil
	})
	following, err := observe.Follow(ctx, observe.FollowOptions{Etcd: etcd, Namespace: e.namespace, Kinds: kinds, Recorder: e.Dispatcher})
	if err != nil {
		return err
	}
	e.useObserver(following)
	return nil
}

// useObserver stores a running observer for CatchUp. It makes [Environment.Stop] stop the observer.
func (e *Environment) useObserver(o observer) {
	e.observer = o
	e.teardowns = append(e.teardowns, func(context.Context) error { o.Stop(); return nil })
}

// CatchUp waits until the history contains every object version that etcd committed before the
// call. CatchUp waits at most 10 seconds. After a timeout, the error says which versions are
// missing.
func (e *Environment) CatchUp(ctx context.Context) error {
	if e.observer == nil {
		return errors.New("CatchUp: there is no history; call Record first")
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return errors.Join(e.observer.CatchUp(ctx), e.Recorder.Flush())
}
