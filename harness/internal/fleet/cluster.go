package fleet

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// Cluster gives access to the Jobs of campaigns in one namespace of a cluster.
type Cluster struct {
	Client    kubernetes.Interface
	Namespace string
	// Config is the client configuration with which gauntlet runs commands in a pod. Only
	// [Cluster.ReadClaim] needs it.
	Config *rest.Config
	// Exec replaces, in tests, the function that runs a command in a pod. Outside of tests, it is
	// nil.
	Exec func(ctx context.Context, pod string, command []string, stdout, stderr io.Writer) error
}

// Submit creates the Job of a campaign in the cluster. It returns an error if the Job exists.
func (k *Cluster) Submit(ctx context.Context, job *batchv1.Job) error {
	created, err := k.Ensure(ctx, job)
	if err == nil && !created {
		return fmt.Errorf("job %s/%s exists already; use another name, or run \"gauntlet fleet delete %s\"", k.Namespace, job.Name, job.Name)
	}
	return err
}

// Ensure creates the Job of a campaign if it does not exist, and reports whether it did so. It returns
// an error if a Job exists that gauntlet did not create.
func (k *Cluster) Ensure(ctx context.Context, job *batchv1.Job) (created bool, err error) {
	_, err = k.Client.BatchV1().Jobs(k.Namespace).Create(ctx, job, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		_, err := k.Job(ctx, job.Name)
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("creating job %s/%s: %w", k.Namespace, job.Name, err)
	}
	return true, nil
}

// Delete deletes the Job of a campaign and the Job's pods. The results stay in the store.
func (k *Cluster) Delete(ctx context.Context, name string) error {
	if _, err := k.Job(ctx, name); err != nil {
		return err
	}
	err := k.Client.BatchV1().Jobs(k.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
	if err != nil {
		return fmt.Errorf("deleting job %s/%s: %w", k.Namespace, name, err)
	}
	return nil
}

// Status is the progress of a campaign's Job.
type Status struct {
	Campaign Campaign
	// Indexes is the number of the Job's indexes, and Active is the number of indexes with a pod.
	// Succeeded is the number of indexes whose seeds all have a result.
	Indexes, Succeeded, Active int32
	FailedIndexes              string // the failed indexes, such as "3,7-9"; empty if no index has failed
	FailedPods                 int32  // the number of pods that counted as failures of their index
	Suspended                  bool
	Age                        time.Duration // the time since the start of the Job; 0 before the start
	// Waiting is the number of pods that cannot start, and WaitingReason is the reason of one of
	// them, such as a missing image. If gauntlet has no permission to list pods, Waiting is 0, and
	// WaitingReason and Failure are empty.
	Waiting       int
	WaitingReason string
	// Failure is the error message of a worker, if an index or the Job has failed. It may be empty.
	Failure string
	// End says how the Job ended: Complete or Failed. It is empty while the Job runs.
	End string
	// EndMessage explains End in a sentence. It may be empty.
	EndMessage string
}

// Complete reports whether all indexes of the Job have succeeded. Every run of the campaign then
// has a result.
func (s *Status) Complete() bool { return s.Succeeded == s.Indexes }

// String formats the status as one line, such as "campaign nightly: 3 of 20 indexes complete,
// active pods: 4".
func (s *Status) String() string {
	line := fmt.Sprintf("campaign %s: %d of %d indexes complete, active pods: %d", s.Campaign.Name, s.Succeeded, s.Indexes, s.Active)
	if s.FailedIndexes != "" {
		line += ", failed indexes " + s.FailedIndexes
	}
	if s.Waiting > 0 && s.End == "" {
		line += fmt.Sprintf(", pods that cannot start: %d: %s", s.Waiting, s.WaitingReason)
	}
	if s.Failure != "" {
		line += ", a pod has failed: " + s.Failure
	}
	switch {
	case s.End != "":
		line += ", the job has ended: " + s.End
		if s.EndMessage != "" {
			line += ": " + s.EndMessage
		}
	case s.Suspended:
		line += ", the job is suspended"
	case s.Succeeded > 0:
		left := time.Duration(float64(s.Age) / float64(s.Succeeded) * float64(s.Indexes-s.Succeeded))
		line += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	return line
}

// Status reads the status of the named campaign from its Job. The argument now is the current time,
// from which Status computes the age of the Job.
func (k *Cluster) Status(ctx context.Context, name string, now time.Time) (*Status, error) {
	job, err := k.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &Status{
		Indexes:       ptr.Deref(job.Spec.Completions, 0),
		Succeeded:     job.Status.Succeeded,
		Active:        job.Status.Active,
		FailedIndexes: ptr.Deref(job.Status.FailedIndexes, ""),
		FailedPods:    job.Status.Failed,
		Suspended:     ptr.Deref(job.Spec.Suspend, false),
	}
	if s.Campaign, err = decode[Campaign]("annotation "+campaignLabel, []byte(job.Annotations[campaignLabel])); err != nil {
		return nil, err
	}
	if job.Status.StartTime != nil {
		s.Age = now.Sub(job.Status.StartTime.Time)
	}
	for _, condition := range job.Status.Conditions {
		ended := condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed
		if ended && condition.Status == corev1.ConditionTrue {
			s.End, s.EndMessage = string(condition.Type), condition.Message
		}
	}
	if s.Active > 0 {
		if s.Waiting, s.WaitingReason, err = k.waiting(ctx, name); err != nil {
			return nil, err
		}
	}
	if s.FailedIndexes != "" || s.End == string(batchv1.JobFailed) {
		s.Failure, err = k.failure(ctx, name)
	}
	return s, err
}

// pods returns the pods of a campaign that are in the given phase. If gauntlet may not list pods,
// pods returns nil and no error, because the campaign's status is useful without pods too.
func (k *Cluster) pods(ctx context.Context, name string, phase corev1.PodPhase) ([]corev1.Pod, error) {
	pods, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: campaignLabel + "=" + name, FieldSelector: "status.phase=" + string(phase), ResourceVersion: "0",
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the pods of campaign %s: %w", name, err)
	}
	return pods.Items, nil
}

// failure returns the error message of a worker that failed, with the name of its pod. It returns an
// empty text if no pod has such a message.
func (k *Cluster) failure(ctx context.Context, name string) (string, error) {
	pods, err := k.pods(ctx, name, corev1.PodFailed)
	if err != nil {
		return "", err
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			end := status.State.Terminated
			if end == nil || end.ExitCode != ExitBroken && end.ExitCode != ExitUsage {
				continue
			}
			if _, message, ok := strings.Cut("\n"+end.Message, "\ngauntlet: "); ok {
				message, _, _ = strings.Cut(message, "\n")
				return fmt.Sprintf("%s: %s", pod.Name, message), nil
			}
		}
	}
	return "", nil
}

// waiting returns how many pods of a campaign cannot start, and why the first of these pods cannot
// start.
func (k *Cluster) waiting(ctx context.Context, name string) (n int, reason string, err error) {
	pods, err := k.pods(ctx, name, corev1.PodPending)
	for i := range pods {
		found := startProblem(&pods[i])
		if found == "" {
			continue
		}
		n++
		if reason == "" {
			reason = found
		}
	}
	return n, reason, err
}

// startProblem returns why a pod cannot start. It returns an empty text if the pod runs, or if its
// start makes progress.
func startProblem(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		waiting := status.State.Waiting
		if waiting != nil && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
			return strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return strings.TrimSuffix(condition.Reason+": "+condition.Message, ": ")
		}
	}
	return ""
}

// Job reads the Job of the named campaign. It returns an error if the Job was not created by
// gauntlet.
func (k *Cluster) Job(ctx context.Context, name string) (*batchv1.Job, error) {
	job, err := k.Client.BatchV1().Jobs(k.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("campaign %s: job %s/%s does not exist; Kubernetes deletes a job some time after the end of the job", name, k.Namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading job %s/%s: %w", k.Namespace, name, err)
	}
	if job.Labels[campaignLabel] != name {
		return nil, fmt.Errorf("job %s/%s has no label %s for this campaign; expected a job that \"gauntlet fleet run\" created", k.Namespace, name, campaignLabel)
	}
	return job, nil
}
