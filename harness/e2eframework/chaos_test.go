package e2eframework_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestChaos tests a small controller under a fault, in the test binary and as a process. The
// controller copies ConfigMaps. With back-off, the checks pass. Without back-off, the check
// back-off fails.
func TestChaos(t *testing.T) {
	for _, test := range []struct {
		name       string
		backOff    bool
		process    bool
		background bool          // true: the fault is in Chaos.Faults; false: a step injects the fault
		fails      int           // number of creates that the fault makes fail
		want       check.Verdict // expected verdict of the check back-off
	}{
		{"with back-off", true, false, false, 6, check.Pass},
		{"without back-off", false, false, false, 300, check.Fail},
		{"process with back-off", true, true, false, 6, check.Pass},
		{"process without back-off", false, true, false, 300, check.Fail},
		{"background with back-off", true, false, true, 6, check.Pass},
		{"background without back-off", false, false, true, 300, check.Fail},
	} {
		t.Run(test.name, func(t *testing.T) {
			chaos := &e2eframework.Chaos{
				Cluster:     clusterName,
				Controllers: []scenario.ExternalController{{Name: "copier", Kind: "ConfigMap", Watches: []string{"ConfigMap"}, Writes: []string{"ConfigMap"}}},
				Namespace:   strings.ReplaceAll(test.name, " ", "-"),
				Out:         t.TempDir(),
				Settle:      scenario.Settle{Within: 30 * time.Second, Quiet: time.Second},
			}
			if test.process {
				var err error
				chaos.Subject, err = subject.Command(os.Args[0], copierArgument, chaos.Namespace, fmt.Sprint(test.backOff), "{{.Kubeconfig}}")
				if err != nil {
					t.Fatal(err)
				}
			}
			params := fmt.Sprintf("{verb: create, resource: configmaps, code: 500, times: %d}", test.fails)
			inject := e2eframework.Inject("api-error", params)
			if test.background {
				chaos.Faults = backgroundFaults(t, params)
				inject = func(ctx context.Context, _ *testing.T, _ *envconf.Config) context.Context { return ctx }
			}
			feature := features.New("copies "+test.name).
				WithSetup("the controller runs", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
					ctx, err := chaos.Begin(ctx, c, t, features.New("copies "+test.name).Feature())
					if err != nil {
						t.Fatal(err)
					}
					if test.process {
						return ctx
					}
					config, err := e2eframework.ProxyConfig(ctx, "copier-0")
					if err != nil {
						t.Fatal(err)
					}
					copier, cancel := context.WithCancel(ctx)
					done := make(chan error)
					go func() { done <- runCopier(copier, config, chaos.Namespace, test.backOff) }()
					t.Cleanup(func() {
						cancel()
						if err := <-done; err != nil {
							t.Error(err)
						}
					})
					return ctx
				}).
				WithSetup("creates fail", inject).
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
					if fired := strings.Count(fileText(t, filepath.Join(result.Directory, "history.jsonl")), `"event":"fired"`); fired < 6 {
						t.Errorf("the fault fired %d times; want at least 6", fired)
					}
					return ctx
				}).Feature()
			testenv.Test(t, feature)
		})
	}
}

// backgroundFaults returns the fault api-error with params, and the fault watch-end, which waits
// until api-error has acted.
func backgroundFaults(t *testing.T, params string) []scenario.Fault {
	s, err := scenario.Parse("faults.yaml", fmt.Appendf(nil, `
name: background
description: creates fail, and then a watch is closed
externalWorkload: {}
faults:
  - api-error: %s
  - watch-end: {resource: configmaps, how: closed}
    when: {fault: {index: 0}}
`, params))
	if err != nil {
		t.Fatal(err)
	}
	return s.Faults
}

func fileText(t *testing.T, path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func verdictOf(result *reports.Run, id string) check.Verdict {
	for _, r := range result.Results {
		if r.Check == id {
			return r.Verdict
		}
	}
	return ""
}

// copierArgument is the first argument that makes the test binary run only the copier. The further
// arguments are the namespace, "true" for back-off, and the path of the kubeconfig.
const copierArgument = "copier"

// copierMain runs the copier until the process ends.
func copierMain(ctx context.Context, args []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", args[2])
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit, so that a controller without back-off is fast
	return runCopier(ctx, config, args[0], args[1] == "true")
}

// runCopier runs a controller until ctx ends. The controller creates a copy of each ConfigMap that
// has the label copy.
func runCopier(ctx context.Context, config *rest.Config, namespace string, backOff bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if source := object.(*corev1.ConfigMap); source.Labels["copy"] == "yes" {
				queue.Add(namespace + "/" + source.Name)
			}
		},
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	factory.WaitForCacheSyncWithContext(ctx)
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		key, shutDown := queue.Get()
		if shutDown {
			return nil
		}
		err := createCopy(ctx, client, informer, key)
		queue.Done(key)
		switch {
		case err == nil || apierrors.IsAlreadyExists(err):
			queue.Forget(key)
		case backOff:
			queue.AddRateLimited(key)
		default:
			queue.Add(key)
		}
	}
}

// createCopy creates a copy of a cached ConfigMap. The owner reference of the copy names that
// ConfigMap as the controller.
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
