package e2eframework_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/internal/image"
)

// TestKind tests the life cycle of a kind cluster. The test needs a container engine and a node
// image (`make engine node-image`).
func TestKind(t *testing.T) {
	requireKind(t)
	p := e2eframework.NewKind().SetDefaults().WithName("e2e").(support.E2EClusterProviderWithLifeCycle)
	if _, err := p.CreateWithConfig(t.Context(), file(t, strings.Replace(labeledNodes, "[plugins]", "version = 2", 1))); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if err := p.WaitForControlPlane(t.Context(), nil); err != nil {
		t.Error(err)
	}
	requireLabel(t, p, "-worker")
	nodes, err := p.ListNode(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Fatalf("nodes %+v, error %v; want 2", nodes, err)
	}
	for _, node := range nodes {
		if node.Role != "worker" {
			continue
		}
		if err := p.StopNode(t.Context(), &node); err != nil {
			t.Error(err)
		}
		if err := p.StartNode(t.Context(), &node); err != nil {
			t.Error(err)
		}
	}
	logs := t.TempDir()
	if err := p.ExportLogs(t.Context(), logs); err != nil {
		t.Error(err)
	}
	if files, err := filepath.Glob(filepath.Join(logs, "*")); err != nil || len(files) == 0 {
		t.Errorf("logs %v, error %v; want some", files, err)
	}
	image, ok := p.(support.E2EClusterProviderWithImageLoader)
	if !ok {
		t.Fatalf("%T does not load images", p)
	}
	if err := image.LoadImage(t.Context(), "example.com/no-such-image:v0"); err == nil {
		t.Error("LoadImage of an image that does not exist: no error")
	}
	requireDNS(t, p)
	config, err := clientcmd.LoadFromFile(p.GetKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "kind-e2e" || p.GetKubectlContext() != "kind-e2e" {
		t.Errorf("context %q of the kubeconfig, %q of the provider; want kind-e2e", config.CurrentContext, p.GetKubectlContext())
	}
}

// requireDNS runs a pod that resolves the name of a Service.
func requireDNS(t *testing.T, p support.E2EClusterProvider) {
	t.Helper()
	const reference = "localhost/gauntlet/lookup:test"
	binary, archive := filepath.Join(t.TempDir(), "lookup"), filepath.Join(t.TempDir(), "lookup.tar")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./testdata/lookup")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := image.Write(file, image.Spec{Reference: reference, Binary: binary}); err != nil {
		t.Fatal(err)
	}
	if err := p.(support.E2EClusterProviderWithImageLoader).LoadImageArchive(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	client, err := klient.NewWithKubeConfigFile(p.GetKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "lookup"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "lookup", Image: reference, ImagePullPolicy: corev1.PullNever, Args: []string{"kubernetes.default"},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
	if err := client.Resources().Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	ended := conditions.New(client.Resources()).ResourceMatch(pod, func(object k8s.Object) bool {
		phase := object.(*corev1.Pod).Status.Phase
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed
	})
	if err := wait.For(ended, wait.WithTimeout(time.Minute), wait.WithInterval(200*time.Millisecond)); err != nil || pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("pod that resolves kubernetes.default: %v, phase %s, %+v", err, pod.Status.Phase, pod.Status.ContainerStatuses)
	}
}
