package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Names of the containers in a pod.
const (
	subjectContainer = "subject"
	relayContainer   = "relay"
)

// Paths in a container.
const (
	configDir      = "/etc/gauntlet/subject"
	kubeconfigFile = "kubeconfig"
	tokenDir       = "/var/run/gauntlet/token"
	tokenFile      = "token"
	relayDir       = "/etc/gauntlet/relay"
)

const (
	// user is the user and group ID of both containers, and the group of their files.
	user = 65532
	// tokenSeconds is the lifetime of the subject's token. The kubelet renews it.
	tokenSeconds = 3600
	// relayPatience limits the time for which a connection of the subject may wait in the
	// relay. The run connects to the relay after it has seen that the subject is running.
	relayPatience = "30s"
)

func configSecret(replica string) string { return replica + "-config" }
func relaySecret(replica string) string  { return replica + "-relay" }

// manifest returns a pod with the subject's container only.
func (o *Options) manifest(name, replica string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace,
			Labels: map[string]string{"app.kubernetes.io/name": "subject", "gauntlet/replica": replica},
		},
		Spec: corev1.PodSpec{
			// The pod runs on the control-plane node, independently of the scheduler
			// and the pod network.
			NodeName:                     o.Node.Name(),
			HostNetwork:                  true,
			RestartPolicy:                restart,
			PriorityClassName:            "system-node-critical",
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			ServiceAccountName:           account,
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user), FSGroup: ptr.To[int64](user),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: subjectContainer, Image: o.Subject.Reference, ImagePullPolicy: corev1.PullNever,
				Command:         o.Subject.Command,
				Args:            o.Settings.Flags(configDir+"/"+kubeconfigFile, nil),
				SecurityContext: restricted(),
				VolumeMounts: []corev1.VolumeMount{
					{Name: "config", MountPath: configDir, ReadOnly: true},
					{Name: "token", MountPath: tokenDir, ReadOnly: true},
				},
			}},
			Volumes: []corev1.Volume{
				secretVolume("config", configSecret(replica)),
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
						Path: tokenFile, ExpirationSeconds: ptr.To[int64](tokenSeconds),
					}}},
				}}},
			},
		},
	}
}

// addRelay adds the relay to a pod as a sidecar container. The sidecar starts before
// the subject and ends after it.
func addRelay(pod *corev1.Pod, image Image, t *replicaTunnel) {
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name: relayContainer, Image: image.Reference, ImagePullPolicy: corev1.PullNever,
		Command: image.Command,
		Args: []string{
			fmt.Sprintf("--subject=127.0.0.1:%d", subjectPort+t.index),
			fmt.Sprintf("--control=0.0.0.0:%d", controlPort+t.index),
			"--identity=" + relayDir,
			"--patience=" + relayPatience,
		},
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways), // makes it a sidecar
		SecurityContext: restricted(),
		StartupProbe: &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(controlPort + t.index))}},
			PeriodSeconds:    1,
			FailureThreshold: 60,
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "relay", MountPath: relayDir, ReadOnly: true}},
	})
	pod.Spec.Volumes = append(pod.Spec.Volumes, secretVolume("relay", relaySecret(t.replica)))
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: ptr.To[int32](0o440),
	}}}
}
