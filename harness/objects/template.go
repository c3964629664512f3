package objects

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/labels"
)

// Template contains the decoded fields of the pod template of a ReplicaSet,
// ReplicationController or Deployment. It is immutable.
type Template struct {
	Labels labels.Selector // matches pods that have every label of the template
	// Text is the template as JSON with sorted keys, without the label pod-template-hash and
	// creationTimestamp. Only a ReplicaSet's template has this label. Without the label, Text can be
	// compared with the Deployment's template.
	Text string
	// Hash is the value of the label pod-template-hash, or "" if the template does not have this
	// label.
	Hash string
	// Content has the labels, annotations, finalizers and spec that pods created from the template
	// must have.
	Content PodContent
}

// PodContent contains the fields of a pod that a controller copies from its pod template.
type PodContent struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	Spec                map[string]string // the fields of the spec, as [Fields] returns them, with paths such as containers/main/image
}

// Same reports whether two templates are equal. It ignores the label pod-template-hash.
func (t *Template) Same(other *Template) bool { return t == other || t.Text == other.Text }

// decodeTemplate returns a pod template in decoded form. The argument raw is its JSON. The field
// Text of the result lacks the label pod-template-hash and creationTimestamp.
func decodeTemplate(raw json.RawMessage) (*Template, error) {
	var typed struct {
		Metadata struct {
			Labels      labels.Set
			Annotations map[string]string
			Finalizers  []string
		}
		Spec json.RawMessage
	}
	if err := Unmarshal(raw, &typed); err != nil {
		return nil, err
	}
	var free map[string]any
	if err := Unmarshal(raw, &free); err != nil {
		return nil, err
	}
	if metadata, ok := free["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp") // an encoder may write creationTimestamp: null, which means the same as no field
		if set, ok := metadata["labels"].(map[string]any); ok {
			delete(set, PodTemplateHashLabel)
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
	return &Template{
		Labels: typed.Metadata.Labels.AsSelectorPreValidated(),
		Text:   string(text),
		Hash:   typed.Metadata.Labels[PodTemplateHashLabel],
		Content: PodContent{
			Labels:      typed.Metadata.Labels,
			Annotations: typed.Metadata.Annotations,
			Finalizers:  typed.Metadata.Finalizers,
			Spec:        PodSpecFields(typed.Spec),
		},
	}, nil
}
