package catalog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/proxy"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// The live tests inject faults between a real API server and client-go, which acts as the
// subject. The tests share one control plane, which the first test starts. Each test has a
// namespace and a proxy of its own.

// controlPlane is the real control plane that the tests of this package share.
var controlPlane struct {
	once    sync.Once
	cluster cluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gauntlet-catalog-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlPlaneDir = dir
	code := m.Run()
	if controlPlane.cluster != nil {
		if err := controlPlane.cluster.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var controlPlaneDir string

// live contains the namespace, the fault proxy and the clients of one test on a real control
// plane.
type live struct {
	*historytest.Recording
	t           *testing.T
	interceptor *interceptor.Interceptor
	namespace   string
	admin       kubernetes.Interface // client whose requests bypass the fault proxy
	config      *rest.Config         // client configuration of the controller under test, whose requests go through the fault proxy
	subject     kubernetes.Interface
	rand        *rand.Rand // the source of random numbers of all faults of the test
}

func startLive(t *testing.T) *live {
	t.Helper()
	controlPlane.once.Do(func() {
		var provider providers.Provider
		if provider, controlPlane.err = providers.Named(providers.Default()); controlPlane.err != nil {
			return
		}
		controlPlane.cluster, controlPlane.err = provider.Start(context.WithoutCancel(t.Context()),
			providers.Options{Nodes: 1, Dir: controlPlaneDir, LogDir: filepath.Join(controlPlaneDir, "logs")})
	})
	if controlPlane.err != nil {
		t.Fatal(controlPlane.err)
	}
	l := &live{Recording: &historytest.Recording{}, t: t, rand: rand.New(rand.NewPCG(1, 1))}
	config := controlPlane.cluster.Config(cluster.Admin)
	l.admin = l.clientOf(config)
	namespace, err := l.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "live-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.namespace = namespace.Name
	l.startProxy(config)
	return l
}

// startProxy starts a fault proxy in front of the API server. The controller under test sends its
// requests through the proxy, with the permissions of the configuration admin.
func (l *live) startProxy(admin *rest.Config) {
	l.t.Helper()
	target, err := url.Parse(admin.Host)
	if err != nil {
		l.t.Fatal(err)
	}
	l.interceptor = interceptor.New(l.Recording, clock.RealClock{})
	between, err := proxy.Start(l.t.Context(), proxy.Options{
		Target: target, TargetCA: admin.CAData, Interceptor: l.interceptor, Clock: clock.RealClock{},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), 10*time.Second)
		defer cancel()
		if err := between.Stop(ctx); err != nil {
			l.t.Error(err)
		}
	})
	endpoint, err := between.Listen("subject-0")
	if err != nil {
		l.t.Fatal(err)
	}
	l.config = rest.CopyConfig(admin)
	l.config.Host, l.config.CAData = endpoint.URL, endpoint.CA
	l.subject = l.clientOf(l.config)
}

func (l *live) clientOf(config *rest.Config) kubernetes.Interface {
	l.t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

// inject injects a fault with the given parameters in YAML. The function heal heals the fault.
// If the test does not call heal, the fault is healed at the end of the test.
func (l *live) inject(name, text string) (heal func()) {
	l.t.Helper()
	params, err := scenario.ParseParams("live.yaml", name, []byte(text))
	if err != nil {
		l.t.Fatal(err)
	}
	faultType, err := Find(name)
	if err != nil {
		l.t.Fatal(err)
	}
	fault, err := faultType.New(params)
	if err != nil {
		l.t.Fatal(err)
	}
	env := &faults.Env{
		Rand:        l.rand,
		Interceptor: l.interceptor, Cluster: controlPlane.cluster, Admin: l.admin, Capabilities: controlPlane.cluster.Capabilities(), Namespace: l.namespace, Clock: clock.RealClock{},
		Report: faults.NewReporter(l.Recording, 0, name),
	}
	if err := faults.Inject(l.t.Context(), fault, env); err != nil {
		l.t.Fatal(err)
	}
	heal = sync.OnceFunc(func() {
		if err := faults.Heal(context.WithoutCancel(l.t.Context()), fault, env); err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(heal)
	return heal
}

// configMap returns a ConfigMap. The tests use ConfigMaps because no controller reconciles them.
func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// create creates a ConfigMap through the fault proxy, as the controller under test does.
func (l *live) create(name string) error {
	_, err := l.subject.CoreV1().ConfigMaps(l.namespace).Create(l.t.Context(), configMap(name), metav1.CreateOptions{})
	return err
}

// commit creates a ConfigMap with a request that bypasses the fault proxy.
func (l *live) commit(name string) *corev1.ConfigMap {
	l.t.Helper()
	made, err := l.admin.CoreV1().ConfigMaps(l.namespace).Create(l.t.Context(), configMap(name), metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return made
}

// remove deletes a ConfigMap with a request that bypasses the fault proxy.
func (l *live) remove(name string) {
	l.t.Helper()
	if err := l.admin.CoreV1().ConfigMaps(l.namespace).Delete(l.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// exists reports whether the API server returns a ConfigMap with the given name.
func (l *live) exists(name string) bool {
	l.t.Helper()
	_, err := l.admin.CoreV1().ConfigMaps(l.namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil && !isNotFound(err) {
		l.t.Fatal(err)
	}
	return err == nil
}

// responseTo returns the history record of a response to a ConfigMap request with the given verb.
// The argument nth selects the request among those with this verb, counted from 0.
func (l *live) responseTo(verb string, nth int) *history.Response {
	l.t.Helper()
	for _, record := range l.All() {
		if record.Request == nil || record.Request.Verb != verb || record.Request.Resource != configMaps.Resource {
			continue
		}
		if nth--; nth < 0 {
			id := record.Request.ID
			return l.Await(l.t, "response", func(r history.Record) bool { return r.Response != nil && r.Response.ID == id }).Response
		}
	}
	l.t.Fatalf("the proxy saw fewer %ss of ConfigMaps", verb)
	return nil
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// fired returns the number of "fired" records in the history.
func (l *live) fired() int {
	n := 0
	for _, record := range l.All() {
		if record.Fault != nil && record.Fault.Event == history.FaultFired {
			n++
		}
	}
	return n
}
