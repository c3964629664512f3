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

// TestHalt: parts come back at their old place and with what they had stored,
// nothing of it counts as a failure, and everything works as before.
func TestHalt(t *testing.T) {
	c, _ := startCluster(t, Options{Nodes: 1})
	admin := clientFor(t, c, cluster.Admin)
	tests := []struct {
		name string
		halt []cluster.Part
	}{
		{"api-server", []cluster.Part{cluster.APIServer}},
		{"etcd", []cluster.Part{cluster.Etcd}},
		{"both", []cluster.Part{cluster.APIServer, cluster.Etcd}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := createPod(t, admin, "before-"+test.name)
			// KWOK may have given it up, for all that the cluster knows.
			going := createPod(t, admin, "going-"+test.name, "example.com/kept")
			deletePod(t, admin, going.Name)
			for _, part := range test.halt {
				old := partNamed(t, c, string(part))
				for range 2 { // the second time there is nothing to do
					if err := c.Halt(t.Context(), part); err != nil {
						t.Fatal(err)
					}
				}
				if lives(old.PID()) {
					t.Errorf("%s lives", part)
				}
			}
			if err := creating(t, c); !cluster.Unavailable(err) {
				t.Errorf("a request meanwhile: %v", err)
			}
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := c.Health(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("health meanwhile: %v", err)
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
				t.Errorf("what there was before: %v, %v", after.UID, err)
			}
			eventuallyPod(t, admin, going.Name, "is brought to KWOK's mind", func(p *corev1.Pod) bool {
				return p.Annotations[remindedAnnotation] != ""
			})
			createPod(t, admin, "after-"+test.name)
			eventuallyPod(t, admin, "after-"+test.name, "runs", func(p *corev1.Pod) bool {
				return condition(p, corev1.PodReady) == corev1.ConditionTrue
			})
		})
	}
	if err := c.Halt(t.Context(), "kube-scheduler"); !errorHas(err, `"kube-scheduler"`, "expected kube-apiserver or etcd") {
		t.Errorf("halting what cannot be: %v", err)
	}
}

// TestForWantOfTheAPIServer: a client of the API server that ends while there is
// none is started again, and is no failure.
func TestForWantOfTheAPIServer(t *testing.T) {
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
	if again := partNamed(t, c, "kube-scheduler"); again.PID() == scheduler.PID() || !lives(again.PID()) {
		t.Error("the scheduler was not started again")
	}
	if err := errors.Join(c.Health(t.Context()), c.Err()); err != nil {
		t.Error(err)
	}
}

// creating tries to create a pod, for a short time.
func creating(t *testing.T, c *Cluster) error {
	t.Helper()
	config := c.Config(cluster.Admin)
	config.Timeout = time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "meanwhile-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
	_, err = client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), pod, metav1.CreateOptions{})
	return err
}
