package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// runAsCommandEnv is the name of an environment variable. If it is set, the test binary runs the
// function main of the command instead of the tests.
const runAsCommandEnv = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommandEnv) != "" {
		main() // does not return
	}
	m.Run()
}

// apiServer is a fake API server with one Lease and no other objects. A test can change the
// holder of the Lease.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	lease *coordinationv1.Lease
	down  atomic.Bool
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // open watches would delay Close
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.down.Load():
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, http.StatusInternalServerError)
	case strings.Contains(request.URL.Path, "/leases"):
		s.serveLease(w, request)
	case request.URL.Query().Has("watch"):
		w.WriteHeader(http.StatusOK)
		if request.URL.Query().Get("sendInitialEvents") == "true" {
			fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"`+resourceOf(request)+`","apiVersion":"`+versionOf(request)+
				`","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		w.(http.Flusher).Flush()
		<-request.Context().Done()
	default:
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"1"},"items":[]}`, resourceOf(request), versionOf(request))
	}
}

func resourceOf(request *http.Request) string {
	return map[string]string{
		"pods": "Pod", "services": "Service", "endpoints": "Endpoints", "replicationcontrollers": "ReplicationController",
		"replicasets": "ReplicaSet", "deployments": "Deployment",
	}[filepath.Base(request.URL.Path)]
}

func versionOf(request *http.Request) string {
	if strings.HasPrefix(request.URL.Path, "/apis/apps/") {
		return "apps/v1"
	}
	return "v1"
}

func (s *apiServer) serveLease(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if request.Method == http.MethodGet && s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	if request.Method != http.MethodGet {
		lease := &coordinationv1.Lease{}
		if err := json.NewDecoder(request.Body).Decode(lease); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.lease = lease
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *apiServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || s.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// process is a running workload-controller-manager process.
type process struct {
	*exec.Cmd
	port int
}

// start starts the command with a kubeconfig for server. It waits until all controllers are
// running.
func start(t *testing.T, server *apiServer) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{port: freePort(t)}
	p.Cmd = exec.CommandContext(t.Context(), os.Args[0], "--kubeconfig="+kubeconfig, "--kube-api-content-type=application/json",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port),
		"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=100ms")
	p.Env = append(os.Environ(), runAsCommandEnv+"=yes")
	log, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	// The log shows when all four controllers have started. Read the log to its end, because
	// a full pipe would block the command.
	working := make(chan struct{})
	var said strings.Builder
	go func() {
		started := 0
		for lines := bufio.NewScanner(log); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Caches synced, starting workers") {
				if started++; started == 4 {
					close(working)
				}
			}
		}
		if started < 4 {
			close(working)
		}
	}()
	select {
	case <-working:
	case <-t.Context().Done():
	}
	if server.holder() == "" {
		t.Fatalf("process ended before the controllers started:\n%s", said.String())
	}
	return p
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (p *process) get(ctx context.Context, path string) (string, error) {
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path), nil)
	if err != nil {
		return "", err
	}
	response, err := insecure.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(body)), err
}

// TestTerminate checks the health endpoints of a process. After SIGTERM, the process must stop
// gracefully.
func TestTerminate(t *testing.T) {
	server := newAPIServer(t)
	p := start(t, server)
	for path, wants := range map[string][]string{
		"/healthz": {"200 ok"},
		"/readyz":  {"200 ok"},
		"/metrics": {
			`workqueue_depth{name="deployment"}`, `workqueue_depth{name="endpoint"}`, `workqueue_depth{name="replicaset"}`, `workqueue_depth{name="replicationmanager"}`,
			`rest_client_requests_total{`, `leader_election_master_status{name="workload-controller-manager"} 1`,
			`running_managed_controllers{manager="workload-controller-manager",name="endpoints-controller"} 1`,
		},
	} {
		got, err := p.get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("the response of %s does not contain %q", path, want)
			}
		}
	}
	begin := time.Now()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v, want exit code 0", err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if held := server.holder(); held != "" {
		t.Errorf("the lease is still held by %q", held)
	}
}

// TestLostLease checks that a process exits immediately when it loses its lease.
func TestLostLease(t *testing.T) {
	server := newAPIServer(t)
	p := start(t, server)
	server.down.Store(true)
	_ = p.Wait()
	if code := p.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
}
