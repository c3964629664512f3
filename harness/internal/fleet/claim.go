package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

const (
	// readerLabel is a label of the Job and the pod that read a campaign's results from a
	// PersistentVolumeClaim (claim). Its value is the campaign's name.
	readerLabel = "gauntlet/collect"

	readerSeconds   = 3600            // the time after which Kubernetes ends the pod that reads a claim
	readerKeep      = 60              // the seconds after which Kubernetes deletes the ended Job of this pod
	readerStart     = 5 * time.Minute // the time in which this pod must start
	readerPoll      = time.Second
	readerDeleteMax = 30 * time.Second
)

// Location returns where a campaign's results are, according to the campaign's Job. The result
// bucket is the URL of a bucket, and claim is the name of a PersistentVolumeClaim. One of the two
// is empty.
func (k *Cluster) Location(ctx context.Context, name string) (bucket, claim string, err error) {
	job, err := k.Job(ctx, name)
	if err != nil {
		return "", "", err
	}
	bucket = job.Annotations[bucketAnnotation]
	for _, volume := range job.Spec.Template.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			claim = volume.PersistentVolumeClaim.ClaimName
		}
	}
	if bucket == "" && claim == "" {
		return "", "", fmt.Errorf("job %s/%s names neither a bucket nor a PersistentVolumeClaim for the results; expected a job that \"gauntlet fleet run\" created", k.Namespace, name)
	}
	return bucket, claim, nil
}

// ErrNoClaim means that the PersistentVolumeClaim with the results of a campaign does not exist.
var ErrNoClaim = errors.New("not found; set --claim to the name of the claim with the results")

// ReadClaim copies the results of a campaign from a PersistentVolumeClaim to the directory dir,
// which is then a [Directory]. A pod with the given image reads the claim. If the argument image is
// empty, the pod has the image of the campaign's pods.
//
// The pod belongs to a Job, so that Kubernetes deletes it even if gauntlet is killed. ReadClaim
// deletes the Job before it returns, also if ctx ends.
func (k *Cluster) ReadClaim(ctx context.Context, name, claim, image, dir string) error {
	// The pod would wait for a claim that does not exist. Other errors, such as a missing
	// permission, are no reason to give up.
	if _, err := k.Client.CoreV1().PersistentVolumeClaims(k.Namespace).Get(ctx, claim, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return fmt.Errorf("PersistentVolumeClaim %s/%s: %w", k.Namespace, claim, ErrNoClaim)
	}
	jobs := k.Client.BatchV1().Jobs(k.Namespace)
	job, err := jobs.Create(ctx, k.readerJob(ctx, name, claim, image), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return fmt.Errorf("creating the job that reads PersistentVolumeClaim %s/%s: %w", k.Namespace, claim, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readerDeleteMax)
		defer cancel()
		// If this fails, Kubernetes ends the Job after readerSeconds, and then deletes it.
		_ = jobs.Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	}()
	pod, err := k.readerPod(ctx, job.Name)
	if err != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", k.Namespace, claim, err)
	}
	command := []string{path.Join(ProgramDirectory, "gauntlet"), "fleet", "export", "--store=" + storeDirectory, name}
	if err := k.receive(ctx, pod, command, dir); err != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s through pod %s: %w", k.Namespace, claim, pod, err)
	}
	return nil
}

// receive runs a command in a pod, and extracts the command's output to the directory dir. The
// output is an archive, as [Export] writes it.
func (k *Cluster) receive(ctx context.Context, pod string, command []string, dir string) error {
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan error, 1)
	go func() {
		err := k.exec(ctx, pod, command, writer, &stderr)
		writer.CloseWithError(err) // nil means the end of the archive
		done <- err
	}()
	err := extract(reader, dir, math.MaxInt64, math.MaxInt) // the archive has all runs of the campaign
	if err == nil {
		_, err = io.Copy(io.Discard, reader) // the archive may have padding at its end
	}
	reader.CloseWithError(err) // the command can then write no more output, and ends
	if execErr := <-done; execErr != nil {
		return errors.Join(err, fmt.Errorf("%w: %s", execErr, bytes.TrimSpace(stderr.Bytes())))
	}
	return err
}

// exec runs a command in the container of the pod that reads a campaign's PersistentVolumeClaim. It
// writes the output of the command to stdout and stderr.
func (k *Cluster) exec(ctx context.Context, pod string, command []string, stdout, stderr io.Writer) error {
	if k.Exec != nil {
		return k.Exec(ctx, pod, command, stdout, stderr)
	}
	request := k.Client.CoreV1().RESTClient().Post().Namespace(k.Namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(k.Config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}

// readerJob returns the Job whose pod reads a campaign's PersistentVolumeClaim. The pod has the
// node selector, tolerations and ServiceAccount of the campaign's pods, so that it can use the
// claim. If the campaign's Job does not exist any more, the pod has the defaults.
func (k *Cluster) readerJob(ctx context.Context, name, claim, image string) *batchv1.Job {
	pods := Pods{Image: image, Claim: claim, CPU: resource.MustParse("100m"), Memory: resource.MustParse("256Mi"), Disk: resource.MustParse("1Gi")}
	if job, err := k.Job(ctx, name); err == nil {
		spec := &job.Spec.Template.Spec
		pods.NodeSelector, pods.Tolerations, pods.PriorityClass = spec.NodeSelector, spec.Tolerations, spec.PriorityClassName
		pods.ServiceAccount = spec.ServiceAccountName
		if image == "" {
			pods.Image = spec.Containers[0].Image
		}
	}
	labels := Labels(name)
	delete(labels, campaignLabel) // commands that list the campaign's pods must not find this one
	labels[readerLabel] = name
	spec := podSpec(&Campaign{Name: name}, &pods)
	worker := &spec.Containers[0]
	worker.Args, worker.Ports = []string{"fleet", "export", "--wait"}, nil
	worker.VolumeMounts[len(worker.VolumeMounts)-1].ReadOnly = true // the last mount is the store
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-collect-", Namespace: k.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr.To(int32(0)),
			ActiveDeadlineSeconds:   ptr.To(int64(readerSeconds)),
			TTLSecondsAfterFinished: ptr.To(int32(readerKeep)),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// readerPod waits until the pod that reads a campaign's PersistentVolumeClaim runs. It returns the
// pod's name. The argument job is the name of the pod's Job.
func (k *Cluster) readerPod(ctx context.Context, job string) (name string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readerStart, fmt.Errorf("no pod of job %s started within %s", job, readerStart))
	defer cancel()
	var fatal error
	err = cluster.Poll(ctx, readerPoll, "the pod of job "+job, func(ctx context.Context) error {
		pods, err := k.Client.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
		if apierrors.IsForbidden(err) {
			fatal = err
			return nil
		}
		if err != nil || len(pods.Items) == 0 {
			return errors.Join(err, errors.New("the job has no pod"))
		}
		pod := &pods.Items[0]
		switch pod.Status.Phase {
		case corev1.PodRunning:
			name = pod.Name
			return nil
		case corev1.PodFailed, corev1.PodSucceeded:
			fatal = fmt.Errorf("pod %s has ended: %s %s", pod.Name, pod.Status.Phase, pod.Status.Message)
			return nil
		}
		return fmt.Errorf("pod %s is %s: %s", pod.Name, pod.Status.Phase, startProblem(pod))
	})
	return name, errors.Join(err, fatal)
}

// Export writes all files of a campaign in the store to out, as a compressed archive. The pod that
// reads a campaign's PersistentVolumeClaim calls Export.
func Export(ctx context.Context, store Store, campaign string, out io.Writer) error {
	names, err := store.List(ctx, campaign+"/")
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, name := range names {
		content, err := store.Get(ctx, name)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
