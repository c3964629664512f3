// Package templatehash compares pod templates and computes a short hash of a template
// for object names and label values.
//
// The hash covers the JSON form that the API server would receive. It therefore does
// not depend on the layout of Go types, nor on fields that are not set. Two templates
// may have the same hash: use Equal to compare templates.
package templatehash

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Label is the label of ReplicaSets and pods that holds the hash.
const Label = appsv1.DefaultDeploymentUniqueLabelKey

// alphabet has no vowels, and no digits that look like vowels, so that no hash is a
// word.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Length is the length of every hash, in characters.
const Length = 10

// Of returns the hash of template without its Label. collisions is the Deployment's
// collisionCount, which gives one template a new hash after a collision. A nil
// collisionCount and 0 give different hashes, because they are different values in a
// status.
func Of(template *corev1.PodTemplateSpec, collisions *int32) (string, error) {
	content, err := json.Marshal(withoutLabel(template))
	if err != nil {
		return "", fmt.Errorf("encoding the pod template: %w", err)
	}
	if collisions != nil {
		// A JSON value is self-delimiting, so the appended number cannot be mistaken
		// for a part of it.
		content = fmt.Append(content, *collisions)
	}
	sum := sha256.Sum256(content)
	return encode(binary.BigEndian.Uint64(sum[:])), nil
}

// Equal reports whether two templates are semantically equal apart from Label. Absent
// and empty fields are equal.
func Equal(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutLabel(a), withoutLabel(b))
}

// withoutLabel returns template without Label. All other fields are shared with
// template.
func withoutLabel(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, labeled := template.Labels[Label]; !labeled {
		return template
	}
	bare := *template
	bare.Labels = maps.Clone(template.Labels)
	delete(bare.Labels, Label)
	return &bare
}

// encode returns Length digits of sum in the base of the alphabet, the lowest digit
// first.
func encode(sum uint64) string {
	var text [Length]byte
	for i := range text {
		text[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(text[:])
}
