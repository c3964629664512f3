package fleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// claimCluster returns a cluster whose Jobs have a running pod at once. Commands in these pods read
// the store.
func claimCluster(t *testing.T, store Store) *Cluster {
	client := fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "results", Namespace: "chaos"}})
	client.PrependReactor("create", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		job := action.(k8stesting.CreateAction).GetObject().(*batchv1.Job)
		if job.GenerateName == "" {
			return false, nil, nil
		}
		job.Name = job.GenerateName + "x"
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-pod", Labels: map[string]string{batchv1.JobNameLabel: job.Name}},
			Spec:       job.Spec.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		return false, nil, client.Tracker().Create(corev1.SchemeGroupVersion.WithResource("pods"), pod, "chaos")
	})
	k := &Cluster{Client: client, Namespace: "chaos"}
	k.Exec = func(ctx context.Context, pod string, command []string, stdout, _ io.Writer) error {
		if want := "/opt/gauntlet/gauntlet fleet export --store=/store night"; pod != "night-collect-x-pod" || strings.Join(command, " ") != want {
			t.Errorf("command %q in pod %s; want %s", command, pod, want)
		}
		return Export(ctx, store, "night", stdout)
	}
	return k
}

// requireNoReader checks that ReadClaim has deleted the Job that reads the PersistentVolumeClaim.
func requireNoReader(t *testing.T, k *Cluster) {
	t.Helper()
	jobs, err := k.Client.BatchV1().Jobs("chaos").List(context.WithoutCancel(t.Context()), metav1.ListOptions{LabelSelector: readerLabel})
	if err != nil || len(jobs.Items) > 0 {
		t.Errorf("found %d jobs that read a claim, %v; want none", len(jobs.Items), err)
	}
}

// TestReadClaim reads the results of a campaign through a pod. The merged results must be those of
// the store that the pod reads.
func TestReadClaim(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 12}, PerPod: 12, Subjects: []string{"ours"}, Profile: "calm"}
	store := &memory{}
	if err := newWorker(t, c, store, 0, "pod", clock.RealClock{}).Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = store.Put(t.Context(), "nightly/campaign.json", []byte("{}")) // another campaign
	k := claimCluster(t, store)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := k.ReadClaim(t.Context(), "night", "results", "image", dir); err != nil {
		t.Fatal(err)
	}
	requireNoReader(t, k)
	merged, err := Merge(t.Context(), Directory(dir), "night")
	if err != nil {
		t.Fatal(err)
	}
	checkMerged(t, merged, Directory(dir), c)
	if _, err := os.Stat(filepath.Join(dir, "nightly")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy has the other campaign: %v", err)
	}
}

// TestReadClaimFails checks that ReadClaim reports a failing command, a truncated archive and an
// interrupt. It must delete the Job in each case.
func TestReadClaimFails(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	for want, exec := range map[string]func(stdout, stderr io.Writer) error{
		"exit status 2: no such claim": func(_, stderr io.Writer) error {
			_, _ = io.WriteString(stderr, "no such claim\n")
			return errors.New("exit status 2")
		},
		"unexpected EOF": func(stdout, _ io.Writer) error {
			store := &memory{}
			_ = store.Put(t.Context(), "night/campaign.json", bytes.Repeat([]byte("x"), 1000))
			var whole bytes.Buffer
			if err := Export(t.Context(), store, "night", &whole); err != nil {
				return err
			}
			_, err := stdout.Write(whole.Bytes()[:whole.Len()-10])
			return err
		},
		"context canceled": func(io.Writer, io.Writer) error {
			cancel()
			return interrupted.Err()
		},
	} {
		k := claimCluster(t, nil)
		k.Exec = func(_ context.Context, _ string, _ []string, stdout, stderr io.Writer) error {
			return exec(stdout, stderr)
		}
		err := k.ReadClaim(interrupted, "night", "results", "image", t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
		requireNoReader(t, k)
		interrupted, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

// TestNoClaim checks that ReadClaim creates no Job for a claim that does not exist.
func TestNoClaim(t *testing.T) {
	k := claimCluster(t, nil)
	if err := k.ReadClaim(t.Context(), "night", "nope", "image", t.TempDir()); !errors.Is(err, ErrNoClaim) || !strings.Contains(err.Error(), "chaos/nope") {
		t.Errorf("error %v; want %v", err, ErrNoClaim)
	}
	requireNoReader(t, k)
}

// TestLocation checks that the Job says where the results are.
func TestLocation(t *testing.T) {
	k := claimCluster(t, nil)
	for _, pods := range []Pods{{Claim: "results"}, {Bucket: "s3://bucket"}} {
		c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 2}, PerPod: 1, Subjects: []string{"ours"}}
		pods.Namespace = "chaos"
		if err := k.Submit(t.Context(), Job(&c, &pods)); err != nil {
			t.Fatal(err)
		}
		bucket, claim, err := k.Location(t.Context(), "night")
		if err != nil || bucket != pods.Bucket || claim != pods.Claim {
			t.Errorf("found %q, %q, %v; want %q, %q", bucket, claim, err, pods.Bucket, pods.Claim)
		}
		if err := k.Delete(t.Context(), "night"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.Location(t.Context(), "night"); err == nil {
		t.Error("found no error for a campaign without a job")
	}
}

// TestReaderJob compares the manifest of the Job that reads a claim with testdata/reader.yaml.
func TestReaderJob(t *testing.T) {
	k := claimCluster(t, nil)
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 2}, PerPod: 1, Subjects: []string{"ours"}}
	campaign := Job(&c, &Pods{Namespace: "chaos", Claim: "results", Image: "gauntlet", NodeSelector: map[string]string{"pool": "spot"}})
	if err := k.Submit(t.Context(), campaign); err != nil {
		t.Fatal(err)
	}
	compareJob(t, k.readerJob(t.Context(), "night", "results", ""), "reader.yaml")
}
