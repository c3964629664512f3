package testenv

import (
	"fmt"

	"github.com/onsi/gomega/types"
)

// Be is a matcher for answers of a type, in the spec's own words: it wants the
// answer to be what the words say.
func Be[T any](is func(T) bool, what string, args ...any) types.GomegaMatcher {
	return &be[T]{is, fmt.Sprintf(what, args...)}
}

type be[T any] struct {
	is   func(T) bool
	what string
}

func (m *be[T]) Match(actual any) (bool, error) {
	typed, ok := actual.(T)
	if !ok {
		return false, fmt.Errorf("expected %s: a %T, found a %T", m.what, *new(T), actual)
	}
	return m.is(typed), nil
}

func (m *be[T]) FailureMessage(any) string        { return m.what }
func (m *be[T]) NegatedFailureMessage(any) string { return "not " + m.what }
