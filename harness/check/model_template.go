package check

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/labels"
)

// hashLabel tells the ReplicaSets of one Deployment apart; it is no part of
// what the Deployment's own template says.
const hashLabel = "pod-template-hash"

// template is a pod template. It never changes.
type template struct {
	labels labels.Selector // matches pods that carry every label of the template
	// text is the template without its hash label, written in one way.
	text string
	// hash is its hash label, "" if it has none.
	hash string
	// pods is what pods made from it have.
	pods podContent
}

// podContent is what a pod has of its template, as far as a history keeps it.
type podContent struct {
	labels, annotations map[string]string
	finalizers          []string
	containers          []container
}

// container is a container of a pod, or of a template.
type container struct{ Name, Image string }

// same reports whether two templates are equal, the hash label ignored.
func (t *template) same(other *template) bool { return t == other || t.text == other.text }

func decodeTemplate(raw json.RawMessage) (*template, error) {
	var typed struct {
		Metadata struct {
			Labels      labels.Set
			Annotations map[string]string
			Finalizers  []string
		}
		Spec struct{ Containers []container }
	}
	if err := unmarshalSome(raw, &typed); err != nil {
		return nil, err
	}
	var free map[string]any
	if err := unmarshalSome(raw, &free); err != nil {
		return nil, err
	}
	if metadata, ok := free["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp") // null or absent: it says nothing
		if set, ok := metadata["labels"].(map[string]any); ok {
			delete(set, hashLabel)
			if len(set) == 0 {
				delete(metadata, "labels")
			}
		}
		if len(metadata) == 0 {
			delete(free, "metadata")
		}
	}
	text, err := json.Marshal(free)
	if err != nil {
		return nil, err
	}
	return &template{
		labels: typed.Metadata.Labels.AsSelectorPreValidated(),
		text:   string(text),
		hash:   typed.Metadata.Labels[hashLabel],
		pods: podContent{
			labels:      typed.Metadata.Labels,
			annotations: typed.Metadata.Annotations,
			finalizers:  typed.Metadata.Finalizers,
			containers:  typed.Spec.Containers,
		},
	}, nil
}
