package environment

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/observe"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// RecordOptions says what to record, and where.
type RecordOptions struct {
	// File is the path of the history.
	File string
	// Start is the first record of the history. Record sets its Provider and Namespace.
	Start history.Start
	// Kinds are the kinds whose committed states are recorded.
	Kinds []kube.Kind
	// OnRecord, if set, is called for each record in order. It must return quickly.
	OnRecord func(*history.Record)
}

// observer records commits, from etcd or from the API server; see package observe.
type observer interface {
	CatchUp(ctx context.Context) error
	Stop()
}

// Record creates the namespace of the workload and records everything that happens in it
// until Stop.
func (e *Environment) Record(ctx context.Context, o RecordOptions) error {
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

// setUpNamespace creates the namespace, unless the provider has done so, and waits for its
// default service account. Without that account, the API server rejects pods.
func (e *Environment) setUpNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	if _, shared := e.Cluster.(cluster.Shared); !shared {
		_, err := e.Admin.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	accounts, err := e.Admin.CoreV1().ServiceAccounts(Namespace).Watch(ctx,
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
	return errors.New("the watch ended before ServiceAccount " + Namespace + "/default existed")
}

func (e *Environment) setUpHistory(o RecordOptions) (err error) {
	o.Start.Provider, o.Start.Namespace = e.Provider, Namespace
	e.watches.recording = true
	observers := []func(*history.Record){e.watches.observe}
	if o.OnRecord != nil {
		observers = append(observers, o.OnRecord)
	}
	e.Recorder, err = history.Create(o.File, o.Start, e.Clock, observers...)
	if err != nil {
		return err
	}
	e.Dispatcher = NewDispatcher(e.Recorder, e.Clock)
	e.records = e.Dispatcher
	stop := e.Recorder.RecordStalls(e.Clock)
	e.teardowns = append(e.teardowns, func(context.Context) error {
		stop()
		return e.Recorder.Close()
	})
	return nil
}

// setUpObserver starts the observer, which follows etcd if etcd is reachable.
func (e *Environment) setUpObserver(ctx context.Context, kinds []kube.Kind) error {
	provider, ok := e.Cluster.(cluster.EtcdProvider)
	if !ok {
		watching, err := observe.Start(ctx, observe.Options{
			Config: e.Cluster.Config(cluster.Admin), Namespace: Namespace, Kinds: kinds, Recorder: e.Dispatcher,
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
	e.teardowns = append(e.teardowns, func(context.Context) error { return etcd.Close() })
	following, err := observe.Follow(ctx, observe.FollowOptions{Etcd: etcd, Namespace: Namespace, Kinds: kinds, Recorder: e.Dispatcher})
	if err != nil {
		return err
	}
	e.useObserver(following)
	return nil
}

func (e *Environment) useObserver(o observer) {
	e.observer = o
	e.teardowns = append(e.teardowns, func(context.Context) error { o.Stop(); return nil })
}

// CatchUp waits until the history contains everything that was committed before the call,
// for at most 10 seconds. Its error says what is missing. It does not report a failure of
// the recorder; see Failed.
func (e *Environment) CatchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return errors.Join(e.observer.CatchUp(ctx), e.Recorder.Flush())
}
