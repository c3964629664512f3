package templatehash

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func newTemplate(change ...func(*corev1.PodTemplateSpec)) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
	}
	for _, c := range change {
		c(template)
	}
	return template
}

func hashOf(t interface{ Fatal(...any) }, template *corev1.PodTemplateSpec, collisions *int32) string {
	hash, err := Of(template, collisions)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestHashIsStable checks that the hash of one template never changes. The names of existing
// ReplicaSets contain such hashes. If a new version computed another hash, it would create a
// second ReplicaSet.
func TestHashIsStable(t *testing.T) {
	for collisions, want := range map[*int32]string{nil: "7qqp7d5qwt", new(int32(0)): "t8xp99cf4x", new(int32(1)): "wv8dhs7zqw"} {
		if got := hashOf(t, newTemplate(), collisions); got != want {
			t.Errorf("hash %s, want %s", got, want)
		}
	}
}

func TestEqual(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.PodTemplateSpec)
		want   bool
	}{
		{"the same", func(*corev1.PodTemplateSpec) {}, true},
		{"the hash label", func(p *corev1.PodTemplateSpec) { p.Labels[Label] = "x" }, true},
		{"empty instead of absent", func(p *corev1.PodTemplateSpec) {
			p.Annotations = map[string]string{}
			p.Spec.Volumes = []corev1.Volume{}
			p.Spec.Containers[0].Args = []string{}
		}, true},
		{"a label", func(p *corev1.PodTemplateSpec) { p.Labels["app"] = "db" }, false},
		{"additional label", func(p *corev1.PodTemplateSpec) { p.Labels["x"] = "" }, false},
		{"an annotation", func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"a": "b"} }, false},
		{"the image", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "web:2" }, false},
		{"false instead of absent", func(p *corev1.PodTemplateSpec) { p.Spec.EnableServiceLinks = new(false) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := newTemplate(), newTemplate(test.change)
			if got := Equal(a, b); got != test.want {
				t.Errorf("Equal = %t, want %t", got, test.want)
			}
			if got := hashOf(t, a, nil) == hashOf(t, b, nil); got != test.want {
				t.Errorf("same hash: %t, want %t", got, test.want)
			}
		})
	}
}

func TestArgumentsAreNotModified(t *testing.T) {
	template := newTemplate(func(p *corev1.PodTemplateSpec) { p.Labels[Label] = "x" })
	hashOf(t, template, nil)
	Equal(template, newTemplate())
	if template.Labels[Label] != "x" {
		t.Error("the template was modified")
	}
}

// TestHashProperties checks that a hash is valid in label values and names. Equal templates must
// have the same hash. Different collision counts must give different hashes.
func TestHashProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := newTemplate(func(p *corev1.PodTemplateSpec) {
			p.Labels = rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels")
			p.Spec.Containers[0].Image = rapid.String().Draw(t, "image")
		})
		collisions := rapid.Int32().Draw(t, "collisions")
		hash := hashOf(t, template, &collisions)
		check(t, hash)
		if again := hashOf(t, template.DeepCopy(), &collisions); again != hash {
			t.Fatalf("different hashes %s and %s of one template", hash, again)
		}
		for what, other := range map[string]*int32{"none": nil, "the next": new(collisions + 1)} {
			if hashOf(t, template, other) == hash {
				t.Fatalf("%d collisions and %s give the same hash", collisions, what)
			}
		}
	})
}

func check(t interface{ Fatalf(string, ...any) }, hash string) {
	if len(hash) != Length || strings.Trim(hash, alphabet) != "" {
		t.Fatalf("hash %q, want %d characters of %s", hash, Length, alphabet)
	}
	if problems := validation.IsDNS1123Label("a-" + hash); len(problems) > 0 {
		t.Fatalf("hash %q is not valid in names: %v", hash, problems)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("app", "web:1", int32(0))
	f.Add("\xff", "\"}", int32(-1))
	f.Fuzz(func(t *testing.T, label, image string, collisions int32) {
		template := newTemplate(func(p *corev1.PodTemplateSpec) {
			p.Labels[label] = image
			p.Spec.Containers[0].Image = image
		})
		check(t, hashOf(t, template, &collisions))
	})
}
