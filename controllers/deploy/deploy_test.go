package deploy

import (
	"bytes"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/controllers/manager"
	"github.com/kube-gauntlet/gauntlet/controllers/rbac"
)

// TestManifestMatchesBinary checks that the binary accepts the flags in the manifest, and serves
// its ports and probes. The RBAC objects must name the Lease of the binary.
func TestManifestMatchesBinary(t *testing.T) {
	spec := podSpec(t)
	container := spec.Containers[0]
	options := manager.NewOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(container.Args); err != nil {
		t.Fatal(err)
	}
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(container.Ports) != 1 || int(container.Ports[0].ContainerPort) != options.Serving.SecurePort {
		t.Errorf("ports %v, want %d as in the options", container.Ports, options.Serving.SecurePort)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		get := probe.HTTPGet
		if get.Path != path || get.Scheme != corev1.URISchemeHTTPS || get.Port != intstr.FromString(container.Ports[0].Name) {
			t.Errorf("the probe of %s has %+v", path, get)
		}
	}
	_, lease, err := rbac.Roles(options.LeaderElection.ResourceNamespace, options.LeaderElection.ResourceName)
	if err != nil {
		t.Fatal(err)
	}
	if !options.LeaderElection.Enabled || !bytes.Contains(rbac.Manifest, []byte("namespace: "+lease.Namespace)) ||
		!bytes.Contains(rbac.Manifest, []byte("resourceNames: ["+options.LeaderElection.ResourceName+"]")) {
		t.Errorf("rbac.yaml has no permission for Lease %s/%s", lease.Namespace, options.LeaderElection.ResourceName)
	}
	var account corev1.ServiceAccount
	for document := range bytes.SplitSeq(rbac.Manifest, []byte("\n---\n")) {
		if bytes.Contains(document, []byte("\nkind: ServiceAccount\n")) {
			if err := yaml.UnmarshalStrict(document, &account); err != nil {
				t.Fatal(err)
			}
		}
	}
	if account.Name != spec.ServiceAccountName {
		t.Errorf("service account %q, want %q of rbac.yaml", spec.ServiceAccountName, account.Name)
	}
}

func podSpec(t *testing.T) corev1.PodSpec {
	t.Helper()
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(Manifest, &set); err != nil {
		t.Fatal(err)
	}
	return set.Spec.Template.Spec
}
