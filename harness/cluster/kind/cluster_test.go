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
)

// The tests of this file make real clusters. They need a container engine and a
// node image (`make engine node-image`), and are skipped where there is none.

// helperVariable makes the test binary a small gauntlet that starts a cluster in
// the directory the variable names, says its name, and waits.
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

// needEngine skips a test where there is nothing to make clusters of. No image is
// pulled for a test.
func needEngine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes a real cluster, which takes a while")
	}
	var e engine
	if err := e.check(t.Context()); err != nil {
		t.Skipf("needs a container engine: %v", err)
	}
	for _, image := range []string{BuiltImage, ReleasedImage} {
		if e.hasImage(t.Context(), image) == nil {
			return
		}
	}
	t.Skipf("needs a node image: neither %s (`make node-image`) nor %s is here", BuiltImage, ReleasedImage)
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
		wantNothingLeft(t, c.ID())
	})
	return c
}

// wantNothingLeft demands that the engine knows nothing of a cluster any more.
func wantNothingLeft(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	found, err := List(ctx)
	if err != nil {
		t.Error(err)
	}
	if slices.ContainsFunc(found, func(f Found) bool { return f.Name == name }) {
		t.Errorf("%s is left in %+v", name, found)
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

// Two clusters at once, a single node and one with workers.
func TestClusters(t *testing.T) {
	needEngine(t)
	t.Parallel()
	t.Run("one node", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, 0)
		testRoles(t, c)
		testNoSubjectControllers(t, c)
		testHalt(t, c)
		testDeathIsNoticed(t, c)
	})
	t.Run("two workers", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, 2)
		if err := c.Health(t.Context()); err != nil {
			t.Error(err)
		}
		testPodsReachEachOther(t, c)
		testNodeComesBack(t, c)
		testNodeIsCutOff(t, c)
		testPodsReachEachOther(t, c)
		if err := c.Err(); err != nil {
			t.Errorf("a node that was killed on purpose failed the cluster: %v", err)
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
			t.Errorf("%s is %q, %v; want %q", role, review.Status.UserInfo.Username, err, want)
		}
	}
	_, err := clientFor(t, c, cluster.Subject).CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the subject lists pods without a right to: %v", err)
	}
}

func testNoSubjectControllers(t *testing.T, c *Cluster) {
	admin := clientFor(t, c, cluster.Admin)
	pods, err := admin.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: "component=kube-controller-manager"})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods of kube-controller-manager, %v", len(pods.Items), err)
	}
	command := strings.Join(pods.Items[0].Spec.Containers[0].Command, " ")
	for _, want := range append([]string{"--leader-elect=false", "--controllers=*,"}, cluster.SubjectControllers...) {
		if !strings.Contains(command, want) {
			t.Errorf("no %q in the command of kube-controller-manager: %s", want, command)
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
			t.Errorf("a new cluster holds %d objects that are the subject's to work on, %v", n, err)
		}
	}
}

// testDeathIsNoticed kills a node behind the cluster's back.
func testDeathIsNoticed(t *testing.T, c *Cluster) {
	if _, err := c.engine.run(t.Context(), engineWorkMax, "kill", c.nodes[0]); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Failed():
	case <-time.After(engineWorkMax):
		t.Fatal("nobody noticed that the node is gone")
	}
	if err := c.Err(); !errorHas(err, c.nodes[0]+" ended by itself", "exit status 137") {
		t.Errorf("the cluster failed with %v", err)
	}
	if err := c.Health(t.Context()); !errorHas(err, c.nodes[0]) {
		t.Errorf("health %v, want the node's death", err)
	}
}

// testPodsReachEachOther runs a pod on each worker; one says to the other from
// where it was reached, which must be the address of the pod and not of its node.
func testPodsReachEachOther(t *testing.T, c *Cluster) {
	pods := clientFor(t, c, cluster.Admin).CoreV1().Pods(metav1.NamespaceDefault)
	ips := map[string]string{}
	for _, node := range c.nodes[1:] {
		ips[node] = runPod(t, c, node)
	}
	from, to := c.nodes[1], c.nodes[2]
	server := inNetworkOf(ips[to], `socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:'echo from $SOCAT_PEERADDR'`)
	if _, err := c.engine.run(t.Context(), engineWorkMax, "exec", "--detach", to, "sh", "-c", server); err != nil {
		t.Fatal(err)
	}
	client := inNetworkOf(ips[from], "socat -T2 - TCP:"+ips[to]+":8080,connect-timeout=2 </dev/null")
	ctx, cancel := context.WithTimeout(t.Context(), engineWorkMax)
	defer cancel()
	err := poll(ctx, "an answer from pod to pod", func(ctx context.Context) error {
		answer, err := c.engine.run(ctx, engineAnswerMax, "exec", from, "sh", "-c", client)
		if want := "from " + ips[from]; err == nil && answer != want {
			err = fmt.Errorf("the pod on %s says %q, want %q", to, answer, want)
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

// inNetworkOf is a shell's text that runs a command in the network of the pod that has
// an address, on the node of that pod. Other pods may be there, such as one of the
// cluster's own DNS that is still on its way out.
func inNetworkOf(ip, command string) string {
	return `for ns in $(ls /run/netns); do
  if ip -n "$ns" -o addr show to ` + ip + ` | grep -q .; then exec ip netns exec "$ns" ` + command + `; fi
done
echo "no pod here has ` + ip + `" >&2
exit 1`
}

// runPod runs a pod on a node and returns its address.
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
	ctx, cancel := context.WithTimeout(t.Context(), engineWorkMax)
	defer cancel()
	ip := ""
	err = poll(ctx, "a pod on "+nodeName, func(ctx context.Context) error {
		got, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && !cluster.PodReady(got) {
			err = notReadyBecause(got)
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

// testNodeComesBack kills a worker and starts it again.
func testNodeComesBack(t *testing.T, c *Cluster) {
	node := c.nodes[2]
	if err := c.KillNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Health(t.Context()); err != nil {
		t.Errorf("health while a node is down on purpose: %v", err)
	}
	if err := c.StartNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.StartNode(t.Context(), node); err != nil {
		t.Errorf("starting a node that is up: %v", err)
	}
	if err := c.KillNode(t.Context(), "nobody"); !errorHas(err, `no node "nobody"`) {
		t.Errorf("killing a node that is not there: %v", err)
	}
}

// testNodeIsCutOff cuts a worker off, so that nothing is heard of it, and reconnects
// it. What runs there goes on.
func testNodeIsCutOff(t *testing.T, c *Cluster) {
	node := c.nodes[1]
	uptime := func() string {
		t.Helper()
		out, err := c.engine.run(t.Context(), engineAnswerMax, "exec", node, "sh", "-c", "stat -c %Y /proc/$(pidof kubelet)")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := uptime()
	if err := c.CutOff(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	reach := func() error { // the control plane's node asks the worker's kubelet
		ctx, cancel := context.WithTimeout(t.Context(), engineAnswerMax)
		defer cancel()
		_, err := c.ControlPlane().Exec(ctx, "curl", "--silent", "--insecure", "--max-time", "2", "https://"+node+":10250/healthz")
		return err
	}
	report := func() error { // the worker asks the API server
		_, err := c.engine.run(t.Context(), engineAnswerMax, "exec", node, "curl", "--silent", "--insecure", "--max-time", "2", "https://"+c.nodes[0]+":6443/livez")
		return err
	}
	if reach() == nil {
		t.Error("it is within reach")
	}
	if report() == nil {
		t.Error("it reaches the API server")
	}
	if err := c.Health(t.Context()); err != nil {
		t.Errorf("health while a node is cut off on purpose: %v", err)
	}
	for range 2 { // once, and when there is nothing to do
		if err := c.Reconnect(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Health(t.Context()), reach(), report(), c.Err()); err != nil {
		t.Error(err)
	}
	if after := uptime(); after != before {
		t.Errorf("its kubelet was started at %s, before at %s", after, before)
	}
}

func testLogs(t *testing.T, c *Cluster) {
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"kubelet-control-plane", "kubelet-worker", "kubelet-worker2", "kind"}, components...) {
		if info, err := os.Stat(filepath.Join(c.logDir, name+".log")); err != nil || info.Size() == 0 {
			t.Errorf("no log of %s: %v", name, err)
		}
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state directory is still there: %v", err)
	}
}
