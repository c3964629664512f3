package check

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/labels"
)

// hashLabel distinguishes the ReplicaSets of one Deployment. The Deployment's own
// template does not have it.
const hashLabel = "pod-template-hash"

// template is a pod template. It is immutable.
type template struct {
	labels labels.Selector // matches pods that carry every label of the template
	// text is the template without hashLabel, as canonical JSON.
	text string
	// hash is the value of hashLabel, "" if there is none.
	hash string
	// pods is the content that pods created from the template must have.
	pods podContent
}

// podContent is the part of a pod that comes from its template, as far as histories
// record it.
type podContent struct {
	labels, annotations map[string]string
	finalizers          []string
	containers          []container
}

// container is a container of a pod or of a template.
type container struct{ Name, Image string }

// same reports whether two templates are equal, except for hashLabel.
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
		delete(metadata, "creationTimestamp") // null or absent: both mean the same
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
