// Package templatehash compares pod templates. It also computes a short hash of a template for
// object names and label values.
//
// The hash is computed from the JSON of the template. Therefore, new Go fields that are not
// set do not change it. Different templates may have the same hash, so use Equal to compare
// templates.
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

// Label is the label whose value is the hash, on ReplicaSets and pods.
const Label = appsv1.DefaultDeploymentUniqueLabelKey

// alphabet contains the characters of a hash. It lacks the vowels, and the digits 0, 1 and 3,
// which look like letters, so that no hash is a word.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Length is the number of characters of every hash.
const Length = 10

// Of returns the hash of a template, ignoring Label. The argument collisions is the
// collisionCount of the Deployment's status: a different count gives the same template a
// different hash. Nil and 0 give different hashes too.
func Of(template *corev1.PodTemplateSpec, collisions *int32) (string, error) {
	content, err := json.Marshal(withoutLabel(template))
	if err != nil {
		return "", fmt.Errorf("encoding the pod template: %w", err)
	}
	if collisions != nil {
		// The end of a JSON value is unambiguous, so the number after it cannot be read as a
		// part of it.
		content = fmt.Append(content, *collisions)
	}
	sum := sha256.Sum256(content)
	return encode(binary.BigEndian.Uint64(sum[:])), nil
}

// Equal reports whether two templates are semantically equal, ignoring Label. A missing field
// and an empty field are equal.
func Equal(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutLabel(a), withoutLabel(b))
}

// withoutLabel returns a template without Label. The result shares all other fields with the
// argument.
func withoutLabel(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, labeled := template.Labels[Label]; !labeled {
		return template
	}
	bare := *template
	bare.Labels = maps.Clone(template.Labels)
	delete(bare.Labels, Label)
	return &bare
}

// encode writes sum as a number whose digits are the characters of alphabet. It returns the
// Length lowest digits, the lowest one first.
func encode(sum uint64) string {
	var text [Length]byte
	for i := range text {
		text[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(text[:])
}
