package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/standin"
)

// Pods says what the pods of a workload are like.
type Pods struct {
	// Image is that of the program standin, which every node has. Without one they
	// run the pause container, which is ready at once.
	Image string
	// StartDelay and StopDelay are how long they take to be ready, and to end.
	// Without an Image that is up to whoever plays the kubelets.
	StartDelay, StopDelay time.Duration
}

// pauseImage is what pods run whose containers nobody wants anything of.
const pauseImage = "registry.k8s.io/pause:3.10"

// Bounds on what a stand-in answers to its kubelet. It is asked every second, and
// believed the first time; an answer may take long on a machine that is busy, which
// makes nobody unready.
const (
	probePeriodSeconds  = 1
	probeTimeoutSeconds = 30
)

// spec is a pod that does nothing, asks for nothing, and goes when told to. Nobody
// but its kubelet asks anything of its ports: Services have them to resolve.
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
		TerminationGracePeriodSeconds: ptr.To(int64(p.StopDelay.Truncate(time.Second).Seconds()) + 1), // more than it takes
	}
}

// tolerationSeconds is how long pods wait for a node that is lost before they are
// evicted. By default it is 5 minutes, which no run has.
const tolerationSeconds = 1

func tolerationFor(taint string) corev1.Toleration {
	return corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: ptr.To[int64](tolerationSeconds),
	}
}
