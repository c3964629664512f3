package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/types"
)

// Query computes a value from the objects of a namespace. A wait, such as Eventually, evaluates
// the query after every change.
type Query struct {
	// Text describes the value in failure messages, such as "the pods of ReplicaSet/web".
	Text string
	// Evaluate computes the value. Do not use the View after Evaluate has returned.
	Evaluate func(*View) any
}

// waitTimeout is the maximum duration of a wait. Most conditions become true within
// milliseconds, or within seconds while faults are active. The long timeout is for slow
// machines.
const waitTimeout = 60 * time.Second

// statesMax is the number of distinct values that the failure message of a wait shows.
const statesMax = 3

// Eventually waits until the matcher accepts the value of the query, and returns this value.
// Active faults stay active. The Ginkgo spec fails after 60 seconds.
func (n *Namespace) Eventually(ctx context.Context, q Query, matcher types.GomegaMatcher) any {
	ginkgo.GinkgoHelper()
	answer, err := n.await(ctx, q, matcher)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return answer
}

// EventuallyWithoutFaults heals all active faults and then waits, as Eventually does. The faults
// do not return afterwards.
func (n *Namespace) EventuallyWithoutFaults(ctx context.Context, q Query, matcher types.GomegaMatcher) any {
	ginkgo.GinkgoHelper()
	n.Heal(ctx)
	return n.Eventually(ctx, q, matcher)
}

// Always adds an invariant, which must hold until the Ginkgo spec ends. The argument holds is a
// function that returns an error if the invariant is violated. Always calls it now and after every
// change in the namespace, with or without faults. The argument what describes the invariant in
// failure messages.
func (n *Namespace) Always(what string, holds func(*View) error) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.store.invariants = append(n.store.invariants, invariant{what, holds})
	n.store.check()
}

// ClearInvariants removes all invariants that the Ginkgo spec has added, before a step of the spec
// that may violate them.
func (n *Namespace) ClearInvariants() {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.store.invariants = nil
}

// AlwaysWithoutProfile adds an invariant, as Always does, but only if the suite has no fault
// profile. If a fault loses a response, even a correct controller may violate the invariant for a
// while.
func (n *Namespace) AlwaysWithoutProfile(what string, holds func(*View) error) {
	if !n.HasProfile() {
		n.Always(what, holds)
	}
}

// HasProfile reports whether the suite runs with a fault profile, a group of faults that are
// active while specs run.
func (n *Namespace) HasProfile() bool { return n.env.options.Profile != nil }

// await waits until the matcher accepts the value of the query, and returns the value. It ends
// early if an invariant is violated, or if the control plane or the program under test fails.
//
// After a timeout, the error contains the expected value, the last values and the last Event
// objects.
func (n *Namespace) await(ctx context.Context, q Query, matcher types.GomegaMatcher) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, fmt.Errorf("the expected value was not found within %s", waitTimeout))
	defer cancel()
	seen := states{began: time.Now()}
	for {
		answer, matched, changed, err := n.evaluate(q, matcher, &seen)
		if matched || err != nil {
			return answer, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, n.timeoutError(context.Cause(ctx), q, matcher.FailureMessage(answer), &seen)
		case <-n.env.env.Cluster.Failed():
			return nil, n.env.env.Cluster.Err()
		case <-n.env.subjectFailed():
			return nil, n.env.env.Subject.Err()
		}
	}
}

// evaluate evaluates the query once. The result matched says whether the matcher accepts the value.
// The result changed is a channel that is closed at the next change in the namespace. The error is
// not nil if an invariant was violated.
func (n *Namespace) evaluate(q Query, matcher types.GomegaMatcher, seen *states) (answer any, matched bool, changed <-chan struct{}, err error) {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.violation != "" {
		s.reported = true
		return nil, false, nil, errors.New(s.violation + n.failureContext(&View{s}))
	}
	answer = q.Evaluate(&View{s})
	seen.add(format(answer))
	matched, err = matcher.Match(answer)
	if err != nil {
		// Some matchers return an error while the object does not exist.
		matched, err = false, nil
	}
	return answer, matched, s.changed, err
}

// timeoutError returns the error of a wait that timed out or was canceled. The argument cause
// says which of the two happened.
func (n *Namespace) timeoutError(cause error, q Query, expected string, seen *states) error {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("waiting for %s: %w\nexpected: %s\nfound (last states):\n%s%s", q.Text, cause, expected, seen, n.failureContext(&View{s}))
}

// failureContext returns the second part of a failure message. It contains the last Event objects,
// the tested program's last watch events and writes, and the number of active faults.
func (n *Namespace) failureContext(v *View) string {
	text := "\nlast events:\n" + indent(strings.Join(v.recentEvents(), "\n"))
	if lines := n.env.recorder.recentTraffic(n.Name); len(lines) > 0 {
		text += "\nlast watch events and writes of the subject:\n" + indent(strings.Join(lines, "\n"))
	}
	if n.env.options.Profile != nil {
		text += fmt.Sprintf("\nactive faults of profile %s: %d", n.env.options.Profile.Name, len(n.heals))
	}
	return text
}

// states contains the last distinct values that a wait has found, as text. It also contains the
// time at which the wait first found each value.
type states struct {
	began time.Time
	last  []state
	count int
}

// state is one value that a wait has found, and the time since the wait began.
type state struct {
	after time.Duration
	text  string
}

// add records a value that a wait has found. It ignores a value that equals the last one.
func (s *states) add(text string) {
	if len(s.last) > 0 && s.last[len(s.last)-1].text == text {
		return
	}
	s.count++
	s.last = append(s.last, state{time.Since(s.began), text})
	if len(s.last) > statesMax {
		s.last = s.last[1:]
	}
}

func (s *states) String() string {
	var lines []string
	if s.count > len(s.last) {
		lines = append(lines, fmt.Sprintf("(%d earlier states)", s.count-len(s.last)))
	}
	for _, one := range s.last {
		lines = append(lines, fmt.Sprintf("after %.2f s:\n%s", one.after.Seconds(), indent(one.text)))
	}
	return indent(strings.Join(lines, "\n"))
}

// format returns a value as text, for failure messages.
func format(answer any) string {
	if stringer, ok := answer.(fmt.Stringer); ok {
		return stringer.String()
	}
	return fmt.Sprintf("%+v", answer)
}

// indent indents each line of a text by two spaces.
func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
