// Package templatehash compares pod templates. It also computes a short hash of a template for
// object names and label values, such as "6b9fd5c8xz".
//
// The hash is computed from the JSON of the template. Therefore, the hash stays the same if a new
// Kubernetes version adds a field that is not set. Different templates may have the same hash, so
// use Equal to compare templates.
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

// Label is the label pod-template-hash of ReplicaSets and pods. The value of the label is the
// result of the function Of.
const Label = appsv1.DefaultDeploymentUniqueLabelKey

// alphabet contains the characters of a pod template's hash. It has no vowels and no 0, 1 or 3,
// which look like letters. Therefore no hash is a word.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Length is the number of characters of every hash that the function Of returns.
const Length = 10

// Of returns the hash of a pod template. It ignores the template's label pod-template-hash.
//
// The argument collisions is the collisionCount in the Deployment's status. A different count
// gives the same template a different hash. Nil and 0 also give different hashes.
func Of(template *corev1.PodTemplateSpec, collisions *int32) (string, error) {
	content, err := json.Marshal(withoutLabel(template))
	if err != nil {
		return "", fmt.Errorf("encoding the pod template: %w", err)
	}
	if collisions != nil {
		// The end of a JSON value is unambiguous. The number after the JSON therefore cannot be
		// confused with a part of the template.
		content = fmt.Append(content, *collisions)
	}
	sum := sha256.Sum256(content)
	return encode(binary.BigEndian.Uint64(sum[:])), nil
}

// Equal reports whether two templates are semantically equal. It ignores the label
// pod-template-hash, and treats a missing field like an empty field.
func Equal(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutLabel(a), withoutLabel(b))
}

// withoutLabel returns a template without the label pod-template-hash. The result shares all other
// fields with the argument. If the label is missing, the result is the argument itself.
func withoutLabel(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, labeled := template.Labels[Label]; !labeled {
		return template
	}
	bare := *template
	bare.Labels = maps.Clone(template.Labels)
	delete(bare.Labels, Label)
	return &bare
}

// encode returns a number as a text of Length characters, which are the digits of the number. The
// characters of the constant alphabet stand for the digits. The lowest digit comes first.
func encode(sum uint64) string {
	var text [Length]byte
	for i := range text {
		text[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(text[:])
}
