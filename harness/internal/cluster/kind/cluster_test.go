package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// The tests in this file create clusters. Without a container engine or a node image (`make engine
// node-image`), the tests are skipped.

// helperVariable is an environment variable that makes the test binary run a helper instead of the
// tests. Its value is a directory. The helper starts a cluster in this directory, prints the name
// of the cluster, and waits.
const helperVariable = "GAUNTLET_KIND_TEST_DIR"

func TestMain(m *testing.M) {
	dir := os.Getenv(helperVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background(), Options{Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.ID())
	select {}
}

// requireEngine skips the test if the container engine or the node image is missing. requireEngine
// does not pull a node image.
func requireEngine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the test creates a kind cluster")
	}
	var e engine
	if err := e.check(t.Context()); err != nil {
		t.Skipf("the test needs a container engine: %v", err)
	}
	for _, image := range []string{BuiltImage, ReleasedImage} {
		if e.hasImage(t.Context(), image) == nil {
			return
		}
	}
	t.Skipf("the test needs a node image: %s (built by `make node-image`) or %s", BuiltImage, ReleasedImage)
}

func startCluster(t *testing.T, workers int) *Cluster {
	t.Helper()
	dir := t.TempDir()
	c, err := Start(t.Context(), Options{Workers: workers, Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		assertRemoved(t, c.ID())
	})
	return c
}

// assertRemoved fails the test if List still finds the named cluster.
func assertRemoved(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	found, err := List(ctx)
	if err != nil {
		t.Error(err)
	}
	if slices.ContainsFunc(found, func(f Found) bool { return f.Name == name }) {
		t.Errorf("List() still contains cluster %s: %+v", name, found)
	}
}

func clientFor(t *testing.T, c *Cluster, role cluster.Role) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config(role))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestClusters runs two clusters at the same time: one with a single node and one with two workers.
func TestClusters(t *testing.T) {
	requireEngine(t)
	t.Parallel()
	t.Run("one node", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, 0)
		testRoles(t, c)
		testNoSubjectControllers(t, c)
		testHalt(t, c)
		testNodeExitIsReported(t, c)
	})
	t.Run("two workers", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, 2)
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		testPodNetwork(t, c)
		testKillAndStartNode(t, c)
		testCutOffAndReconnect(t, c)
		testPodNetwork(t, c)
		if err := c.Err(); err != nil {
			t.Errorf("Err() after KillNode() = %v, want nil", err)
		}
		testLogs(t, c)
	})
}

func testRoles(t *testing.T, c *Cluster) {
	for role, want := range map[cluster.Role]string{
		cluster.Admin: "gauntlet:admin", cluster.Subject: cluster.SubjectUser, cluster.Support: "gauntlet:support",
	} {
		review, err := clientFor(t, c, role).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || review.Status.UserInfo.Username != want {
			t.Errorf("user name of role %s is %q (error %v), want %q", role, review.Status.UserInfo.Username, err, want)
		}
	}
	_, err := clientFor(t, c, cluster.Subject).CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing pods as the subject: error %v, want Forbidden", err)
	}
}

func testNoSubjectControllers(t *testing.T, c *Cluster) {
	admin := clientFor(t, c, cluster.Admin)
	pods, err := admin.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: "component=kube-controller-manager"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods of kube-controller-manager (error %v), want 1", len(pods.Items), err)
	}
	command := strings.Join(pods.Items[0].Spec.Containers[0].Command, " ")
	for _, want := range append([]string{"--leader-elect=false", "--controllers=*,"}, kube.DefaultControllers()...) {
		if !strings.Contains(command, want) {
			t.Errorf("the command of kube-controller-manager does not contain %q: %s", want, command)
		}
	}
	for _, group := range []func() (int, error){
		func() (int, error) {
			l, err := admin.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
		func() (int, error) {
			l, err := admin.AppsV1().ReplicaSets("").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
	} {
		if n, err := group(); n != 0 || err != nil {
			t.Errorf("a new cluster contains %d Deployments or ReplicaSets (error %v), want 0", n, err)
		}
	}
}

// testNodeExitIsReported verifies that the channel of Failed is closed when a node's container
// exits unexpectedly. The test kills the container with `docker kill`, because an exit after
// KillNode is expected.
func testNodeExitIsReported(t *testing.T, c *Cluster) {
	if _, err := c.engine.run(t.Context(), engineChangeTimeout, "kill", c.nodes[0]); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Failed():
	case <-time.After(engineChangeTimeout):
		t.Fatal("Failed() was not closed after the container of a node exited")
	}
	if err := c.Err(); !errorHas(err, c.nodes[0]+" stopped unexpectedly", "exit status 137") {
		t.Errorf("Err() = %v, want the exit of the node", err)
	}
	if err := c.Health(t.Context()); !errorHas(err, c.nodes[0]) {
		t.Errorf("Health() = %v, want the exit of the node", err)
	}
}

// testPodNetwork checks that pods on different workers can connect to each other. The server must
// see the client pod's IP address, not the address of the client's node.
func testPodNetwork(t *testing.T, c *Cluster) {
	pods := clientFor(t, c, cluster.Admin).CoreV1().Pods(metav1.NamespaceDefault)
	ips := map[string]string{}
	for _, node := range c.nodes[1:] {
		ips[node] = runPod(t, c, node)
	}
	from, to := c.nodes[1], c.nodes[2]
	server := inPodNetwork(ips[to], `socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:'echo from $SOCAT_PEERADDR'`)
	if _, err := c.engine.run(t.Context(), engineChangeTimeout, "exec", "--detach", to, "sh", "-c", server); err != nil {
		t.Fatal(err)
	}
	client := inPodNetwork(ips[from], "socat -T2 - TCP:"+ips[to]+":8080,connect-timeout=2 </dev/null")
	ctx, cancel := context.WithTimeout(t.Context(), engineChangeTimeout)
	defer cancel()
	err := poll(ctx, "a response from pod to pod", func(ctx context.Context) error {
		answer, err := c.engine.run(ctx, engineQueryTimeout, "exec", from, "sh", "-c", client)
		if want := "from " + ips[from]; err == nil && answer != want {
			err = fmt.Errorf("the pod on node %s answered %q, want %q", to, answer, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, node := range c.nodes[1:] {
		if err := pods.Delete(t.Context(), "on-"+node, *metav1.NewDeleteOptions(0)); err != nil {
			t.Error(err)
		}
	}
}

// inPodNetwork returns a shell script that runs a command in a pod's network namespace. The script
// must run on the pod's node. It finds the network namespace by the pod's IP address, the argument
// ip.
func inPodNetwork(ip, command string) string {
	return `for ns in $(ls /run/netns); do
  if ip -n "$ns" -o addr show to ` + ip + ` | grep -q .; then exec ip netns exec "$ns" ` + command + `; fi
done
echo "no pod here has ` + ip + `" >&2
exit 1`
}

// runPod creates a pod on a node, waits until the pod is Ready, and returns the pod's IP address.
func runPod(t *testing.T, c *Cluster, nodeName string) string {
	t.Helper()
	admin := clientFor(t, c, cluster.Admin)
	node, err := admin.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	image, err := PauseImage(node)
	if err != nil {
		t.Fatal(err)
	}
	pods := admin.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-" + nodeName}, Spec: corev1.PodSpec{
		NodeName:   nodeName,
		Containers: []corev1.Container{{Name: "pause", Image: image, ImagePullPolicy: corev1.PullNever}},
	}}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), engineChangeTimeout)
	defer cancel()
	ip := ""
	err = poll(ctx, "a pod on "+nodeName, func(ctx context.Context) error {
		got, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !cluster.PodReady(got) {
			err = notReadyError(got)
		}
		if err == nil {
			ip = got.Status.PodIP
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

// testKillAndStartNode checks that Health ignores a killed worker, and that StartNode starts the
// worker.
func testKillAndStartNode(t *testing.T, c *Cluster) {
	node := c.nodes[2]
	if err := c.KillNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Health(t.Context()); err != nil {
		t.Errorf("Health() after KillNode(): %v, want no error", err)
	}
	if err := c.StartNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StartNode(t.Context(), node); err != nil {
		t.Errorf("StartNode() of a running node: %v, want no error", err)
	}
	if err := c.KillNode(t.Context(), "missing"); !errorHas(err, `node "missing" does not exist`) {
		t.Errorf("KillNode() of a missing node: error %v, want one that names it", err)
	}
}

// testCutOffAndReconnect checks that CutOff disconnects a worker, and that Reconnect connects it
// again. The kubelet of the worker must keep running.
func testCutOffAndReconnect(t *testing.T, c *Cluster) {
	node := c.nodes[1]
	kubeletStart := func() string {
		t.Helper()
		out, err := c.engine.run(t.Context(), engineQueryTimeout, "exec", node, "sh", "-c", "stat -c %Y /proc/$(pidof kubelet)")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := kubeletStart()
	if err := c.CutOff(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	connectToWorker := func() error { // from the control plane node to the worker's kubelet
		ctx, cancel := context.WithTimeout(t.Context(), engineQueryTimeout)
		defer cancel()
		_, err := c.ControlPlane().Exec(ctx, "curl", "--silent", "--insecure", "--max-time", "2", "https://"+node+":10250/healthz")
		return err
	}
	connectFromWorker := func() error { // from the worker to the API server
		_, err := c.engine.run(t.Context(), engineQueryTimeout, "exec", node, "curl", "--silent", "--insecure", "--max-time", "2", "https://"+c.nodes[0]+":6443/livez")
		return err
	}
	if connectToWorker() == nil {
		t.Error("the kubelet of the worker is reachable after CutOff()")
	}
	if connectFromWorker() == nil {
		t.Error("the worker can reach the API server after CutOff()")
	}
	if err := c.Health(t.Context()); err != nil {
		t.Errorf("Health() after CutOff(): %v, want no error", err)
	}
	for range 2 { // the second Reconnect has no effect
		if err := c.Reconnect(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Health(t.Context()), connectToWorker(), connectFromWorker(), c.Err()); err != nil {
		t.Error(err)
	}
	if after := kubeletStart(); after != before {
		t.Errorf("start time of the kubelet is %s, want %s: the kubelet was restarted", after, before)
	}
}

func testLogs(t *testing.T, c *Cluster) {
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"kubelet-control-plane", "kubelet-worker", "kubelet-worker2", "kind"}, components...) {
		if info, err := os.Stat(filepath.Join(c.logDir, name+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s is missing or empty: %v", name, err)
		}
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state directory was not removed: error %v, want %v", err, os.ErrNotExist)
	}
}
