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
		{`{"data": {"port": 8080}}`, &corev1.ConfigMap{}, "data.port", "found 8080; expected a text in quotes"},
		{`{"data": {"a/b.c": {"a": 1}}}`, &corev1.ConfigMap{}, `data["a/b.c"]`, "found an object; expected a text"},
		{`{"spec": {"template": {"spec": {"containers": [{"args": ["a", 1]}]}}}}`, &appsv1.Deployment{}, "spec.template.spec.containers[0].args[1]", "found 1; expected a text in quotes"},
		{`{"spec": {"template": {"spec": {"containers": [{}, {"env": [{"value": true}]}]}}}}`, &appsv1.Deployment{}, "spec.template.spec.containers[1].env[0].value", "found true; expected a text in quotes"},
		{`{"spec": {"replicas": 1.5}}`, &appsv1.Deployment{}, "spec.replicas", "found 1.5; expected a whole number"},
		{`{"spec": {"resources": {"requests": {"storage": "1GB"}}}}`, &corev1.PersistentVolumeClaim{}, "spec.resources.requests.storage", `found "1GB"; expected a quantity such as 500m, 2 or 1Gi`},
		{`{"spec": {"replicas": [1]}}`, &appsv1.Deployment{}, "spec.replicas", "found a list; expected a whole number"},
		{`{"spec": {"replicas": 1}}`, &appsv1.Deployment{}, "", ""},
	} {
		path, reason := inputfile.WrongValue([]byte(test.text), test.of)
		if path != test.path || reason != test.reason {
			t.Errorf("WrongValue(%s) = %q, %q; want %q, %q", test.text, path, reason, test.path, test.reason)
		}
	}
}
