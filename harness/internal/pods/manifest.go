package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// These are the names of the two containers in a pod of the program under test.
const (
	subjectContainer = "subject"
	relayContainer   = "relay"
)

// These are the paths of directories and files in the containers of a pod.
const (
	configDir      = "/etc/gauntlet/subject"   // directory of the kubeconfig of the program under test
	kubeconfigFile = "kubeconfig"              // name of the kubeconfig file in configDir
	tokenDir       = "/var/run/gauntlet/token" // directory of the ServiceAccount token
	tokenFile      = "token"                   // name of the token file in tokenDir
	relayDir       = "/etc/gauntlet/relay"     // directory of the relay's certificates
)

const (
	// user is the user ID and the group ID of both containers. The files in the volumes belong
	// to the group with this ID.
	user = 65532
	// tokenSeconds is the lifetime of the ServiceAccount token. The kubelet renews the token.
	tokenSeconds = 3600
	// relayPatience is the maximum time that a connection of the program under test waits in the
	// relay. The relay closes a connection that it cannot forward within this time. The first
	// connection always waits, because gauntlet connects to the relay only after the program under
	// test has started.
	relayPatience = "30s"
)

// configSecret returns the name of the Secret with the kubeconfig that a replica of the program
// under test uses.
func configSecret(replica string) string { return replica + "-config" }

// relaySecret returns the name of the Secret that contains the certificates for a replica's
// relay.
func relaySecret(replica string) string { return replica + "-relay" }

// manifest returns a pod that runs a replica of the program under test, without a relay. The
// argument name is the name of the pod, and replica is the name of the replica.
func (o *Options) manifest(name, replica string, restart corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: Namespace,
			Labels: map[string]string{"app.kubernetes.io/name": "subject", "gauntlet/replica": replica},
		},
		Spec: corev1.PodSpec{
			// The pod is bound to the control plane node and uses the network of the node, so
			// faults of the scheduler and the pod network do not affect it.
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
				Resources:       requests(subjectCPU),
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

// addRelay adds a relay to the pod of a replica, as a sidecar container. The kubelet starts the
// relay before the program under test, and stops the relay after the program under test.
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
		RestartPolicy:   ptr.To(corev1.ContainerRestartPolicyAlways), // makes this init container a sidecar
		SecurityContext: restricted(),
		Resources:       requests(relayCPU),
		StartupProbe: &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(int32(controlPort + t.index))}},
			PeriodSeconds:    1,
			FailureThreshold: 60,
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "relay", MountPath: relayDir, ReadOnly: true}},
	})
	pod.Spec.Volumes = append(pod.Spec.Volumes, secretVolume("relay", relaySecret(t.replica)))
}

// These are the CPU requests of the containers. On a busy node, a container without a request gets
// almost no CPU time. The requests are low, so that all replicas fit on a node with one core.
const (
	subjectCPU = "100m"
	relayCPU   = "20m"
)

// requests returns the resource requirements of a container that requests the given CPU, such as
// "100m".
func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

// restricted returns a SecurityContext that complies with the Pod Security Standard
// "restricted".
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// secretVolume returns a volume that contains the files of a Secret. Only the containers' user
// and group can read the files.
func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: ptr.To[int32](0o440),
	}}}
}
