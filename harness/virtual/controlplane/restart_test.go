package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// TestRestart checks that the control plane keeps all objects when the API server and etcd restart. A
// watch from before a restart must list again.
func TestRestart(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.createDeployment(2)
		f.awaitPods(2)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Port: 80}}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack),
		}}
		first, err := f.client.CoreV1().Services("default").Create(f.Context(), service, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		old := f.pods()[0].ResourceVersion

		f.halt(cluster.APIServer)
		if _, err := f.client.CoreV1().Pods("default").List(f.Context(), metav1.ListOptions{}); !cluster.Unavailable(err) {
			f.Errorf("a list without an API server returned %v, want a connection error", err)
		}
		f.resume(cluster.APIServer)
		watch, err := f.client.CoreV1().Pods("default").Watch(f.Context(), metav1.ListOptions{ResourceVersion: old})
		if err == nil {
			event := <-watch.ResultChan()
			err = apierrors.FromObject(event.Object)
			watch.Stop()
		}
		if !apierrors.IsResourceExpired(err) {
			f.Errorf("a watch from before the restart got %v, want Expired", err)
		}
		service.Name = "other"
		second, err := f.client.CoreV1().Services("default").Create(f.Context(), service, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		if one, two := first.Spec.ClusterIPs, second.Spec.ClusterIPs; len(two) != 2 || one[0] == two[0] || one[1] == two[1] {
			f.Errorf("the cluster IPs of two Services are %q and %q, want four addresses", one, two)
		}

		victim := f.pods()[0].Name
		f.halt(cluster.Etcd)
		service.Name = "late"
		if _, err := f.client.CoreV1().Services("default").Create(f.Context(), service, metav1.CreateOptions{}); err == nil {
			f.Error("a create without etcd succeeded")
		}
		f.resume(cluster.Etcd)
		if err := f.client.CoreV1().Pods("default").Delete(f.Context(), victim, metav1.DeleteOptions{}); err != nil {
			f.Error(err)
		}
		f.await("the replacement of the deleted pod", func(context.Context) error {
			if n := len(f.pods()); n != 3 {
				return fmt.Errorf("found %d pods", n)
			}
			return nil
		})
		f.awaitPods(2)
	})
}

// TestRestartDuringPodChanges checks that the kubelets retry writes of pods while the API server or
// etcd is down.
func TestRestartDuringPodChanges(t *testing.T) {
	for _, component := range []cluster.Component{cluster.APIServer, cluster.Etcd} {
		t.Run(string(component), func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				// outage halts the component before the kubelet's next write, until after that write.
				outage := func(delay time.Duration) {
					time.Sleep(delay / 2)
					f.halt(component)
					time.Sleep(delay)
					f.resume(component)
				}
				// The pods have no controller. After an outage, a controller with an old cache might create
				// its objects again, and the garbage collector then misses the end of the first ones.
				for _, name := range []string{"one", "two"} {
					f.createPod(name)
				}
				outage(startDelay)
				f.awaitPods(2)
				for _, name := range []string{"one", "two"} {
					if err := f.client.CoreV1().Pods("default").Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
						f.Fatal(err)
					}
				}
				outage(stopDelay)
				f.awaitPods(0)
			})
		})
	}
}

// createPod creates a pod in namespace default as soon as the ServiceAccount of the namespace exists.
func (f *fixture) createPod(name string) {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	f.await("pod "+name, func(ctx context.Context) error {
		_, err := f.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

func (f *fixture) halt(component cluster.Component) {
	f.Helper()
	if err := f.controlPlane.Halt(f.Context(), component); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) resume(component cluster.Component) {
	f.Helper()
	if err := f.controlPlane.Resume(f.Context(), component); err != nil {
		f.Fatal(err)
	}
}
