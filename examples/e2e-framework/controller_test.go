package ticket

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

const namespace = "orders"

var testenv env.Environment

func TestMain(m *testing.M) {
	config, err := envconf.NewFromFlags()
	if err != nil {
		panic(err)
	}
	testenv = env.NewWithConfig(config.WithNamespace(namespace))
	chaos := &e2eframework.Chaos{
		Cluster:     "demo",
		Controllers: []scenario.ExternalController{{Name: "ticket", Kind: "ConfigMap", Watches: []string{"ConfigMap"}, Writes: []string{"ConfigMap"}}},
	}
	testenv.Setup(envfuncs.CreateCluster(e2eframework.NewEmbedded(), "demo"))
	testenv.BeforeEachFeature(chaos.Begin)
	testenv.AfterEachFeature(chaos.End)
	testenv.Finish(envfuncs.DestroyCluster("demo"))
	os.Exit(testenv.Run(m))
}

func TestTicket(t *testing.T) {
	order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bread", Namespace: namespace, Labels: map[string]string{orderLabel: "yes"}}}
	noted := func(o k8s.Object) bool { return o.GetAnnotations()[ticketAnnotation] != "" }

	feature := features.New("one ticket per order").
		WithSetup("the controller runs", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			config, err := e2eframework.ProxyConfig(ctx, "ticket-0")
			if err != nil {
				t.Fatal(err)
			}
			stopped := make(chan error, 1)
			go func() { stopped <- Run(t.Context(), config, namespace) }()
			t.Cleanup(func() {
				if err := <-stopped; err != nil {
					t.Error(err)
				}
			})
			return ctx
		}).
		WithSetup("a response is lost", e2eframework.Inject("response-lost", "{verb: create, resource: configmaps, nth: 1, how: error}")).
		Assess("the order has its ticket", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			if err := c.Client().Resources().Create(ctx, order); err != nil {
				t.Fatal(err)
			}
			if err := wait.For(conditions.New(c.Client().Resources()).ResourceMatch(order, noted)); err != nil {
				t.Fatal(err)
			}
			return ctx
		}).
		Assess("it has only one", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
			var all corev1.ConfigMapList
			if err := c.Client().Resources(namespace).List(ctx, &all); err != nil {
				t.Fatal(err)
			}
			var tickets []string
			for _, o := range all.Items {
				if metav1.IsControlledBy(&o, order) {
					tickets = append(tickets, o.Name)
				}
			}
			if len(tickets) != 1 {
				t.Errorf("order %s has the tickets %v; expected one", order.Name, tickets)
			}
			return ctx
		}).Feature()
	testenv.Test(t, feature)
}
