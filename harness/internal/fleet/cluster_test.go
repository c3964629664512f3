package fleet

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// TestCluster submits the Job of a campaign, reads its status, and deletes the Job.
func TestCluster(t *testing.T) {
	ctx := t.Context()
	cluster := Cluster{Client: fake.NewClientset(), Namespace: "chaos"}
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 100}, PerPod: 10, Subjects: []string{"ours"}, Profile: "calm"}
	job := Job(&c, &Pods{Namespace: "chaos", Image: "image", Claim: "results", Parallelism: 4})
	if err := cluster.Submit(ctx, job); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Submit(ctx, job); err == nil || !strings.Contains(err.Error(), "gauntlet fleet delete night") {
		t.Errorf("error %v, want the command that deletes the job", err)
	}
	begun := time.Unix(1000, 0)
	job.Status = batchv1.JobStatus{Succeeded: 4, Active: 3, FailedIndexes: ptr.To("5"), StartTime: &metav1.Time{Time: begun}}
	check := func(want string) {
		t.Helper()
		if _, err := cluster.Client.BatchV1().Jobs("chaos").UpdateStatus(ctx, job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		status, err := cluster.Status(ctx, "night", begun.Add(time.Minute))
		if err != nil || status.String() != want || status.Campaign.Seeds != c.Seeds {
			t.Errorf("status %s, %v; want %s", status, err, want)
		}
	}
	check("campaign night: 4 of 10 indexes complete, active pods: 3, failed indexes 5, about 1m30s left")
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
	}
	for _, pod := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "starts", Labels: Labels("night")}, Status: waiting("ContainerCreating", "")},
		{ObjectMeta: metav1.ObjectMeta{Name: "no-image", Labels: Labels("night")}, Status: waiting("ErrImagePull", "not found")},
		{ObjectMeta: metav1.ObjectMeta{Name: "of-another", Labels: Labels("day")}, Status: waiting("ErrImagePull", "not found")},
	} {
		if _, err := cluster.Client.CoreV1().Pods("chaos").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	check("campaign night: 4 of 10 indexes complete, active pods: 3, failed indexes 5, pods that cannot start: 1: ErrImagePull: not found, about 1m30s left")
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "too late"}}
	failed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "night-5-x", Labels: Labels("night")}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: ExitUsage, Message: "seed 1\ngauntlet: --store: missing\n"}}},
	}}}
	if _, err := cluster.Client.CoreV1().Pods("chaos").Create(ctx, failed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	check("campaign night: 4 of 10 indexes complete, active pods: 3, failed indexes 5, a pod has failed: night-5-x: --store: missing, the job has ended: Failed: too late")
	if err := cluster.Delete(ctx, "night"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"night", "day"} {
		if _, err := cluster.Status(ctx, name, begun); err == nil || !strings.Contains(err.Error(), "job chaos/"+name+" does not exist") {
			t.Errorf("error %v, want one about a missing job", err)
		}
	}
}

// TestForeignJob checks that Delete refuses a Job that gauntlet did not create.
func TestForeignJob(t *testing.T) {
	cluster := Cluster{Client: fake.NewClientset(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "backup", Namespace: "chaos"}}), Namespace: "chaos"}
	if err := cluster.Delete(t.Context(), "backup"); err == nil || !strings.Contains(err.Error(), "expected a job that \"gauntlet fleet run\" created") {
		t.Errorf("error %v, want one about the missing label", err)
	}
}

func TestStartProblem(t *testing.T) {
	condition := func(status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: "Unschedulable", Message: "no claim"}}}}
	}
	for want, pod := range map[string]*corev1.Pod{"": condition(corev1.ConditionTrue), "Unschedulable: no claim": condition(corev1.ConditionFalse)} {
		if got := startProblem(pod); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
