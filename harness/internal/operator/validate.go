package operator

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkManifest returns an error about an object that the API server would refuse. Otherwise,
// a run would find out only after the control plane has started. A field may be null.
func checkManifest(o *unstructured.Unstructured) error {
	if gvk := o.GroupVersionKind(); scheme.Scheme.IsVersionRegistered(gvk.GroupVersion()) && !scheme.Scheme.Recognizes(gvk) {
		known := slices.Sorted(maps.Keys(scheme.Scheme.KnownTypes(gvk.GroupVersion())))
		if similar := nearest.Suggestion(gvk.Kind, known); similar != "" { // otherwise, the kind may be older or newer than this client
			return fmt.Errorf("%s %s: kind: found %.80q; expected a kind of %s%s", o.GetKind(), o.GetName(), gvk.Kind, gvk.GroupVersion(), similar)
		}
	}
	if kind := "CustomResourceDefinition"; o.GroupVersionKind().Group == "apiextensions.k8s.io" && o.GetKind() != kind && nearest.Suggestion(o.GetKind(), []string{kind}) != "" {
		return fmt.Errorf("%s %s: kind: found %.80q; expected %s", o.GetKind(), o.GetName(), o.GetKind(), kind)
	}
	if expected := builtinVersion(o.GroupVersionKind()); expected != "" {
		return fmt.Errorf("%s %s: apiVersion: found %.80q; expected %s", o.GetKind(), o.GetName(), o.GetAPIVersion(), expected)
	}
	if o.GetName() == "" { // a name may be missing or generated
		return nil
	}
	if served := servedVersions(o.GroupVersionKind()); served != nil {
		if o.GetKind() != "Deployment" && !slices.Contains(installed, o.GetKind()) {
			return nil
		}
		return fmt.Errorf("%s %s: apiVersion: found %s; expected %s, %s", o.GetKind(), o.GetName(), o.GetAPIVersion(), nearest.List(served, "or"), kube.NotServed(o.GroupVersionKind()))
	}
	if err := validate(o); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// builtinVersion returns the right apiVersion of a built-in kind with a missing group. Such a group has no dot, as in
// core/v1.
func builtinVersion(gvk schema.GroupVersionKind) string {
	if gvk.Group == "" || strings.Contains(gvk.Group, ".") || len(scheme.Scheme.PrioritizedVersionsForGroup(gvk.Group)) > 0 {
		return ""
	}
	for _, version := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if scheme.Scheme.Recognizes(version.WithKind(gvk.Kind)) {
			return version.String()
		}
	}
	return ""
}

// servedVersions returns what [kube.ServedVersions] does, but also for a version such as v2 that a built-in group lacks.
func servedVersions(gvk schema.GroupVersionKind) []string {
	served := kube.ServedVersions(gvk)
	if scheme.Scheme.IsVersionRegistered(gvk.GroupVersion()) {
		return served
	}
	for _, version := range scheme.Scheme.PrioritizedVersionsForGroup(gvk.Group) {
		if known := version.WithKind(gvk.Kind); scheme.Scheme.Recognizes(known) && kube.ServedVersions(known) == nil {
			served = append(served, version.String())
		}
	}
	return served
}

// validate returns an error about a field of an object. It accepts each object of a group or version that
// gauntlet does not know. In an object that a run does not create, it accepts unknown fields.
func validate(o *unstructured.Unstructured) error {
	if isDefinition(o) {
		return checkDefinition(o)
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil {
		return nil
	}
	unknownFields := func(*unstructured.Unstructured, any) error { return nil }
	if slices.Contains(installed, o.GetKind()) {
		unknownFields = checkFields
	}
	return firstError(
		func() error { return checkBase64(o) },
		func() error { return decode(withoutBundles(o), typed) },
		func() error { return unknownFields(o, typed) },
		func() error { return checkName(o) },
		func() error { return withUnknown(checkValues("", reflect.ValueOf(typed), typeChecks), o, typed) },
		func() error { return checkWebhooks(typed) },
	)
}

// withUnknown adds to an error about a value the first unknown field of the object, which is often its cause. The path of
// a field inside that value begins there.
func withUnknown(err error, o *unstructured.Unstructured, typed any) error {
	if unknown := checkFields(o, typed); err != nil && unknown != nil {
		at, _, _ := strings.Cut(err.Error(), ": ")
		return fmt.Errorf("%w (%s)", err, strings.Replace(unknown.Error(), "unknown field "+at+".", "unknown field ", 1))
	}
	return err
}

// incomplete returns an error about a mistake that does not change a run. The object lacks a value that the API server
// needs, or has a name or a field that the API server accepts, but that has no effect.
func incomplete(o *unstructured.Unstructured) error {
	if isDefinition(o) {
		if err := ignored(o, &definition{}); err != nil {
			return err
		}
		return misspelledRequired(o)
	}
	if served := servedVersions(o.GroupVersionKind()); len(served) > 0 {
		return fmt.Errorf("apiVersion: found %s; expected %s; a run does not create the object, but API servers do not serve the kind in this version", o.GetAPIVersion(), nearest.List(served, "or"))
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil || decode(withoutBundles(o), typed) != nil {
		return nil
	}
	if err := checkValues("", reflect.ValueOf(typed), incompleteChecks); err != nil {
		return fmt.Errorf("%w; a run does not need this value, but API servers refuse the object without it", withUnknown(err, o, typed))
	}
	if err := checkValues("", reflect.ValueOf(typed), permissionChecks); err != nil {
		return fmt.Errorf("%w%s", err, permitsNothing)
	}
	return ignored(o, typed)
}

// ignored returns an error about an unknown field of an object.
func ignored(o *unstructured.Unstructured, typed any) error {
	if err := checkFields(o, typed); err != nil {
		return fmt.Errorf("%w; API servers of the version of this program ignore the field", err)
	}
	return nil
}

// refused returns an error about a field of an object of Kubernetes that the API server would refuse.
func refused(o *unstructured.Unstructured) error {
	if err := validate(o); err != nil {
		return err
	}
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if err != nil || decode(withoutBundles(o), typed) != nil {
		return nil
	}
	return withUnknown(checkValues("", reflect.ValueOf(typed), incompleteChecks), o, typed)
}

// checkWebhooks returns an error about the webhooks of a webhook configuration.
func checkWebhooks(typed any) error {
	var webhooks []admissionv1.ValidatingWebhook
	switch typed := typed.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		webhooks = typed.Webhooks
	case *admissionv1.MutatingWebhookConfiguration:
		for _, w := range typed.Webhooks {
			webhooks = append(webhooks, admissionv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, SideEffects: w.SideEffects, AdmissionReviewVersions: w.AdmissionReviewVersions,
				Rules: w.Rules, FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds, MatchConditions: w.MatchConditions,
			})
		}
	}
	names := map[string]bool{}
	for i, w := range webhooks {
		if err := checkWebhook(i, w); err != nil {
			return err
		}
		if names[w.Name] {
			return fmt.Errorf("webhooks[%d].name: found %q twice; expected each name once", i, w.Name)
		}
		names[w.Name] = true
	}
	return nil
}

// withoutBundles returns an object whose webhooks have no caBundle, and leaves o as it is. A run may
// replace the caBundle, so that it need not be valid.
func withoutBundles(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o.Object["webhooks"] == nil {
		return o
	}
	o = o.DeepCopy()
	webhooks, _ := o.Object["webhooks"].([]any)
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		config, _ := fields["clientConfig"].(map[string]any)
		delete(config, "caBundle")
	}
	return o
}

// decode stores an object of a manifest in a Go value. As the API server does, it ignores unknown fields,
// and distinguishes upper and lower case. The error names the field that has a value of a wrong type.
func decode(o *unstructured.Unstructured, into any) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	if err := utiljson.Unmarshal(text, into); err != nil {
		if path, reason := inputfile.WrongValue(text, into); path != "" {
			return fmt.Errorf("%s: %s", path, reason)
		}
		return errors.New(inputfile.JSONReason(err))
	}
	return nil
}

// checkFields returns an error if the Go type of an object lacks one of its fields. The API
// server would ignore such a field, and kubectl refuses it.
func checkFields(o *unstructured.Unstructured, typed any) error {
	typed = reflect.New(reflect.TypeOf(typed).Elem()).Interface()
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(withoutBundles(o).Object, typed, true)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil // decode has found the wrong types
	}
	var path string
	if _, err := fmt.Sscanf(strict.Errors()[0].Error(), "unknown field %q", &path); err != nil {
		return strict.Errors()[0]
	}
	return fmt.Errorf("unknown field %s%s", path, inputfile.SimilarField(typed, path))
}

// checkSimilarFields returns an error as [checkFields] does, but only for a field with a similar name. Any other
// field may be newer than this client.
func checkSimilarFields(o *unstructured.Unstructured, typed any) error {
	if err := checkFields(o, typed); err != nil && strings.Contains(err.Error(), "did you mean") {
		return err
	}
	return nil
}

// checkBase64 returns an error if a value of a Secret or ConfigMap is not base64. The errors of package
// json about base64 do not name the field.
func checkBase64(o *unstructured.Unstructured) error {
	field := map[string]string{"Secret": "data", "ConfigMap": "binaryData"}[o.GetKind()]
	data, _ := o.Object[field].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("%s.%s: found a text that is not base64; expected base64", field, key)
		}
	}
	return nil
}

// checkConfigMap returns an error about a key of a ConfigMap.
func checkConfigMap(_ string, c *corev1.ConfigMap) error {
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		if _, twice := c.Data[key]; twice {
			return fmt.Errorf("binaryData.%s: found the key %q in data, too; expected each key once", key, key)
		}
	}
	return firstError(
		func() error { return checkKeys("data", c.Data) },
		func() error { return checkKeys("binaryData", c.BinaryData) },
		func() error { return checkSize("data", sizeOf(c.Data)+sizeOf(c.BinaryData)) },
	)
}

// checkKeys returns an error about a key of a ConfigMap or Secret.
func checkKeys[T any](at string, data map[string]T) error {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if len(validation.IsConfigMapKey(key)) > 0 {
			return wrong(at, key, "a key of at most 253 letters, digits, -, _ and ., without /")
		}
	}
	return nil
}

// sizeOf returns the number of bytes of all values in the data of a ConfigMap or Secret.
func sizeOf[T ~string | ~[]byte](data map[string]T) int {
	size := 0
	for _, value := range data {
		size += len(value)
	}
	return size
}

// checkSize returns an error if the data of a ConfigMap or Secret has too many bytes.
func checkSize(at string, size int) error {
	if size > corev1.MaxSecretSize {
		return fmt.Errorf("%s: found %d bytes; expected at most %d bytes, which is 1 MiB", at, size, corev1.MaxSecretSize)
	}
	return nil
}

// typeKeys has the keys that a Secret of a type must have.
var typeKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

// checkSecret returns an error about a key of a Secret.
func checkSecret(_ string, s *corev1.Secret) error {
	for _, key := range typeKeys[s.Type] {
		_, encoded := s.Data[key]
		if _, plain := s.StringData[key]; !encoded && !plain {
			return wrong("data[\""+key+"\"]", nil, "this key in a Secret of the type "+string(s.Type))
		}
	}
	return firstError(
		func() error { return checkKeys("data", s.Data) },
		func() error { return checkKeys("stringData", s.StringData) },
		func() error {
			data := maps.Clone(s.Data)
			maps.DeleteFunc(data, func(key string, _ []byte) bool { _, replaced := s.StringData[key]; return replaced })
			return checkSize("data", sizeOf(data)+sizeOf(s.StringData))
		},
	)
}

// dnsLabel says in errors what the name of a namespace must be.
const dnsLabel = "a DNS label: at most 63 of a-z, 0-9 and -, with no - at either end"

// dnsSubdomain says in errors what most names must be.
const dnsSubdomain = "a DNS subdomain: at most 253 of a-z, 0-9, - and ., with a letter or digit at either end of each part"

// checkName returns an error if the API server refuses the name or the namespace of an object.
func checkName(o *unstructured.Unstructured) error {
	name := o.GetName()
	invalid, expected := validation.IsDNS1123Subdomain(name), dnsSubdomain
	switch kind := o.GetKind(); {
	case slices.Contains([]string{"Namespace", "Service", "StatefulSet"}, kind):
		invalid, expected = validation.IsDNS1123Label(name), dnsLabel
	case strings.Contains(kind, "Role"):
		invalid, expected = content.IsPathSegmentName(name), "a name other than . and .., without / and %"
	}
	if namespace := o.GetNamespace(); namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("metadata.namespace: found %.80q; expected %s", namespace, dnsLabel)
	}
	if err := checkLabels("metadata.labels", o.GetLabels()); err != nil {
		return err
	}
	if strings.Contains(name, "{{") {
		return wrong("metadata.name", name, "a name without an action of a template; render the template first, for example with \"helm template\"")
	}
	if strings.Contains(name, "$") {
		return wrong("metadata.name", name, "a name without variables: replace them first, for example with envsubst")
	}
	if len(invalid) > 0 {
		return fmt.Errorf("metadata.name: found %.80q; expected %s", name, expected)
	}
	return nil
}

// checkWebhook returns an error if a webhook lacks a field that has no default, or has a wrong value. The webhook may be
// a mutating one, too.
func checkWebhook(i int, w admissionv1.ValidatingWebhook) error {
	client, effects, versions := w.ClientConfig, w.SideEffects, w.AdmissionReviewVersions
	known := []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}
	switch {
	case client.Service == nil && client.URL == nil:
		return fmt.Errorf("webhooks[%d].clientConfig: found neither service nor url; expected the service of the webhook", i)
	case client.Service != nil && client.URL != nil:
		return fmt.Errorf("webhooks[%d].clientConfig: found service and url; expected one of them", i)
	case client.URL != nil && !strings.HasPrefix(*client.URL, "https://"):
		return fmt.Errorf("webhooks[%d].clientConfig.url: found %.200q; expected a URL that begins with https://", i, *client.URL)
	case client.Service != nil && (client.Service.Name == "" || client.Service.Namespace == ""):
		return fmt.Errorf("webhooks[%d].clientConfig.service: found name %q and namespace %q; expected both", i, client.Service.Name, client.Service.Namespace)
	case effects == nil:
		return fmt.Errorf("webhooks[%d].sideEffects: found nothing; expected %s", i, nearest.List(known, "or"))
	case !slices.Contains(known, *effects):
		return fmt.Errorf("webhooks[%d].sideEffects: found %.60q; expected %s", i, string(*effects), nearest.List(known, "or"))
	case len(versions) == 0:
		return fmt.Errorf("webhooks[%d].admissionReviewVersions: found nothing; expected a list with v1", i)
	case !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1"):
		return fmt.Errorf("webhooks[%d].admissionReviewVersions: found %.60q; expected a list with v1", i, versions)
	case len(validation.IsFullyQualifiedName(field.NewPath("name"), w.Name)) > 0:
		return fmt.Errorf("webhooks[%d].name: found %.80q; expected a name with at least three parts, such as default.notebooks.example.com", i, w.Name)
	case client.Service != nil && client.Service.Path != nil && !strings.HasPrefix(*client.Service.Path, "/"):
		return fmt.Errorf("webhooks[%d].clientConfig.service.path: found %.80q; expected a path that begins with /", i, *client.Service.Path)
	case w.TimeoutSeconds != nil && (*w.TimeoutSeconds < 1 || *w.TimeoutSeconds > 30):
		return wrong(fmt.Sprintf("webhooks[%d].timeoutSeconds", i), *w.TimeoutSeconds, "1 to 30")
	case w.FailurePolicy != nil && *w.FailurePolicy != admissionv1.Fail && *w.FailurePolicy != admissionv1.Ignore:
		return fmt.Errorf("webhooks[%d].failurePolicy: found %.60q; expected Fail or Ignore", i, string(*w.FailurePolicy))
	}
	operations := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, admissionv1.OperationAll}
	for j, rule := range w.Rules {
		for _, operation := range rule.Operations {
			if !slices.Contains(operations, operation) {
				return fmt.Errorf("webhooks[%d].rules[%d].operations: found %.60q; expected %s", i, j, string(operation), nearest.List(operations, "or"))
			}
		}
	}
	return checkConditions(fmt.Sprintf("webhooks[%d]", i), w.MatchConditions, false)
}
