// Package kindsuite is a suite that uses only e2e-framework's own kind provider. TestConstructor
// runs the suite with another provider.
package kindsuite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/decoder"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/support/kind"
)

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "example.com/shop:v1"}]}
`

var testenv env.Environment

func TestMain(m *testing.M) {
	config, err := envconf.NewFromFlags()
	if err != nil {
		panic(err)
	}
	testenv = env.NewWithConfig(config)
	cluster, namespace := envconf.RandomName("shop", 16), envconf.RandomName("shop", 16)
	logs, err := os.MkdirTemp("", "kindsuite-")
	if err != nil {
		panic(err)
	}
	testenv.Setup(
		envfuncs.CreateClusterWithConfig(kind.NewProvider(), cluster, "kind.yaml", kind.WithImage("kindest/node:v1.36.3")),
		envfuncs.CreateNamespace(namespace),
		envfuncs.LoadDockerImageToCluster(cluster, "example.com/shop:v1"),
	)
	testenv.Finish(
		envfuncs.DeleteNamespace(namespace),
		envfuncs.ExportClusterLogs(cluster, logs),
		func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
			files, err := filepath.Glob(filepath.Join(logs, "*"))
			if err != nil || len(files) == 0 {
				panic("no logs were exported")
			}
			return ctx, os.RemoveAll(logs)
		},
		envfuncs.DestroyCluster(cluster),
	)
	os.Exit(testenv.Run(m))
}

func TestShop(t *testing.T) {
	testenv.Test(t, features.New("shop").WithLabel("type", "workload").
		WithSetup("deploy", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			create := decoder.CreateHandler(c.Client().Resources())
			if err := decoder.DecodeEach(ctx, bytes.NewBufferString(manifest), create, decoder.MutateNamespace(c.Namespace())); err != nil {
				t.Fatal(err)
			}
			return ctx
		}).
		Assess("all replicas are available", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			shop := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: c.Namespace()}}
			available := conditions.New(c.Client().Resources()).DeploymentConditionMatch(shop, appsv1.DeploymentAvailable, corev1.ConditionTrue)
			if err := wait.For(available, wait.WithTimeout(time.Minute), wait.WithInterval(100*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			return ctx
		}).
		Assess("two workers", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			var nodes corev1.NodeList
			if err := c.Client().Resources().List(ctx, &nodes); err != nil || len(nodes.Items) < 2 {
				t.Errorf("%d nodes, error %v; want at least 2", len(nodes.Items), err)
			}
			return ctx
		}).
		WithTeardown("delete", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			shop := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: c.Namespace()}}
			if err := c.Client().Resources().Delete(ctx, shop); err != nil {
				t.Fatal(err)
			}
			gone := conditions.New(c.Client().Resources()).ResourceDeleted(shop)
			if err := wait.For(gone, wait.WithTimeout(time.Minute), wait.WithInterval(100*time.Millisecond)); err != nil {
				t.Error(err)
			}
			return ctx
		}).Feature())
}
