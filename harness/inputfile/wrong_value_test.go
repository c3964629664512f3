package inputfile_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

func TestWrongValue(t *testing.T) {
	for _, test := range []struct {
		text         string
		of           any
		path, reason string
	}{
		{`{"data": {"port": 8080}}`, &corev1.ConfigMap{}, "data.port", "found number; expected a text in quotes"},
		{`{"data": {"a/b.c": {"a": 1}}}`, &corev1.ConfigMap{}, `data["a/b.c"]`, "found object; expected a text"},
		{`{"spec": {"template": {"spec": {"containers": [{"args": ["a", 1]}]}}}}`, &appsv1.Deployment{}, "spec.template.spec.containers[0].args[1]", "found number; expected a text in quotes"},
		{`{"spec": {"template": {"spec": {"containers": [{}, {"env": [{"value": true}]}]}}}}`, &appsv1.Deployment{}, "spec.template.spec.containers[1].env[0].value", "found boolean; expected a text in quotes"},
		{`{"spec": {"replicas": 1.5}}`, &appsv1.Deployment{}, "spec.replicas", "found number 1.5; expected a whole number"},
		{`{"spec": {"replicas": 1}}`, &appsv1.Deployment{}, "", ""},
	} {
		path, reason := inputfile.WrongValue([]byte(test.text), test.of)
		if path != test.path || reason != test.reason {
			t.Errorf("WrongValue(%s) = %q, %q; want %q, %q", test.text, path, reason, test.path, test.reason)
		}
	}
}
