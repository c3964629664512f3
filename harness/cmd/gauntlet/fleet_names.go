package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// checkNames returns an error if a flag has the name of an object that Kubernetes refuses. With
// such a name, the Job could be created, but its pods could not.
func (f *fleetPodFlags) checkNames() error {
	for _, flag := range []struct{ name, value string }{
		{"claim", f.pods.Claim},
		{"store-secret", f.pods.Secret},
		{"service-account", f.pods.ServiceAccount},
		{"priority-class", f.pods.PriorityClass},
		{"queue", f.pods.Queue},
	} {
		if flag.value != "" && len(validation.IsDNS1123Subdomain(flag.value)) > 0 {
			return fmt.Errorf("--%s: found %q; expected a name of lower-case letters, digits, \"-\" and \".\"", flag.name, flag.value)
		}
	}
	for key, value := range f.pods.NodeSelector {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Errorf("--node-selector: found %q; expected KEY=VALUE with the key and the value of a label", key+"="+value)
		}
	}
	if err := subject.CheckImage(f.pods.Image); err != nil {
		return fmt.Errorf("--image: found %q; expected the reference of an image, such as registry.example/gauntlet-fleet:v1", f.pods.Image)
	}
	return nil
}

// checkNamespace returns an error if the value of --namespace is no name of a namespace. An empty
// value means that the flag is not set.
func checkNamespace(namespace string) error {
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("--namespace: found %q; expected a name of lower-case letters, digits and \"-\"", namespace)
	}
	return nil
}

// checkTolerations returns an error if the file of --tolerations contains no toleration, or one that
// Kubernetes refuses.
func checkTolerations(path string, all []corev1.Toleration) error {
	if len(all) == 0 {
		return fmt.Errorf("--tolerations: %s: found no toleration; expected a list with at least one", path)
	}
	operators := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for i, t := range all {
		field, found, expected := "", "", ""
		switch {
		case t.Operator != "" && !slices.Contains(operators, t.Operator):
			field, found, expected = "operator", string(t.Operator), nearest.List(operators, "or")
		case t.Effect != "" && !slices.Contains(effects, t.Effect):
			field, found, expected = "effect", string(t.Effect), nearest.List(effects, "or")
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			field, expected = "key", "a key, or the operator Exists"
		case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
			field, found, expected = "key", t.Key, "the key of a taint"
		case t.Operator == corev1.TolerationOpExists && strings.TrimSpace(t.Value) != "":
			field, found, expected = "value", t.Value, "no value with the operator Exists"
		case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
			field, found, expected = "tolerationSeconds", strconv.FormatInt(*t.TolerationSeconds, 10), "no seconds, or the effect NoExecute"
		default:
			continue
		}
		return fmt.Errorf("--tolerations: %s: [%d].%s: found %q; expected %s", path, i, field, found, expected)
	}
	return nil
}
