package operator

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkReferences returns an error about a reference to another object of the manifests. API servers accept the
// reference, but it leads nowhere.
func (s *objects) checkReferences(o *unstructured.Unstructured, manifests []manifest) error {
	switch kind := o.GetKind(); {
	case kind == "Deployment":
		return checkAccount(o, manifests)
	case strings.HasSuffix(kind, "RoleBinding"):
		return checkBoundAccounts(o, manifests)
	case strings.HasSuffix(kind, "WebhookConfiguration"):
		return s.checkWebhookServices(o)
	}
	return nil
}

// namesOf returns the names of all objects of a kind, and an object with a name. The object is nil if there is none.
func namesOf(kind, name string, manifests []manifest) (names []string, named *unstructured.Unstructured) {
	for _, o := range manifests {
		if o.GetKind() == kind {
			names = append(names, o.GetName())
			if o.GetName() == name {
				named = o.Unstructured
			}
		}
	}
	return names, named
}

// checkAccount returns an error if a Deployment names a ServiceAccount that the manifests lack. They have other ones.
func checkAccount(o *unstructured.Unstructured, manifests []manifest) error {
	var d appsv1.Deployment
	if decode(o, &d) != nil {
		return nil
	}
	name := d.Spec.Template.Spec.ServiceAccountName
	names, named := namesOf("ServiceAccount", name, manifests)
	if named != nil || name == "" || name == "default" || len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w; API servers accept this value, but create no pods without the ServiceAccount",
		wrong("spec.template.spec.serviceAccountName", name, "a ServiceAccount of subject.manifests"+nearest.Suggestion(name, names)))
}

// checkBoundAccounts returns an error about a ServiceAccount of a role binding with a misspelled name or another
// namespace.
func checkBoundAccounts(o *unstructured.Unstructured, manifests []manifest) error {
	var b rbacv1.RoleBinding // a ClusterRoleBinding has the same subjects
	if decode(o, &b) != nil {
		return nil
	}
	for i, s := range b.Subjects {
		names, named := namesOf("ServiceAccount", s.Name, manifests)
		similar := nearest.Suggestion(s.Name, names)
		var err error
		switch {
		case s.Kind != rbacv1.ServiceAccountKind:
		case named == nil && similar != "":
			err = wrong(fmt.Sprintf("subjects[%d].name", i), s.Name, "a ServiceAccount of subject.manifests"+similar)
		case named != nil && s.Namespace != "" && named.GetNamespace() != "" && named.GetNamespace() != s.Namespace && !hasAccount(s, manifests) && !slices.ContainsFunc(b.Subjects, func(other rbacv1.Subject) bool {
			return other.Name == s.Name && other.Namespace == named.GetNamespace()
		}):
			err = wrong(fmt.Sprintf("subjects[%d].namespace", i), s.Namespace, named.GetNamespace()+", the namespace of the ServiceAccount "+s.Name)
		}
		if err != nil {
			return fmt.Errorf("%w; API servers accept this value, but the ServiceAccount does not get the role", err)
		}
	}
	return nil
}

// hasAccount reports whether the manifests have the ServiceAccount of a role binding in its namespace.
func hasAccount(s rbacv1.Subject, manifests []manifest) bool {
	return slices.ContainsFunc(manifests, func(o manifest) bool {
		return o.GetKind() == rbacv1.ServiceAccountKind && o.GetName() == s.Name && o.GetNamespace() == s.Namespace
	})
}

// checkWebhookServices returns an error about the Service of a webhook. Its name is misspelled, its namespace is
// another one, or it has no such port.
func (s *objects) checkWebhookServices(o *unstructured.Unstructured) error {
	var configuration admissionv1.ValidatingWebhookConfiguration // a MutatingWebhookConfiguration has the same addresses
	if decode(withoutBundles(o), &configuration) != nil {
		return nil
	}
	for i, webhook := range configuration.Webhooks {
		if webhook.ClientConfig.Service == nil {
			continue
		}
		if err := s.checkWebhookService(fmt.Sprintf("webhooks[%d].clientConfig.service", i), webhook.ClientConfig.Service); err != nil {
			return fmt.Errorf("%w; API servers accept this value, but do not reach the webhook", err)
		}
	}
	return nil
}

// checkWebhookService returns an error about a reference to a Service. The argument at is its path.
func (s *objects) checkWebhookService(at string, reference *admissionv1.ServiceReference) error {
	var names []string
	var service corev1.Service
	for _, o := range s.services {
		names = append(names, o.GetName())
		if o.GetName() == reference.Name && (service.Name == "" || o.GetNamespace() == reference.Namespace) {
			_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service) // readManifests has checked it
		}
	}
	port := int32(443)
	if reference.Port != nil {
		port = *reference.Port
	}
	var ports []string
	for _, p := range service.Spec.Ports {
		ports = append(ports, fmt.Sprint(p.Port))
	}
	switch similar := nearest.Suggestion(reference.Name, names); {
	case service.Name == "" && similar != "":
		return wrong(at+".name", reference.Name, "a Service of subject.manifests"+similar)
	case service.Namespace != "" && service.Namespace != reference.Namespace:
		return wrong(at+".namespace", reference.Namespace, service.Namespace+", the namespace of the Service "+service.Name)
	case len(ports) > 0 && !slices.Contains(ports, fmt.Sprint(port)):
		return wrong(at+".port", port, fmt.Sprintf("a port of the Service %s: %s", service.Name, nearest.List(ports, "or")))
	}
	return nil
}
