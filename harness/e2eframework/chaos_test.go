package e2eframework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestChaos tests a small controller under a fault. The controller copies ConfigMaps. With
// back-off it passes, and without it the check back-off fails.
func TestChaos(t *testing.T) {
	for _, test := range []struct {
		name    string
		backOff bool
		fails   int           // how many creates fail
		want    check.Verdict // of the check back-off
	}{
		{"with back-off", true, 6, check.Pass},
		{"without back-off", false, 300, check.Fail},
	} {
		t.Run(test.name, func(t *testing.T) {
			chaos := &e2eframework.Chaos{
				Cluster:     clusterName,
				Controllers: []scenario.ExternalController{{Name: "copier", Kind: "ConfigMap", Watches: []string{"ConfigMap"}, Writes: []string{"ConfigMap"}}},
				Namespace:   "chaos-" + fmt.Sprint(test.backOff),
				Out:         t.TempDir(),
				Settle:      scenario.Settle{Within: 30 * time.Second, Quiet: time.Second},
			}
			feature := features.New("copies "+test.name).
				WithSetup("the controller runs", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
					ctx, err := chaos.Begin(ctx, c, t, features.New("copies "+test.name).Feature())
					if err != nil {
						t.Fatal(err)
					}
					config, err := e2eframework.ProxyConfig(ctx, "copier-0")
					if err != nil {
						t.Fatal(err)
					}
					startCopier(ctx, t, config, chaos.Namespace, test.backOff)
					return ctx
				}).
				WithSetup("creates fail", e2eframework.Inject("api-error", fmt.Sprintf("{verb: create, resource: configmaps, code: 500, times: %d}", test.fails))).
				Assess("a ConfigMap is copied", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
					source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "source", Namespace: chaos.Namespace, Labels: map[string]string{"copy": "yes"}}}
					if err := c.Client().Resources().Create(ctx, source); err != nil {
						t.Fatal(err)
					}
					for {
						var copied corev1.ConfigMap
						err := c.Client().Resources().Get(ctx, "source-copy", chaos.Namespace, &copied)
						if err == nil {
							return ctx
						}
						select {
						case <-time.After(50 * time.Millisecond):
						case <-t.Context().Done():
							t.Fatal(err)
						}
					}
				}).
				WithStep("heal", 2, e2eframework.Heal()).
				Assess("verdict", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
					result, err := e2eframework.EndFeature(ctx)
					if err != nil {
						t.Fatal(err)
					}
					if got := verdictOf(result, "back-off"); got != test.want {
						t.Errorf("check back-off: %s, want %s; the run: %s %s", got, test.want, result.Verdict, result.Reason)
					}
					return ctx
				}).Feature()
			testenv.Test(t, feature)
		})
	}
}

func verdictOf(result *reports.Run, id string) check.Verdict {
	for _, r := range result.Results {
		if r.Check == id {
			return r.Verdict
		}
	}
	return ""
}

// startCopier starts a controller that creates a copy of each ConfigMap with the label copy. It
// stops at the end of the test.
func startCopier(ctx context.Context, t *testing.T, config *rest.Config, namespace string, backOff bool) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if source := object.(*corev1.ConfigMap); source.Labels["copy"] == "yes" {
				queue.Add(source.Name)
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			name, shutDown := queue.Get()
			if shutDown {
				return
			}
			err := createCopy(ctx, client, informer, namespace+"/"+name)
			queue.Done(name)
			switch {
			case err == nil || apierrors.IsAlreadyExists(err):
				queue.Forget(name)
			case backOff:
				queue.AddRateLimited(name)
			default:
				queue.Add(name)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		queue.ShutDown()
		<-done
		factory.Shutdown()
	})
}

// createCopy creates the copy of a cached ConfigMap, which is the controller of the copy.
func createCopy(ctx context.Context, client kubernetes.Interface, informer cache.SharedIndexInformer, key string) error {
	object, _, err := informer.GetIndexer().GetByKey(key)
	if err != nil {
		return err
	}
	source := object.(*corev1.ConfigMap)
	_, err = client.CoreV1().ConfigMaps(source.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: source.Name + "-copy",
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(source, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		},
	}}, metav1.CreateOptions{})
	return err
}
