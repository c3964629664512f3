package scenario

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Expression is a requirement that a selector has in addition to its labels.
type Expression struct {
	// Key is the key of a label, such as tier.
	Key string `yaml:"key" required:"true"`
	// Operator says how the label must be. With In and NotIn, the field values is required.
	Operator SelectorOperator `yaml:"operator" required:"true"`
	// Values is the list of values for In and NotIn. The other operators have no values.
	Values []string `yaml:"values,omitempty"`
}

// SelectorOperator is the operator of an [Expression].
type SelectorOperator string

// These are the values of [SelectorOperator], which says how a label must be.
const (
	In           SelectorOperator = "In"           // The label has one of the values.
	NotIn        SelectorOperator = "NotIn"        // The label has none of the values, or does not exist.
	Exists       SelectorOperator = "Exists"       // The label exists.
	DoesNotExist SelectorOperator = "DoesNotExist" // The label does not exist.
)

// LabelSelector returns the selector of a ReplicaSet or Deployment: its labels and its expressions.
func (c *Create) LabelSelector() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: c.Selector}
	for _, e := range c.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return selector
}

// expressions reports an error for each invalid expression of a selector. It also reports an expression
// that the labels of the pods do not meet.
func (v *validator) expressions(path string, c *Create) {
	for i, e := range c.MatchExpressions {
		path := fmt.Sprintf("%s.matchExpressions[%d]", path, i)
		v.bounded(path, &c.MatchExpressions[i])
		oneOf(v, path+".operator", e.Operator, In, NotIn, Exists, DoesNotExist)
		listed := e.Operator == In || e.Operator == NotIn
		v.check(listed == (len(e.Values) > 0) || v.invalid(path+".operator"), path+".values", "found %d values beside %s; expected at least one for In and NotIn, and none for the other operators", len(e.Values), e.Operator)
		v.labelKey(path+".key", e.Key)
		for i, value := range e.Values {
			v.labelValue(fmt.Sprintf("%s.values[%d]", path, i), value)
		}
		if v.invalid(path) {
			continue
		}
		one := Create{MatchExpressions: []Expression{e}}
		selector, err := metav1.LabelSelectorAsSelector(one.LabelSelector())
		v.check(err == nil && selector.Matches(labels.Set(c.Labels)), path, "found %v, which the labels do not meet; expected a selector that matches the labels", selector)
	}
}
