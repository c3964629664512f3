package operator

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// serveWebhooks sets the port of the program's webhooks in d. The port is in the manifests, in the
// Services to which webhooks refer. If the manifests contain the Secret of the serving certificate,
// serveWebhooks also sets d.CertificateSecret. For a Service to which no webhook refers, it adds
// "Service" to s.ignored.
func (s *objects) serveWebhooks(d *subject.Definition) {
	namespace := cmp.Or(d.Namespace, subject.LeaseNamespace)
	services := d.WebhookServices()
	for _, service := range s.services {
		if !services[types.NamespacedName{Namespace: cmp.Or(service.GetNamespace(), namespace), Name: service.GetName()}] {
			s.ignored = append(s.ignored, "Service")
			continue
		}
		d.WebhookPort = cmp.Or(d.WebhookPort, s.targetPort(service))
	}
	if s.secret != "" && slices.ContainsFunc(s.install, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Secret" && o.GetName() == s.secret }) {
		d.CertificateSecret = types.NamespacedName{Namespace: namespace, Name: s.secret}
	}
}

// targetPort returns the port on which the program serves the first port of a Service. It returns 0
// if the Service has no port, or if the program's container has no port with the name in
// targetPort.
func (s *objects) targetPort(o *unstructured.Unstructured) int {
	var service corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service); err != nil || len(service.Spec.Ports) == 0 {
		return 0
	}
	port := service.Spec.Ports[0]
	switch {
	case port.TargetPort.Type == intstr.String:
		return s.ports[port.TargetPort.StrVal]
	case port.TargetPort.IntVal != 0:
		return int(port.TargetPort.IntVal)
	}
	return int(port.Port)
}

// mutatedBy returns the rules of the mutating webhooks in the manifests.
func mutatedBy(manifests []manifest) []admissionv1.Rule {
	var rules []admissionv1.Rule
	for _, o := range manifests {
		var configuration admissionv1.MutatingWebhookConfiguration
		if o.GetKind() != "MutatingWebhookConfiguration" || decode(withoutBundles(o.Unstructured), &configuration) != nil {
			continue
		}
		for _, webhook := range configuration.Webhooks {
			for _, rule := range webhook.Rules {
				rules = append(rules, rule.Rule)
			}
		}
	}
	return rules
}

// completes reports whether a mutating webhook may add missing fields to the objects of a resource.
func completes(rules []admissionv1.Rule, group, plural string) bool {
	return slices.ContainsFunc(rules, func(rule admissionv1.Rule) bool {
		isGroup := func(found string) bool { return found == group || found == "*" }
		isResource := func(found string) bool { return found == plural || found == "*" || found == "*/*" }
		return slices.ContainsFunc(rule.APIGroups, isGroup) && slices.ContainsFunc(rule.Resources, isResource)
	})
}
