package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SelectorOf converts the label selector of an owner to a labels.Selector. An empty or missing
// selector matches nothing. In the API, an empty selector matches everything, but no user wants
// a controller to select all objects.
func SelectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("parsing the label selector: %w", err)
	}
	if len(selector.MatchExpressions) == 0 {
		return labels.ValidatedSetSelector(selector.MatchLabels), nil // faster than the general form
	}
	return read, nil
}
