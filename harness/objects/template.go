package objects

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/labels"
)

// Template contains the decoded fields of a pod template. It is immutable.
type Template struct {
	Labels labels.Selector // matches pods that have every label of the template
	// Text is the template as JSON with sorted keys. It does not contain
	// PodTemplateHashLabel, so that templates of a Deployment and its ReplicaSets can be
	// compared.
	Text string
	// Hash is the value of PodTemplateHashLabel, or "" if the template does not have this
	// label.
	Hash string
	// Content is the content that pods created from the template must have.
	Content PodContent
}

// PodContent contains those fields of a pod that come from its pod template. It has only fields
// that histories record.
type PodContent struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	Containers          []Container
}

// Container is a container of a pod or of a template.
type Container struct{ Name, Image string }

// Same reports whether two templates are equal, except for PodTemplateHashLabel.
func (t *Template) Same(other *Template) bool { return t == other || t.Text == other.Text }

// decodeTemplate decodes a pod template. It omits PodTemplateHashLabel and
// creationTimestamp from Text.
func decodeTemplate(raw json.RawMessage) (*Template, error) {
	var typed struct {
		Metadata struct {
			Labels      labels.Set
			Annotations map[string]string
			Finalizers  []string
		}
		Spec struct{ Containers []Container }
	}
	if err := Unmarshal(raw, &typed); err != nil {
		return nil, err
	}
	var free map[string]any
	if err := Unmarshal(raw, &free); err != nil {
		return nil, err
	}
	if metadata, ok := free["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp") // null or absent: both mean the same
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
			Containers:  typed.Spec.Containers,
		},
	}, nil
}
