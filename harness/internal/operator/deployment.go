package operator

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// process says how a Deployment runs the program with the controllers. The program runs in the
// container that [managerOf] returns. The arguments and environment variables are templates; see
// [subject.Definition].
type process struct {
	found bool // there is a Deployment
	// deployment is the place of the Deployment in the manifests, for errors.
	deployment string
	args       []string // without the expansion of $(NAME)
	variables  []corev1.EnvVar
	sources    []corev1.EnvFromSource
	namespace  string
	// ports has the ports of the container, by name.
	ports map[string]int
	// secret is the name of the Secret with the serving certificate. It is empty if the Deployment
	// does not mount such a Secret.
	secret string
	// certificates are the directories in which the container has certificates.
	certificates []string
	// mounts are the mounts of the container that have a volume.
	mounts []volumeMount
}

// processOf returns how a Deployment runs the program with the controllers. It reads the arguments,
// environment variables, ports and certificates of the container that [managerOf] returns, and the
// namespace of the Deployment. If the object is not a valid Deployment, processOf returns an error.
func processOf(o *unstructured.Unstructured) (process, error) {
	var d appsv1.Deployment
	if err := decode(o, &d); err != nil {
		return process{}, err
	}
	if o.GetAPIVersion() != "apps/v1" {
		return process{}, fmt.Errorf("apiVersion: found %q; expected apps/v1", o.GetAPIVersion())
	}
	if err := checkSimilarFields(o, &d); err != nil {
		return process{}, err
	}
	if err := checkMountPaths(d.Spec.Template.Spec); err != nil {
		return process{}, err
	}
	p := process{found: true, namespace: d.Namespace, ports: map[string]int{}}
	container, ok := managerOf(d.Spec.Template.Spec.Containers)
	if !ok {
		return p, errors.New("spec.template.spec.containers: found no container; expected at least one")
	}
	for _, port := range container.Ports {
		p.ports[port.Name] = int(port.ContainerPort)
	}
	p.mounts = mountsOf(container, d.Spec.Template.Spec.Volumes)
	for _, m := range p.mounts {
		if m.hasCertificates() {
			p.secret = cmp.Or(p.secret, m.volume.Secret.SecretName)
			p.certificates = append(p.certificates, m.MountPath)
		}
	}
	p.variables, p.sources = container.Env, container.EnvFrom
	p.args = slices.Concat(container.Command[min(1, len(container.Command)):], container.Args)
	return p, nil
}

// inCertificates replaces each given directory in an argument or environment variable by a
// template. In a run, the template becomes a directory of this machine that contains the serving
// certificate.
func inCertificates(text string, directories []string) string {
	for _, directory := range directories {
		text = strings.ReplaceAll(text, directory, "{{.Certificates}}")
	}
	return text
}

// managerOf returns the container that runs the controllers. This is the container named
// manager, or the first one if no container has this name. The result ok is false if there are
// no containers.
func managerOf(containers []corev1.Container) (manager corev1.Container, ok bool) {
	for _, c := range containers {
		if c.Name == "manager" {
			return c, true
		}
	}
	if len(containers) == 0 {
		return corev1.Container{}, false
	}
	return containers[0], true
}

// listensEverywhere matches a flag with a port on all addresses or on loopback, such as
// --metrics-bind-address=:8080.
var listensEverywhere = regexp.MustCompile(`^(--?[\w-]+=)(0\.0\.0\.0|127\.0\.0\.1|localhost|\[::\])?:(\d+)$`)

// webhookPort matches a flag with the port of webhooks, such as --webhook-port=9443.
var webhookPort = regexp.MustCompile(`^(--?webhook-(?:bind-|server-)?port=)\d+$`)

// listenOnReplicaAddress changes the address in a flag such as --metrics-bind-address=:8080. The
// new address is the replica's own loopback address. Several replicas can then use the same port.
// In a flag such as --webhook-port=9443, it replaces the port by the one that the run chooses.
func listenOnReplicaAddress(arg string) string {
	arg = webhookPort.ReplaceAllString(arg, "${1}{{.WebhookPort}}")
	return listensEverywhere.ReplaceAllString(arg, "${1}{{.Address}}:${3}")
}
