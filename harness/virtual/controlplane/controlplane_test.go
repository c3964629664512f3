package controlplane

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
)

// fixture is a control plane in a bubble of testing/synctest, with our controllers.
type fixture struct {
	*testing.T
	controlPlane *ControlPlane
	client       kubernetes.Interface
}

const (
	startDelay = 2 * time.Second
	stopDelay  = 5 * time.Second
)

// inBubble calls the function test in a bubble of testing/synctest, with a control plane of two
// nodes.
func inBubble(t *testing.T, test func(f *fixture)) {
	if err := apiserver.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := Start(t.Context(), 1, providers.Options{Nodes: 2, PodStartDelay: startDelay, PodStopDelay: stopDelay})
		if err != nil {
			t.Fatal(err)
		}
		main, err := c.Main(subject.Ours)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- main(ctx, c.Config(cluster.Subject), []string{"--leader-elect=false"})
		}()
		t.Cleanup(func() { // also after a failure, because goroutines must not outlive their bubble
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			// The garbage collector holds a mutex while it starts, and Stop waits for it. Without the patched
			// runtime, the clock of the bubble stops meanwhile.
			time.Sleep(time.Second)
			if err := c.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			// After an outage, reflectors of client-go wait for up to a minute before they try again, even
			// if their context has ended.
			time.Sleep(time.Minute)
		})
		test(&fixture{t, c, kubernetes.NewForConfigOrDie(c.Config(cluster.Admin))})
	})
}

// await waits at most 5 minutes of virtual time until condition returns nil.
func (f *fixture) await(what string, condition func(context.Context) error) {
	f.Helper()
	var last error
	err := wait.PollUntilContextTimeout(f.Context(), 10*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		f.Fatalf("waiting for %s: %v; %v", what, err, last)
	}
}

// pods returns the pods in namespace default.
func (f *fixture) pods() []corev1.Pod {
	f.Helper()
	pods, err := f.client.CoreV1().Pods("default").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return pods.Items
}

// awaitPods waits until there are n pods, all of them Ready.
func (f *fixture) awaitPods(n int) {
	f.Helper()
	f.await(fmt.Sprintf("%d Ready pods", n), func(context.Context) error {
		pods := f.pods()
		for i := range pods {
			if !cluster.PodReady(&pods[i]) {
				return fmt.Errorf("pod %s is not Ready", pods[i].Name)
			}
		}
		if len(pods) != n {
			return fmt.Errorf("found %d pods", len(pods))
		}
		return nil
	})
}

func (f *fixture) createDeployment(replicas int32) {
	f.Helper()
	labels := map[string]string{"app": "web"}
	_, err := f.client.AppsV1().Deployments("default").Create(f.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
}

// TestDeploymentLifecycle checks that pods of a Deployment start, are evicted, and end with the
// Deployment. Starts and ends take the delays of the kubelets.
func TestDeploymentLifecycle(t *testing.T) {
	real := time.Now()
	inBubble(t, func(f *fixture) {
		began := time.Now()
		f.createDeployment(3)
		f.awaitPods(3)
		if took := time.Since(began); took < startDelay || took > startDelay+time.Second {
			f.Errorf("the pods were Ready after %v, want about %v", took, startDelay)
		}
		evicted := f.pods()[0]
		err := f.client.CoreV1().Pods("default").EvictV1(f.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: evicted.Name}})
		if err != nil {
			f.Fatal(err)
		}
		f.await("the end of the evicted pod", func(ctx context.Context) error {
			_, err := f.client.CoreV1().Pods("default").Get(ctx, evicted.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists: %w", err)
			}
			return nil
		})
		f.awaitPods(3)
		began = time.Now()
		if err := f.client.AppsV1().Deployments("default").Delete(f.Context(), "web", metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.awaitPods(0)
		if took := time.Since(began); took < stopDelay {
			f.Errorf("the pods were gone after %v, want at least %v", took, stopDelay)
		}
	})
	if took := time.Since(real); took > time.Minute {
		t.Errorf("the test took %v of real time", took)
	}
}

// TestCordon checks that the scheduler assigns pods only to schedulable nodes, and assigns waiting
// pods after a node becomes schedulable.
func TestCordon(t *testing.T) {
	inBubble(t, func(f *fixture) {
		cordon := func(unschedulable bool) {
			for _, name := range []string{"node-0", "node-1"} {
				node, err := f.client.CoreV1().Nodes().Get(f.Context(), name, metav1.GetOptions{})
				if err != nil {
					f.Fatal(err)
				}
				node.Spec.Unschedulable = unschedulable
				if _, err := f.client.CoreV1().Nodes().Update(f.Context(), node, metav1.UpdateOptions{}); err != nil {
					f.Fatal(err)
				}
			}
		}
		cordon(true)
		f.createDeployment(2)
		time.Sleep(time.Minute) // virtual
		for _, pod := range f.pods() {
			if pod.Spec.NodeName != "" {
				f.Errorf("pod %s is on node %s, which is cordoned", pod.Name, pod.Spec.NodeName)
			}
		}
		cordon(false)
		f.awaitPods(2)
	})
}

// TestNodeSelector checks that the scheduler assigns a pod only to nodes that its node selector
// selects.
func TestNodeSelector(t *testing.T) {
	inBubble(t, func(f *fixture) {
		for node, phase := range map[string]corev1.PodPhase{"node-1": corev1.PodRunning, "none": corev1.PodPending} {
			pods := f.client.CoreV1().Pods("default")
			_, err := pods.Create(f.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: node},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelHostname: node},
					Containers:   []corev1.Container{{Name: "web", Image: "web"}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				f.Fatal(err)
			}
			time.Sleep(time.Minute) // virtual
			pod, err := pods.Get(f.Context(), node, metav1.GetOptions{})
			if err != nil {
				f.Fatal(err)
			}
			if pod.Status.Phase != phase || phase == corev1.PodRunning && pod.Spec.NodeName != node {
				f.Errorf("pod %s is %s on node %q, want %s", pod.Name, pod.Status.Phase, pod.Spec.NodeName, phase)
			}
		}
	})
}

// TestNamespaces checks that a new namespace gets its ServiceAccount, and that the deletion of a
// namespace deletes its objects.
func TestNamespaces(t *testing.T) {
	inBubble(t, func(f *fixture) {
		namespaces := f.client.CoreV1().Namespaces()
		if _, err := namespaces.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
		f.await("the ServiceAccount", func(ctx context.Context) error {
			_, err := f.client.CoreV1().ServiceAccounts("other").Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		if _, err := f.client.CoreV1().ConfigMaps("other").Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
		if err := namespaces.Delete(f.Context(), "other", metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
		f.await("the end of the namespace", func(ctx context.Context) error {
			_, err := namespaces.Get(ctx, "other", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists: %w", err)
			}
			return nil
		})
		if list, err := f.client.CoreV1().ConfigMaps("other").List(f.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
			f.Errorf("found %d ConfigMaps (error %v), want none", len(list.Items), err)
		}
	})
}
