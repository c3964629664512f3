package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SelectorOf converts an owner's label selector. An empty or absent selector matches
// nothing here, although the API defines an empty selector to match everything. The
// reason is that users never want a controller to select every object.
func SelectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return labels.Nothing(), nil
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("parsing the label selector: %w", err)
	}
	return read, nil
}
