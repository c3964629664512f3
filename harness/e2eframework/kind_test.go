package e2eframework_test

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
)

// TestKind tests the life cycle of a kind cluster. It needs a container engine, and the node image
// of `make engine node-image`.
func TestKind(t *testing.T) {
	requireKind(t)
	p := e2eframework.NewKind().SetDefaults().WithName("e2e").(support.E2EClusterProviderWithLifeCycle)
	if _, err := p.CreateWithConfig(t.Context(), file(t, "kind: Cluster\nnodes: [{role: control-plane}, {role: worker}, {role: worker}]\n")); err != nil {
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
	nodes, err := p.ListNode(t.Context())
	if err != nil || len(nodes) != 3 {
		t.Fatalf("nodes %+v, error %v; want 3", nodes, err)
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
	config, err := clientcmd.LoadFromFile(p.GetKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "kind-e2e" || p.GetKubectlContext() != "kind-e2e" {
		t.Errorf("context %q of the kubeconfig, %q of the provider; want kind-e2e", config.CurrentContext, p.GetKubectlContext())
	}
}
