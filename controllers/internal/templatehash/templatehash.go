// Package templatehash names pod templates: it compares them, and gives each a
// short hash that is fit for object names and label values.
//
// The hash is of what the API server would be sent, so it does not change with
// the layout of Go types, nor with fields that are not set. It is a name and no
// proof: two templates may share one, and Equal is what tells.
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

// Label is the label by which ReplicaSets and pods carry the hash.
const Label = appsv1.DefaultDeploymentUniqueLabelKey

// alphabet has no vowels, nor the digits that look like some, so that no hash
// is a word.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// Length is the length of every hash, in characters.
const Length = 10

// Of returns the hash of template. Its Label, if it has one, does not count.
// collisions tells apart the hashes of one template that were taken already;
// nil and 0 are two of them, as a status tells them apart.
func Of(template *corev1.PodTemplateSpec, collisions *int32) (string, error) {
	content, err := json.Marshal(withoutLabel(template))
	if err != nil {
		return "", fmt.Errorf("encoding a pod template: %w", err)
	}
	if collisions != nil {
		// JSON ends where it ends: what follows cannot be mistaken for it.
		content = fmt.Append(content, *collisions)
	}
	sum := sha256.Sum256(content)
	return encode(binary.BigEndian.Uint64(sum[:])), nil
}

// Equal reports whether two templates mean the same, their Labels apart. Absent
// and empty are the same.
func Equal(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutLabel(a), withoutLabel(b))
}

// withoutLabel returns template without its Label. It shares all else.
func withoutLabel(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, labelled := template.Labels[Label]; !labelled {
		return template
	}
	bare := *template
	bare.Labels = maps.Clone(template.Labels)
	delete(bare.Labels, Label)
	return &bare
}

// encode writes the low digits of sum to the base of the alphabet.
func encode(sum uint64) string {
	var text [Length]byte
	for i := range text {
		text[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(text[:])
}
