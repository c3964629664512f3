package testenv

import (
	"fmt"

	"github.com/onsi/gomega/types"
)

// Satisfy returns a matcher that accepts the values for which predicate returns true. The values
// must have type T. The format and its arguments describe the expected value in failure
// messages.
func Satisfy[T any](predicate func(T) bool, format string, args ...any) types.GomegaMatcher {
	return &satisfyMatcher[T]{predicate, fmt.Sprintf(format, args...)}
}

// satisfyMatcher is the matcher that Satisfy returns.
type satisfyMatcher[T any] struct {
	predicate func(T) bool
	text      string
}

func (m *satisfyMatcher[T]) Match(actual any) (bool, error) {
	typed, ok := actual.(T)
	if !ok {
		return false, fmt.Errorf("found a value of type %T; expected %s, with the type %T", actual, m.text, *new(T))
	}
	return m.predicate(typed), nil
}

func (m *satisfyMatcher[T]) FailureMessage(any) string        { return m.text }
func (m *satisfyMatcher[T]) NegatedFailureMessage(any) string { return "not " + m.text }
