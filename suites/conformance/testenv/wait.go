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

// Query is what a spec wants to know of its namespace.
type Query struct {
	// Text says in words what is asked for, such as "the pods of ReplicaSet/web".
	Text string
	// Evaluate finds it out. It must not keep the view.
	Evaluate func(*View) any
}

// waitTimeout bounds every wait. What is waited for takes milliseconds, or seconds
// behind faults: the rest is for machines that are slow or busy.
const waitTimeout = 60 * time.Second

// statesMax is how many of the last states that were seen a failure tells.
const statesMax = 3

// Eventually waits until the answer is as the matcher wants it, with whatever goes
// wrong going on, and returns the answer.
func (n *Namespace) Eventually(ctx context.Context, q Query, matcher types.GomegaMatcher) any {
	ginkgo.GinkgoHelper()
	answer, err := n.await(ctx, q, matcher)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	return answer
}

// EventuallyWithoutFaults heals all that goes wrong, for good, and then waits as Eventually does.
func (n *Namespace) EventuallyWithoutFaults(ctx context.Context, q Query, matcher types.GomegaMatcher) any {
	ginkgo.GinkgoHelper()
	n.Heal(ctx)
	return n.Eventually(ctx, q, matcher)
}

// Always demands that something is never otherwise, from now to the end of the
// spec, whatever goes wrong: it is looked at when anything in the namespace
// changes.
func (n *Namespace) Always(what string, holds func(*View) error) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.store.invariants = append(n.store.invariants, invariant{what, holds})
	n.store.check()
}

// ClearInvariants ends what Always demanded so far: from here on it may be otherwise.
func (n *Namespace) ClearInvariants() {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.store.invariants = nil
}

// AlwaysWithoutProfile is as Always, of what an answer that is lost on its way may well make
// otherwise for a time: with a profile of faults it demands nothing.
func (n *Namespace) AlwaysWithoutProfile(what string, holds func(*View) error) {
	if !n.HasProfile() {
		n.Always(what, holds)
	}
}

// HasProfile is whether there is a profile of faults.
func (n *Namespace) HasProfile() bool { return n.env.options.Profile != nil }

// await waits for an answer. Its error says what was expected, what was seen and
// what the events tell.
func (n *Namespace) await(ctx context.Context, q Query, matcher types.GomegaMatcher) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, fmt.Errorf("not within %s", waitTimeout))
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
		case <-n.env.cluster.Failed():
			return nil, n.env.cluster.Err()
		case <-n.env.subjectFailed():
			return nil, n.env.subject.Err()
		}
	}
}

// evaluate asks once. Changed is closed when it is worth to ask again.
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
		// Such as a field of something that is not there yet: it may come.
		matched, err = false, nil
	}
	return answer, matched, s.changed, err
}

// timeoutError is the error of a wait that was in vain.
func (n *Namespace) timeoutError(cause error, q Query, expected string, seen *states) error {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("waiting for %s: %w\nexpected: %s\nthe last states seen:\n%s%s", q.Text, cause, expected, seen, n.failureContext(&View{s}))
}

// failureContext says what else is known: the events, what passed between the subject and the
// API server, and the faults.
func (n *Namespace) failureContext(v *View) string {
	text := "\nthe events:\n" + indent(strings.Join(v.recentEvents(), "\n"))
	if lines := n.env.recorder.recentTraffic(n.Name); len(lines) > 0 {
		text += "\nwhat the subject was told and wrote last:\n" + indent(strings.Join(lines, "\n"))
	}
	if n.env.options.Profile != nil {
		text += fmt.Sprintf("\nfaults of the profile %s: %d in force", n.env.options.Profile.Name, len(n.heals))
	}
	return text
}

// states are the last different states that a wait saw.
type states struct {
	began time.Time
	last  []state
	count int
}

type state struct {
	after time.Duration
	text  string
}

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
		lines = append(lines, fmt.Sprintf("(%d before)", s.count-len(s.last)))
	}
	for _, one := range s.last {
		lines = append(lines, fmt.Sprintf("after %.2f s:\n%s", one.after.Seconds(), indent(one.text)))
	}
	return indent(strings.Join(lines, "\n"))
}

func format(answer any) string {
	if stringer, ok := answer.(fmt.Stringer); ok {
		return stringer.String()
	}
	return fmt.Sprintf("%+v", answer)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
