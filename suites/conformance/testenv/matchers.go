package testenv

import (
	"fmt"

	"github.com/onsi/gomega/types"
)

// Satisfy is a matcher for answers of a type, in the spec's own words: it wants the
// answer to be what the words say.
func Satisfy[T any](is func(T) bool, what string, args ...any) types.GomegaMatcher {
	return &satisfyMatcher[T]{is, fmt.Sprintf(what, args...)}
}

type satisfyMatcher[T any] struct {
	predicate   func(T) bool
	text string
}

func (m *satisfyMatcher[T]) Match(actual any) (bool, error) {
	typed, ok := actual.(T)
	if !ok {
		return false, fmt.Errorf("expected %s: a %T, found a %T", m.text, *new(T), actual)
	}
	return m.predicate(typed), nil
}

func (m *satisfyMatcher[T]) FailureMessage(any) string        { return m.text }
func (m *satisfyMatcher[T]) NegatedFailureMessage(any) string { return "not " + m.text }
