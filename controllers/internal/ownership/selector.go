package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SelectorOf reads an owner's selector. An empty one, like an absent one,
// matches nothing: what it says, everything, is never what was meant.
func SelectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("reading a selector: %w", err)
	}
	return read, nil
}
