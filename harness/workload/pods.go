package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// Pods describes the pods of a workload.
type Pods struct {
	// Image is the image of the program standin, which must be present on every node.
	// If it is empty, the pods run the pause container, which is ready at once.
	Image string
	// StartDelay and StopDelay are the times that a pod takes to become ready and to
	// terminate. Without an Image, the simulated kubelets apply them.
	StartDelay, StopDelay time.Duration
}

// pauseImage is the image of pods without an application.
const pauseImage = "registry.k8s.io/pause:3.10"

// The kubelet probes a stand-in every second, and a single result changes the readiness. The
// timeout is long, because a slow response on a busy machine must not make a pod unready.
const (
	probePeriodSeconds  = 1
	probeTimeoutSeconds = 30
)

// spec returns a pod spec without resource requests. Nothing connects to the pod's
// ports except the probe; Services refer to them by name.
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

// tolerationSeconds is the time before pods on a lost node are evicted. The default of
// 5 minutes is longer than most runs.
const tolerationSeconds = 1

func tolerationFor(taint string) corev1.Toleration {
	return corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](tolerationSeconds),
	}
}
