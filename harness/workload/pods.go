package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// Pods has the settings of the pods that the workload creates, directly or through objects such
// as ReplicaSets.
type Pods struct {
	// Image is the image of the program standin, which becomes ready and terminates after given
	// delays. The image must be present on every node. If Image is empty, the pods run the pause
	// container, which is ready at once.
	Image string
	// StartDelay is the time until a pod becomes ready. StopDelay is the time until a deleted
	// pod terminates. If Image is empty, the simulated kubelets apply these delays.
	StartDelay, StopDelay time.Duration
}

// pauseImage is the image of the workload's pods if Pods.Image is empty. Its container is ready at
// once, and does nothing.
const pauseImage = "registry.k8s.io/pause:3.10"

// These are the settings of the readiness probe of pods that run the program standin; see
// Pods.Image. The kubelet probes a pod every second. A single success or failure changes the
// readiness.
//
// The timeout is long, because a slow response on a busy machine must not make a pod unready.
const (
	probePeriodSeconds  = 1
	probeTimeoutSeconds = 30
)

// spec returns the spec of the workload's pods, without resource requests. Services refer to the
// container ports by name. Only the readiness probe connects to a port.
func (p Pods) spec() corev1.PodSpec {
	container := corev1.Container{
		Name:  "pause",
		Image: pauseImage,
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: standin.Port}, {Name: "metrics", ContainerPort: 9090}},
	}
	if p.Image != "" {
		container.Image, container.ImagePullPolicy = p.Image, corev1.PullNever
		container.Args = standin.Options{StartDelay: p.StartDelay, StopDelay: p.StopDelay}.Args()
		container.ReadinessProbe = &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: standin.Ready, Port: intstr.FromInt32(standin.Port)}},
			PeriodSeconds:    probePeriodSeconds,
			TimeoutSeconds:   probeTimeoutSeconds,
			FailureThreshold: 1,
		}
	}
	return corev1.PodSpec{
		Containers:                    []corev1.Container{container},
		Tolerations:                   []corev1.Toleration{tolerationFor(corev1.TaintNodeNotReady), tolerationFor(corev1.TaintNodeUnreachable)},
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(p.StopDelay.Truncate(time.Second).Seconds()) + 1), // longer than StopDelay
	}
}

// tolerationSeconds is the number of seconds after which Kubernetes evicts pods from a not ready
// or unreachable node. The default of Kubernetes, 5 minutes, is longer than most runs.
const tolerationSeconds = 1

// tolerationFor returns a toleration of the NoExecute taint with the given key. The toleration
// ends after tolerationSeconds.
func tolerationFor(taint string) corev1.Toleration {
	return corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](tolerationSeconds),
	}
}
