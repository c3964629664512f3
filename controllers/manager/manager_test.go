package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
	)
}

// testOptions returns options without an HTTPS server. The leader renews its lease often.
func testOptions() *Options {
	options := NewOptions()
	options.Serving.BindAddress, options.Serving.SecurePort = "127.0.0.1", 0
	options.LeaderElection.RetryPeriod = 20 * time.Millisecond
	options.LeaderElection.RenewDeadline = 200 * time.Millisecond
	options.LeaderElection.LeaseDuration = time.Second
	return options
}

// newClient returns a fake API server that contains a ReplicaSet with 2 replicas.
func newClient() *fake.Clientset {
	replicas := int32(2)
	client := fake.NewClientset(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set", ResourceVersion: "1"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
		},
	})
	var version atomic.Int64
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		v := version.Add(1)
		pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, v)
		pod.UID, pod.ResourceVersion = types.UID(pod.Name), fmt.Sprint(100+v)
		return false, nil, nil // let the object tracker of the fake client store the object
	})
	return client
}

func sharedClients(client kubernetes.Interface) Clients {
	return func(string) (kubernetes.Interface, error) { return client, nil }
}

// eventually waits until condition returns true. The test fails after a timeout.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func podsOf(t *testing.T, client kubernetes.Interface) int {
	pods, err := client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(pods.Items)
}

func leaseHolder(t *testing.T, client kubernetes.Interface) string {
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), Name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func start(t *testing.T, options *Options, client kubernetes.Interface) (stop func(), ended <-chan error) {
	t.Helper()
	return startWith(t, options, sharedClients(client))
}

func startWith(t *testing.T, options *Options, clients Clients) (stop func(), ended <-chan error) {
	t.Helper()
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- New(options, clients).Run(ctx) }()
	return cancel, result
}

func TestRunReleasesLease(t *testing.T) {
	client := newClient()
	stop, ended := start(t, testOptions(), client)
	eventually(t, "two pods", func() bool { return podsOf(t, client) == 2 })
	if leaseHolder(t, client) == "" {
		t.Error("pods were created without the lease")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if held := leaseHolder(t, client); held != "" {
		t.Errorf("the lease is still held by %q", held)
	}
}

func TestStandbyWaitsAndTakesOver(t *testing.T) {
	client := newClient()
	stopFirst, firstEnded := start(t, testOptions(), client)
	eventually(t, "a leader", func() bool { return leaseHolder(t, client) != "" })
	first := leaseHolder(t, client)
	stopSecond, secondEnded := start(t, testOptions(), client)
	stopFirst()
	if err := <-firstEnded; err != nil {
		t.Errorf("the first Run ended with %v", err)
	}
	eventually(t, "a second leader", func() bool { h := leaseHolder(t, client); return h != "" && h != first })
	stopSecond()
	if err := <-secondEnded; err != nil {
		t.Errorf("the second Run ended with %v", err)
	}
}

func TestStandbyStops(t *testing.T) {
	client := newClient()
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no route")
	})
	stop, ended := start(t, testOptions(), client)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if podsOf(t, client) != 0 {
		t.Error("made writes without the lease")
	}
}

func TestLostLeaseEndsRun(t *testing.T) {
	client := newClient()
	var broken atomic.Bool
	client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken.Load(), nil, errors.New("no route")
	})
	_, ended := start(t, testOptions(), client)
	eventually(t, "two pods", func() bool { return podsOf(t, client) == 2 })
	broken.Store(true)
	if err := <-ended; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("Run ended with %v, want %v", err, ErrLeaseLost)
	}
}

func TestRunWithoutElection(t *testing.T) {
	client := newClient()
	options := testOptions()
	options.LeaderElection.Enabled = false
	stop, ended := start(t, options, client)
	eventually(t, "two pods", func() bool { return podsOf(t, client) == 2 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestEventsNameController checks the source component in the events of each controller.
func TestEventsNameController(t *testing.T) {
	client := newClient()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	name := func(uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid}
	}
	for _, object := range []runtime.Object{
		&corev1.ReplicationController{ObjectMeta: name("rc"), Spec: corev1.ReplicationControllerSpec{Selector: template.Labels, Template: &template}},
		&appsv1.Deployment{ObjectMeta: name("deployment"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}},
		&corev1.Service{ObjectMeta: name("service"), Spec: corev1.ServiceSpec{Selector: template.Labels}},
	} {
		if err := client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("create", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	stop, ended := start(t, testOptions(), client)
	want := map[string]string{
		"ReplicationController SuccessfulCreate": "replication-controller",
		"ReplicaSet SuccessfulCreate":            "replicaset-controller",
		"Deployment SelectingAll":                "deployment-controller",
		"Endpoints FailedToCreateEndpoint":       "endpoint-controller",
	}
	eventually(t, fmt.Sprint("events of ", want), func() bool {
		list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, event := range list.Items {
			got[event.InvolvedObject.Kind+" "+event.Reason] = event.Source.Component
		}
		return cmp.Equal(want, got)
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestEventsNameLeader checks that an event about the lease contains the name of the leader.
func TestEventsNameLeader(t *testing.T) {
	client := newClient()
	options := testOptions()
	options.LeaderElection.ResourceNamespace = "leases"
	stop, ended := start(t, options, client)
	eventually(t, "an event about the lease", func() bool {
		list, err := client.CoreV1().Events("leases").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			about := event.InvolvedObject
			if about.Kind == "Lease" && about.Name == options.LeaderElection.ResourceName && event.Reason == "LeaderElection" &&
				event.Source.Component == Name && strings.HasSuffix(event.Message, " became leader") {
				return true
			}
		}
		return false
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestRunWithoutControllers checks that a disabled controller does nothing. The Manager must run
// even if all controllers are disabled.
func TestRunWithoutControllers(t *testing.T) {
	client := newClient()
	options := testOptions()
	options.Controllers = []string{"-replicaset-controller", "*", "-replicationcontroller-controller"}
	stop, ended := start(t, options, client)
	eventually(t, "a leader", func() bool { return leaseHolder(t, client) != "" })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if podsOf(t, client) != 0 {
		t.Error("a disabled controller made writes")
	}
}

func TestServing(t *testing.T) {
	client := newClient()
	options := testOptions()
	options.Serving.SecurePort = freePort(t)
	stop, ended := start(t, options, client)
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	get := func(path string) string {
		response, err := insecure.Get(fmt.Sprintf("https://127.0.0.1:%d%s", options.Serving.SecurePort, path))
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(response.StatusCode, " ", string(body))
	}
	eventually(t, "two pods", func() bool { return podsOf(t, client) == 2 })
	for path, want := range map[string]string{
		"/healthz":        "200 ok",
		"/livez":          "200 ok",
		"/readyz":         "200 ok",
		"/readyz?verbose": "200 [+]leaderElection ok\n[+]informers ok\n",
	} {
		if got := get(path); got != want {
			t.Errorf("%s returned %q, want %q", path, got, want)
		}
	}
	metrics := get("/metrics")
	for _, want := range []string{
		`workqueue_adds_total{name="replicaset"}`,
		`leader_election_master_status{name="` + Name + `"} 1`,
		`running_managed_controllers{manager="` + Name + `",name="replicaset-controller"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics does not contain %s", want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestPortInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	options := testOptions()
	options.Serving.SecurePort = listener.Addr().(*net.TCPAddr).Port
	_, ended := start(t, options, newClient())
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "--secure-port") {
		t.Errorf("Run ended with %v", err)
	}
}

func TestHealthFails(t *testing.T) {
	recorder := httptest.NewRecorder()
	checks := []healthCheck{
		{"good", func(*http.Request) error { return nil }},
		{"bad", func(*http.Request) error { return errors.New("unhealthy") }},
	}
	newHandler(checks, nil, []string{"/healthz"}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if want := "[+]good ok\n[-]bad failed: unhealthy\n"; recorder.Code != 500 || recorder.Body.String() != want {
		t.Errorf("response %d %q, want 500 %q", recorder.Code, recorder.Body, want)
	}
}

// TestAllowedPaths checks that the server answers with status 403 for every path that is not
// allowed.
func TestAllowedPaths(t *testing.T) {
	handler := newHandler(nil, nil, []string{"/livez", "/debug/*"})
	for path, want := range map[string]int{
		"/livez": 200, "/livez/more": 403, "/metrics": 403, "/debug": 403, "/debug/pprof/goroutine?debug=2": 200, "/debug/pprof/heap": 200, "/debug/pprof/unknown": 404,
	} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code != want {
			t.Errorf("%s returned %d, want %d", path, recorder.Code, want)
		}
		if path == "/debug/pprof/goroutine?debug=2" && !strings.Contains(recorder.Body.String(), "TestAllowedPaths") {
			t.Errorf("%s returned stacks without this goroutine:\n%s", path, recorder.Body)
		}
	}
	if defaults := NewOptions().Serving.AllowedPaths; allowed(defaults, "/debug/pprof/goroutine") || !allowed(defaults, "/metrics") {
		t.Errorf("the default paths are %v, want /metrics and not /debug/pprof/goroutine", defaults)
	}
}

func TestCertificateDirectory(t *testing.T) {
	options := ServingOptions{BindAddress: "127.0.0.1", CertDir: filepath.Join(t.TempDir(), "certs")}
	made, err := options.certificate()
	if err != nil {
		t.Fatal(err)
	}
	found, err := options.certificate()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made.Certificate, found.Certificate); diff != "" {
		t.Error("the certificate was created again")
	}
	info, err := os.Stat(filepath.Join(options.CertDir, Name+".key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the key file is %v, error %v; want 0600", info.Mode(), err)
	}
}

// TestTimeouts checks that a request without a response times out, and that a watch does not.
func TestTimeouts(t *testing.T) {
	silent := roundTripper(func(request *http.Request) (*http.Response, error) {
		if _, limited := request.Context().Deadline(); !limited {
			return &http.Response{Body: http.NoBody}, nil
		}
		<-request.Context().Done()
		return nil, request.Context().Err()
	})
	transport := &timeoutTransport{next: silent, limit: time.Millisecond}
	for path, limited := range map[string]bool{"/api/v1/pods": true, "/api/v1/pods?watch=true": false, "/api/v1/pods?watch=1": false} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		response, err := transport.RoundTrip(request)
		if response != nil {
			response.Body.Close()
		}
		if limited && (!errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "timed out after 1ms")) {
			t.Errorf("%s: error %v, want a timeout", path, err)
		}
		if !limited && err != nil {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
