package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// TestHalt verifies that Resume starts halted components with their previous address and data. The
// channel of Failed must stay open, and the cluster must work as before.
func TestHalt(t *testing.T) {
	c, _ := startCluster(t, Options{Nodes: 1})
	admin := clientFor(t, c, cluster.Admin)
	tests := []struct {
		name string
		halt []cluster.Component
	}{
		{"api-server", []cluster.Component{cluster.APIServer}},
		{"etcd", []cluster.Component{cluster.Etcd}},
		{"both", []cluster.Component{cluster.APIServer, cluster.Etcd}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := createPod(t, admin, "before-"+test.name)
			// While the control plane is down, KWOK gives up on its request for this pod, or the request is
			// served after the restart.
			terminating := createPod(t, admin, "terminating-"+test.name, "example.com/finalizer")
			deletePod(t, admin, terminating.Name)
			for _, part := range test.halt {
				old := partNamed(t, c, string(part))
				for range 2 { // the second Halt has no effect
					if err := c.Halt(t.Context(), part); err != nil {
						t.Fatal(err)
					}
				}
				if running(old.PID()) {
					t.Errorf("%s is running after Halt()", part)
				}
			}
			if err := tryCreatePod(t, c); !cluster.Unavailable(err) {
				t.Errorf("request while %v is halted: error %v, want one for which Unavailable() is true", test.halt, err)
			}
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := c.Health(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Health() while %v is halted: error %v, want %v", test.halt, err, context.DeadlineExceeded)
			}
			resumed := make(chan error, len(test.halt))
			for _, part := range test.halt {
				go func() { resumed <- c.Resume(t.Context(), part) }()
			}
			for range test.halt {
				if err := <-resumed; err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(c.Health(t.Context()), c.Err()); err != nil {
				t.Fatal(err)
			}
			after, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), before.Name, metav1.GetOptions{})
			if err != nil || after.UID != before.UID {
				t.Errorf("pod from before Halt(): UID %v (error %v), want %v", after.UID, err, before.UID)
			}
			eventuallyPod(t, admin, terminating.Name, "has the annotation that triggers KWOK, or was stopped", func(p *corev1.Pod) bool {
				return p.Annotations[retriggerAnnotation] != "" || !awaitsKubelet(p)
			})
			createPod(t, admin, "after-"+test.name)
			eventuallyPod(t, admin, "after-"+test.name, "is Ready", func(p *corev1.Pod) bool {
				return condition(p, corev1.PodReady) == corev1.ConditionTrue
			})
		})
	}
	if err := c.Halt(t.Context(), "kube-scheduler"); !errorHas(err, `"kube-scheduler"`, "expected kube-apiserver or etcd") {
		t.Errorf("Halt(kube-scheduler): error %v, want one that lists the allowed components", err)
	}
}

// TestResumeRestartsClients checks that Resume restarts a client that exited while the API server
// was halted. The exit of the client must not close the channel of Failed.
func TestResumeRestartsClients(t *testing.T) {
	c, _ := startCluster(t, Options{Nodes: 1})
	if err := c.Halt(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	scheduler := partNamed(t, c, "kube-scheduler")
	if err := scheduler.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Resume(t.Context(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	if again := partNamed(t, c, "kube-scheduler"); again.PID() == scheduler.PID() || !running(again.PID()) {
		t.Error("the scheduler was not restarted")
	}
	if err := errors.Join(c.Health(t.Context()), c.Err()); err != nil {
		t.Error(err)
	}
}

// tryCreatePod tries to create a pod with a short timeout and returns the error.
func tryCreatePod(t *testing.T, c *Cluster) error {
	t.Helper()
	config := c.Config(cluster.Admin)
	config.Timeout = time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "during-halt-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	_, err = client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}
