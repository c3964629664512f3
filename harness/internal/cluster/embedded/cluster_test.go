package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// The tests in this file run the programs that `gauntlet setup` builds.

// helperVariable is an environment variable that makes the test binary run a helper instead of the
// tests. Its value is a directory. The helper starts a cluster in this directory, prints the
// process IDs of the components, and waits.
const helperVariable = "GAUNTLET_EMBEDDED_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(helperVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background(), Options{Nodes: 1, Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, p := range c.parts {
		fmt.Print(p.PID(), " ")
	}
	fmt.Println()
	select {}
}

const startDelay = 300 * time.Millisecond

func TestCluster(t *testing.T) {
	c, dir := startCluster(t, Options{Nodes: 2, PodStartDelay: startDelay, Definitions: []*unstructured.Unstructured{widgetDefinition()}})
	admin := clientFor(t, c, cluster.Admin)
	t.Run("is ready", func(t *testing.T) { testReady(t, c, admin) })
	t.Run("the subject has no permissions", func(t *testing.T) { testSubjectPermissions(t, clientFor(t, c, cluster.Subject)) })
	t.Run("anonymous requests are rejected", func(t *testing.T) { testAnonymous(t, c) })
	t.Run("pod lifecycle", func(t *testing.T) { testPodLifecycle(t, admin) })
	t.Run("custom resources have garbage collection", func(t *testing.T) { testCustomResource(t, c, admin) })
	t.Run("finalizers delay deletion", func(t *testing.T) { testFinalizer(t, admin) })
	t.Run("namespaces can be deleted", func(t *testing.T) { testNamespace(t, admin) })
	t.Run("a hanging component is unhealthy", func(t *testing.T) { testHang(t, c) })
	t.Run("stops", func(t *testing.T) { testStop(t, c, dir) })
}

func testReady(t *testing.T, c *Cluster, admin kubernetes.Interface) {
	if c.Name() != "embedded" || c.Err() != nil {
		t.Errorf("Name() = %q, Err() = %v; want \"embedded\" and nil", c.Name(), c.Err())
	}
	if err := c.Health(t.Context()); err != nil {
		t.Error(err)
	}
	nodes, err := admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Fatalf("%d nodes (error %v), want 2", len(nodes.Items), err)
	}
	for _, node := range nodes.Items {
		if err := cluster.NodeSchedulable(&node); err != nil {
			t.Error(err)
		}
		if got := node.Status.Allocatable.Pods().Value(); got != podsPerNodeMax {
			t.Errorf("node %s has capacity for %d pods, want %d", node.Name, got, podsPerNodeMax)
		}
	}
	version, err := admin.Discovery().ServerVersion()
	if err != nil || version.GitVersion != KubernetesVersion {
		t.Errorf("server version %v (error %v), want %s", version, err, KubernetesVersion)
	}
}

// widgetDefinition returns the CustomResourceDefinition of Widgets, which may have any fields.
func widgetDefinition() *unstructured.Unstructured {
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Widget", "plural": "widgets"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": schema}},
		},
	}}
}

// testCustomResource checks that the API server serves the resources of Options.Definitions. The garbage
// collector must delete what belongs to a deleted custom resource.
func testCustomResource(t *testing.T, c *Cluster, admin kubernetes.Interface) {
	client, err := dynamic.NewForConfig(c.Config(cluster.Admin))
	if err != nil {
		t.Fatal(err)
	}
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace(metav1.NamespaceDefault)
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}}
	if widget, err = widgets.Create(t.Context(), widget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	maps := admin.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	owner := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: widget.GetUID()}
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "w", OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ConfigMap of the Widget is deleted", func() bool {
		_, err := maps.Get(t.Context(), "w", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func testSubjectPermissions(t *testing.T, subject kubernetes.Interface) {
	_, err := subject.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), cluster.SubjectUser) {
		t.Errorf("listing pods as the subject: error %v, want Forbidden", err)
	}
}

func testAnonymous(t *testing.T, c *Cluster) {
	config := c.Config(cluster.Admin)
	config.BearerToken = ""
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("listing pods without a token: error %v, want Unauthorized", err)
	}
}

func testPodLifecycle(t *testing.T, admin kubernetes.Interface) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			pods := admin.CoreV1().Pods(metav1.NamespaceDefault)
			started := time.Now()
			pod := createPod(t, admin, "lifecycle-"+strings.ToLower(string(phase)))
			eventuallyPod(t, admin, pod.Name, "is Ready with an IP", func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodRunning && condition(p, corev1.PodReady) == corev1.ConditionTrue && p.Status.PodIP != ""
			})
			if elapsed := time.Since(started); elapsed < startDelay {
				t.Errorf("pod is Ready after %s, want not before the start delay of %s", elapsed, startDelay)
			}
			patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
			if _, err := pods.Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			eventuallyPod(t, admin, pod.Name, "is no longer Ready", func(p *corev1.Pod) bool {
				return p.Status.Phase == phase && condition(p, corev1.PodReady) == corev1.ConditionFalse &&
					condition(p, corev1.ContainersReady) == corev1.ConditionFalse && condition(p, corev1.PodScheduled) == corev1.ConditionTrue
			})
			deletePod(t, admin, pod.Name)
			eventuallyGone(t, admin, pod.Name)
		})
	}
}

func testFinalizer(t *testing.T, admin kubernetes.Interface) {
	pod := createPod(t, admin, "finalized", "example.org/finalizer")
	eventuallyPod(t, admin, pod.Name, "is Running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	deletePod(t, admin, pod.Name)
	eventuallyPod(t, admin, pod.Name, "is stopped but retained by its finalizer", func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && *p.DeletionGracePeriodSeconds == 0 && len(p.Finalizers) == 1
	})
	removeFinalizer := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := admin.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, removeFinalizer, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, admin, pod.Name)
}

func testNamespace(t *testing.T, admin kubernetes.Interface) {
	namespaces := admin.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is deleted", func() bool {
		_, err := namespaces.Get(t.Context(), "deleted", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func testHang(t *testing.T, c *Cluster) {
	p := partNamed(t, c, "kube-scheduler")
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Health(ctx); !errorHas(err, "kube-scheduler is not healthy", "deadline exceeded") {
		t.Errorf("Health() while the scheduler is paused: error %v, want one that names the scheduler", err)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is healthy again", func() bool { return c.Health(t.Context()) == nil })
}

func testStop(t *testing.T, c *Cluster, dir string) {
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.parts {
		if running(p.PID()) {
			t.Errorf("%s is running after Stop()", p.name)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "logs", p.name+".log")); err != nil {
			t.Errorf("reading the log of %s: %v", p.name, err)
		} else if containsToken(c, string(data)) {
			t.Errorf("the log of %s contains a token", p.name)
		}
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.layout.ports.apiServer)); err == nil {
		conn.Close()
		t.Error("the port of the API server accepts connections after Stop()")
	}
	assertRemoved(t, filepath.Join(dir, "cluster"))
	select {
	case <-c.Failed():
		t.Errorf("Stop() closed Failed(): %v", c.Err())
	default:
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("second Stop(): %v, want no error", err)
	}
	if err := c.Health(t.Context()); !errorHas(err, "stopped") {
		t.Errorf("Health() after Stop(): error %v, want one that contains \"stopped\"", err)
	}
}

func TestCrashOfComponentIsReported(t *testing.T) {
	c, dir := startCluster(t, Options{Nodes: 1})
	if err := partNamed(t, c, "etcd").Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Failed():
	case <-time.After(30 * time.Second):
		t.Fatal("Failed() was not closed within 30 s")
	}
	for method, err := range map[string]error{"Err": c.Err(), "Health": c.Health(t.Context())} {
		if !errorHas(err, "etcd was terminated by SIGKILL", "etcd.log") {
			t.Errorf("%s() = %v, want the exit of etcd", method, err)
		}
	}
	// Stop must succeed although the API server cannot shut down gracefully without etcd.
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	assertRemoved(t, filepath.Join(dir, "cluster"))
}

func TestNothingOutlivesGauntlet(t *testing.T) {
	dir := t.TempDir()
	gauntlet := exec.CommandContext(t.Context(), "/proc/self/exe")
	gauntlet.Env = append(os.Environ(), helperVariable+"="+dir)
	output, err := gauntlet.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gauntlet.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	var pids []int
	for _, field := range strings.Fields(line) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	if err != nil || len(pids) != 5 {
		t.Fatalf("reading the process IDs that the helper prints: got %q, error %v; want 5", line, err)
	}
	if err := gauntlet.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = gauntlet.Wait() // the process was killed by the test, which is an error of Wait
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d has exited", pid), func() bool { return !running(pid) })
	}
	eventually(t, "the state directory is removed", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "cluster"))
		return errors.Is(err, os.ErrNotExist)
	})
}

func startCluster(t *testing.T, opts Options) (c *Cluster, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "one, two") // a path with characters that need quoting
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	opts.Dir, opts.LogDir = dir, filepath.Join(dir, "logs")
	started := time.Now()
	c, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cluster is ready after %s", time.Since(started).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c, dir
}

func clientFor(t *testing.T, c *Cluster, role cluster.Role) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config(role))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func partNamed(t *testing.T, c *Cluster, name string) *part {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("component %s not found", name)
	return nil
}

// running reports whether a process with this ID exists and is not a zombie. A zombie has already
// exited; its new parent may reap it late.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func containsToken(c *Cluster, text string) bool {
	for _, token := range c.creds.tokens {
		if strings.Contains(text, token) {
			return true
		}
	}
	return false
}

func createPod(t *testing.T, client kubernetes.Interface, name string, finalizers ...string) *corev1.Pod {
	t.Helper()
	pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Image: "none"}},
			Containers:     []corev1.Container{{Name: "main", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func deletePod(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	if err := client.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// eventuallyPod fails the test if the pod does not meet the condition within 30 seconds.
func eventuallyPod(t *testing.T, client kubernetes.Interface, name, description string, condition func(*corev1.Pod) bool) {
	t.Helper()
	var last *corev1.Pod
	defer func() {
		if t.Failed() {
			t.Logf("last state of the pod: %v", last)
		}
	}()
	eventually(t, "pod "+name+" "+description, func() bool {
		pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = pod
		return condition(pod)
	})
}

func eventuallyGone(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	eventually(t, "pod "+name+" is deleted", func() bool {
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// eventually fails the test if the condition does not become true within 30 seconds.
func eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-ticker.C {
		if condition() {
			return
		}
	}
	t.Fatalf("condition was not met within 30 s: %s", description)
}
