package e2eframework_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/stepfuncs"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
)

const clusterName = "demo"

var testenv env.Environment

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == copierArgument { // this process is the subject of TestChaos
		if err := copierMain(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(suiteVariable) != "" {
		os.Exit(suiteMain(m))
	}
	testenv = env.NewWithConfig(envconf.New())
	testenv.Setup(envfuncs.CreateClusterWithOpts(e2eframework.NewEmbedded(), clusterName, e2eframework.WithNodes(2)))
	testenv.Finish(envfuncs.DestroyCluster(clusterName))
	os.Exit(testenv.Run(m))
}

// TestEmbedded verifies that all controllers of Kubernetes run on an embedded cluster, and that
// nodes can be stopped and started.
func TestEmbedded(t *testing.T) {
	deployment := newDeployment()
	feature := features.New("embedded cluster").
		Assess("a Deployment becomes available", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			if err := c.Client().Resources().Create(ctx, deployment); err != nil {
				t.Fatal(err)
			}
			available := conditions.New(c.Client().Resources()).DeploymentConditionMatch(deployment, appsv1.DeploymentAvailable, corev1.ConditionTrue)
			if err := wait.For(available, wait.WithContext(ctx)); err != nil {
				t.Error(err)
			}
			return ctx
		}).
		Assess("the kubeconfig has a context with the name of the cluster", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			config, err := clientcmd.LoadFromFile(c.KubeconfigFile())
			if err != nil {
				t.Fatal(err)
			}
			if p := provider(ctx, t); config.CurrentContext != clusterName || p.GetKubectlContext() != clusterName {
				t.Errorf("context %q of the kubeconfig, %q of the provider; want %q", config.CurrentContext, p.GetKubectlContext(), clusterName)
			}
			return ctx
		}).
		Assess("nodes", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			nodes := provider(ctx, t).(support.E2EClusterProviderWithLifeCycle)
			list, err := nodes.ListNode(ctx)
			if err != nil || len(list) != 2 || list[0].State != "Ready" || list[0].Cluster != clusterName {
				t.Fatalf("nodes %+v, error %v; want 2 ready nodes", list, err)
			}
			if err := nodes.StopNode(ctx, &list[0]); err != nil {
				t.Error(err)
			}
			if err := nodes.StartNode(ctx, &list[0]); err != nil {
				t.Error(err)
			}
			third := &support.Node{Name: "node-3", Cluster: clusterName}
			if err := nodes.AddNode(ctx, third); err != nil {
				t.Error(err)
			}
			if list, err := nodes.ListNode(ctx); err != nil || len(list) != 3 || list[2].Name != "node-3" || list[2].State != "Ready" {
				t.Errorf("nodes %+v, error %v; want 3 ready nodes after AddNode", list, err)
			}
			if err := nodes.AddNode(ctx, third); err == nil || !strings.Contains(err.Error(), "add node node-3: the node exists already") {
				t.Errorf("second AddNode: error %v", err)
			}
			if err := nodes.AddNode(ctx, &support.Node{Name: "third"}); err == nil || !strings.Contains(err.Error(), `add node third: found the node name "third"; expected a name of the form node-5`) {
				t.Errorf("AddNode of another name: error %v", err)
			}
			ctx = stepfuncs.PerformNodeOperation(support.RemoveNode, third)(ctx, t, c)
			if list, err := nodes.ListNode(ctx); err != nil || len(list) != 2 {
				t.Errorf("nodes %+v, error %v; want 2 after RemoveNode", list, err)
			}
			if err := nodes.RemoveNode(ctx, third); err == nil || !strings.Contains(err.Error(), "remove node node-3: ") {
				t.Errorf("second RemoveNode: error %v", err)
			}
			return ctx
		}).
		Assess("logs", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			dir := filepath.Join(t.TempDir(), "logs")
			if err := provider(ctx, t).ExportLogs(ctx, dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "kube-apiserver.log")); err != nil {
				t.Error(err)
			}
			return ctx
		}).Feature()
	testenv.Test(t, feature)
}

// TestDestroy tests that Destroy removes all files, and that a cluster can be created again.
func TestDestroy(t *testing.T) {
	p := e2eframework.NewEmbedded().SetDefaults().WithName("second")
	for range 2 {
		kubeconfig, err := p.CreateWithConfig(t.Context(), file(t, labeledNodes))
		if err != nil {
			t.Fatal(err)
		}
		requireLabel(t, p, "node-1")
		if again, err := p.Create(t.Context()); again != kubeconfig || err != nil {
			t.Errorf("second Create: %s, error %v; want %s", again, err, kubeconfig)
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Destroy(canceled); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
			t.Errorf("after Destroy: %v, want no directory %s", err, filepath.Dir(kubeconfig))
		}
		if err := p.Destroy(t.Context()); err != nil {
			t.Errorf("second Destroy: %v", err)
		}
	}
	if err := p.WaitForControlPlane(t.Context(), nil); err == nil {
		t.Error("WaitForControlPlane after Destroy: no error")
	}
}

// labeledNodes is a kind configuration with node labels, and with settings that an embedded cluster
// ignores.
const labeledNodes = `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
containerdConfigPatches: ["[plugins]"]
nodes:
- role: control-plane
  kubeadmConfigPatches:
  - |
    kind: InitConfiguration
    nodeRegistration:
      kubeletExtraArgs:
        node-labels: "ingress-ready=true"
  extraPortMappings: [{containerPort: 30080}]
- role: worker
  image: example.com/node
  labels: {disk: fast}
`

// requireLabel requires that exactly one node has the label of [labeledNodes], and that this node's
// name ends with suffix.
func requireLabel(t *testing.T, p support.E2EClusterProvider, suffix string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(p.KubernetesRestConfig())
	found, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "disk=fast"})
	if err != nil || len(found.Items) != 1 || !strings.HasSuffix(found.Items[0].Name, suffix) {
		t.Errorf("nodes with the label disk=fast: %v, error %v; want one node …%s", found, err, suffix)
	}
}

// TestCreateCanceled tests that a canceled Create leaves no cluster.
func TestCreateCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // a control plane needs longer
	defer cancel()
	p := e2eframework.NewEmbedded().SetDefaults().WithName("canceled")
	if _, err := p.Create(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("Create: error %v, want one that says it was interrupted", err)
	}
	if err := p.WaitForControlPlane(t.Context(), nil); err == nil {
		t.Error("the cluster exists")
	}
}

// TestErrors verifies that Create returns an error for wrong options, and starts nothing.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		what   string
		create func(support.E2EClusterProvider) error
		want   string
	}{
		{"version", func(p support.E2EClusterProvider) error {
			_, err := p.WithVersion("v1.20.0").Create(t.Context())
			return err
		}, "; expected v1.20.0"},
		{"argument", func(p support.E2EClusterProvider) error {
			_, err := p.Create(t.Context(), "--retain")
			return err
		}, `creating cluster x: found the argument "--retain"; expected no arguments`},
		{"directory of executables", func(p support.E2EClusterProvider) error {
			_, err := p.WithPath(t.TempDir()).Create(t.Context())
			return err
		}, "creating cluster x: "},
		{"unknown field in a kind configuration", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), file(t, "kind: Cluster\nnodes: [{label: {}}]\n"))
			return err
		}, `unknown field "label"`},
		{"IP family", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), file(t, "kind: Cluster\nnetworking: {ipFamily: dual}\n"))
			return err
		}, `networking.ipFamily: found "dual"; expected ipv4`},
		{"kind of the configuration", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), file(t, "kind: Pod\n"))
			return err
		}, `kind: found "Pod"; expected Cluster`},
		{"role of a node", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), file(t, "kind: Cluster\nnodes: [{role: etcd}]\n"))
			return err
		}, `nodes[0].role: found "etcd"; expected control-plane or worker`},
		{"two control planes", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), file(t, "kind: Cluster\nnodes: [{role: control-plane}, {role: control-plane}]\n"))
			return err
		}, "found 2 control-plane nodes; expected at most 1"},
		{"no file", func(p support.E2EClusterProvider) error {
			_, err := p.CreateWithConfig(t.Context(), "no-such-file")
			return err
		}, "reading the configuration of cluster x: no-such-file: no such file"},
		{"logs of no cluster", func(p support.E2EClusterProvider) error { return p.ExportLogs(t.Context(), t.TempDir()) }, "cluster x does not exist"},
	} {
		t.Run(test.what, func(t *testing.T) {
			err := test.create(e2eframework.NewEmbedded().SetDefaults().WithName("x"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func file(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func provider(ctx context.Context, t *testing.T) support.E2EClusterProvider {
	p, ok := envfuncs.GetClusterFromContext(ctx, clusterName)
	if !ok {
		t.Fatal("no cluster in the context")
	}
	return p
}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: metav1.NamespaceDefault},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
			},
		},
	}
}
