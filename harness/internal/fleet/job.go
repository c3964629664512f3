package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
)

// Pods says where and how Kubernetes runs the pods of a campaign.
type Pods struct {
	Namespace string
	// Image is the name of the image that "gauntlet image --fleet" built.
	Image string
	// Claim is the name of the PersistentVolumeClaim that contains the store. The access mode must
	// be ReadWriteMany if pods run on several nodes. Claim is empty if Bucket is set.
	Claim string
	// Bucket is the URL of the bucket that contains the store, such as s3://bucket/prefix. It is
	// empty if Claim is set.
	Bucket string
	// Secret is the name of a Secret with credentials for Bucket. Each key of the Secret is
	// an environment variable and a file of the pods. The name is empty if the pods need no Secret.
	Secret string
	// ServiceAccount is the name of the pods' ServiceAccount. It may identify the pods to a cloud.
	// If it is empty, the pods have the default ServiceAccount.
	ServiceAccount string

	Parallelism int32         // the maximum number of pods at the same time
	Deadline    time.Duration // the time after which Kubernetes ends the Job; 0 means never
	// Retries is how often Kubernetes repeats an index of the Job with a new pod. It does so after
	// runs could not start, or after the store could not be used.
	Retries       int32
	Keep          time.Duration // how long Kubernetes keeps the finished Job
	Queue         string        // the name of a Kueue LocalQueue; empty without Kueue
	NodeSelector  map[string]string
	Tolerations   []corev1.Toleration
	PriorityClass string
	CPU, Memory   resource.Quantity // the resource requests; Memory is also the memory limit
	Disk          resource.Quantity // the limit of ephemeral storage of a pod
}

// These are the default resources of a pod, which makes one run at a time. docs/fleet.md says how
// they were measured.
var (
	DefaultCPU    = resource.MustParse("1")
	DefaultMemory = resource.MustParse("2Gi")
	DefaultDisk   = resource.MustParse("4Gi")
)

const (
	// ProgramDirectory is the directory in the image that contains all programs.
	ProgramDirectory = "/opt/gauntlet"
	// MetricsPort is the port on which a pod serves metrics.
	MetricsPort = 9090

	container      = "worker"
	storeDirectory = "/store"
	// credentialsDirectory has the values of [Pods.Secret] as files. Some clouds have credentials
	// that only a file can contain.
	credentialsDirectory = "/credentials"

	workDirectory = "/work"
	campaignLabel = "gauntlet/campaign"
	// bucketAnnotation is the annotation of a Job with the URL in [Pods.Bucket]. A Job whose
	// results are in a PersistentVolumeClaim has no such annotation.
	bucketAnnotation = "gauntlet/bucket"

	queueLabel = "kueue.x-k8s.io/queue-name"
	user       = 65532 // the user ID of the containers, the same as in the image

	// graceSeconds is the time that a pod has after SIGTERM to write the last files of its
	// attempt.
	graceSeconds = 30
)

// These are the exit codes of "gauntlet fleet worker", the program of each pod. The Job's pod
// failure policy treats each of them differently.
const (
	// ExitBroken means that runs could not start, or that the store could not be used. Kubernetes
	// repeats the index up to [Pods.Retries] times, and then records the index as failed.
	ExitBroken = 2
	// ExitUsage means that the command line or the store is wrong, so that every pod would fail.
	// Kubernetes ends the Job.
	ExitUsage = 3

	// ExitTerminated means that the worker received SIGTERM before its work was complete. Kubernetes
	// replaces the pod.
	ExitTerminated = 143

	// ExitKilled is the exit code after SIGKILL. A worker also ends with it if the kernel killed
	// one of its processes because memory ran out; see [ErrOutOfMemory].
	ExitKilled = 137
)

// Job returns the Indexed Job that runs a campaign with the given pods.
func Job(c *Campaign, p *Pods) *batchv1.Job {
	labels := Labels(c.Name)
	jobLabels := maps.Clone(labels)
	if p.Queue != "" {
		jobLabels[queueLabel] = p.Queue
	}
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        c.Name,
			Namespace:   p.Namespace,
			Labels:      jobLabels,
			Annotations: map[string]string{campaignLabel: string(c.encode())},
		},
		Spec: batchv1.JobSpec{
			CompletionMode:          ptr.To(batchv1.IndexedCompletion),
			Completions:             ptr.To(int32(c.indexes())),
			Parallelism:             ptr.To(min(p.Parallelism, int32(c.indexes()))),
			BackoffLimitPerIndex:    ptr.To(p.Retries),
			PodReplacementPolicy:    ptr.To(batchv1.Failed),
			PodFailurePolicy:        podFailurePolicy(),
			TTLSecondsAfterFinished: ptr.To(int32(p.Keep.Seconds())),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(c, p),
			},
		},
	}
	if p.Queue != "" {
		job.Spec.Suspend = ptr.To(true) // Kueue starts the Job
	}
	if p.Bucket != "" {
		job.Annotations[bucketAnnotation] = p.Bucket
	}
	if p.Deadline > 0 {
		job.Spec.ActiveDeadlineSeconds = ptr.To(int64(p.Deadline.Seconds()))
	}
	return job
}

// Labels returns the labels of a campaign's Job and pods. gauntlet finds the pods of a campaign by
// these labels.
func Labels(campaign string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":      "gauntlet",
		"app.kubernetes.io/component": "fleet",
		campaignLabel:                 campaign,
	}
}

// podFailurePolicy returns the rules for a pod that ends before its work is complete. Some ends of
// a pod count as failures of the pod's completion index. Pods that were evicted, killed or lost do
// not count: Kubernetes replaces them.
func podFailurePolicy() *batchv1.PodFailurePolicy {
	onExit := func(action batchv1.PodFailurePolicyAction, codes ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: ptr.To(container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: codes,
		}}
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		onExit(batchv1.PodFailurePolicyActionIgnore, ExitKilled, ExitTerminated),
		onExit(batchv1.PodFailurePolicyActionFailJob, ExitUsage),
		onExit(batchv1.PodFailurePolicyActionCount, ExitBroken),
	}}
}

// podSpec returns the spec of a campaign's pods. The pods satisfy the Pod Security Standard
// "restricted".
func podSpec(c *Campaign, p *Pods) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To(int64(graceSeconds)),
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		NodeSelector:                  p.NodeSelector,
		Tolerations:                   p.Tolerations,
		PriorityClassName:             p.PriorityClass,
		ServiceAccountName:            p.ServiceAccount,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(int64(user)),
			RunAsGroup:     ptr.To(int64(user)),
			FSGroup:        ptr.To(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{workerContainer(c, p)},
		Volumes: []corev1.Volume{
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(p.Disk)}}},
		},
	}
	if p.Bucket == "" {
		mount(&spec, "store", storeDirectory, false, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Claim}})
	}
	if p.Secret != "" {
		worker := &spec.Containers[0]
		worker.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: p.Secret}}}}
		mount(&spec, "credentials", credentialsDirectory, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.Secret}})
	}
	return spec
}

// mount adds a volume to a pod, and mounts it in the first container. The argument name is the name
// of the volume. The argument directory is the path in the container.
func mount(spec *corev1.PodSpec, name, directory string, readOnly bool, source corev1.VolumeSource) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	worker := &spec.Containers[0]
	worker.VolumeMounts = append(worker.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: directory, ReadOnly: readOnly})
}

// workerContainer returns the container of a campaign's pods, which runs "gauntlet fleet worker".
func workerContainer(c *Campaign, p *Pods) corev1.Container {
	field := func(name, fieldPath string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: fieldPath}}}
	}
	return corev1.Container{
		Name:    container,
		Image:   p.Image,
		Command: []string{path.Join(ProgramDirectory, "gauntlet")},
		Args:    workerArgs(c, cmp.Or(p.Bucket, storeDirectory)),
		Env: []corev1.EnvVar{
			field("POD_NAME", "metadata.name"),
			field("NODE_NAME", "spec.nodeName"),
			{Name: "HOME", Value: workDirectory},
			{Name: "TMPDIR", Value: workDirectory},
		},
		// The end of the log says why the worker failed; see [Status.Failure].
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,

		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: MetricsPort}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: p.CPU, corev1.ResourceMemory: p.Memory},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: p.Memory, corev1.ResourceEphemeralStorage: p.Disk},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "work", MountPath: workDirectory},
		},
	}
}

// workerArgs returns the arguments with which a container calls gauntlet. The argument store is the
// directory or the URL of the store.
func workerArgs(c *Campaign, store string) []string {
	args := []string{
		"fleet", "worker", "--store=" + store, "--out=" + path.Join(workDirectory, "out"), "--name=" + c.Name,
		"--seeds=" + c.Seeds.String(), fmt.Sprintf("--per-pod=%d", c.PerPod), "--subjects=" + strings.Join(c.Subjects, ","),
		"--provider=" + c.Provider,
		fmt.Sprintf("--metrics-address=:%d", MetricsPort),
	}
	if c.Provider != providers.Virtual { // the program of the provider virtual contains the control plane
		args = append(args, "--upstream-dir="+ProgramDirectory)
	}
	if len(c.Units) > 0 {
		args = append(args, "--units="+EncodeUnits(c.Units), "--of="+c.Of, "--at="+strings.Join(c.Faults, ","), "--budget="+c.Budget.String())
	}
	switch {
	case c.Explores():
		return args
	case c.Scenario != "":
		return append(args, "--scenario="+c.Scenario)
	}
	args = append(args, "--profile="+c.Profile)
	if c.Duration > 0 {
		args = append(args, "--duration="+c.Duration.String())
	}
	if c.PreferUncovered != nil {
		args = append(args, "--coverage="+EncodeCoverage(c.PreferUncovered))
	}
	return args
}
