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
	// What says in words what is asked for, such as "the pods of ReplicaSet/web".
	What string
	// Of finds it out. It must not keep the view.
	Of func(*View) any
}

// within bounds every wait. What is waited for takes milliseconds, or seconds
// behind faults: the rest is for machines that are slow or busy.
const within = 60 * time.Second

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

// EventuallyStable heals all that goes wrong, for good, and then waits as Eventually does.
func (n *Namespace) EventuallyStable(ctx context.Context, q Query, matcher types.GomegaMatcher) any {
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
	n.store.always = append(n.store.always, invariant{what, holds})
	n.store.check()
}

// Forget ends what Always demanded so far: from here on it may be otherwise.
func (n *Namespace) Forget() {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.store.always = nil
}

// Unfailing is as Always, of what an answer that is lost on its way may well make
// otherwise for a time: with a profile of faults it demands nothing.
func (n *Namespace) Unfailing(what string, holds func(*View) error) {
	if !n.Faulty() {
		n.Always(what, holds)
	}
}

// Faulty is whether there is a profile of faults.
func (n *Namespace) Faulty() bool { return n.world.options.Profile != nil }

// await waits for an answer. Its error says what was expected, what was seen and
// what the events tell.
func (n *Namespace) await(ctx context.Context, q Query, matcher types.GomegaMatcher) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not within %s", within))
	defer cancel()
	seen := states{began: time.Now()}
	for {
		answer, matched, changed, err := n.look(q, matcher, &seen)
		if matched || err != nil {
			return answer, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, n.unmet(context.Cause(ctx), q, matcher.FailureMessage(answer), &seen)
		case <-n.world.cluster.Failed():
			return nil, n.world.cluster.Err()
		case <-n.world.subjectFailed():
			return nil, n.world.subject.Err()
		}
	}
}

// look asks once. Changed is closed when it is worth to ask again.
func (n *Namespace) look(q Query, matcher types.GomegaMatcher, seen *states) (answer any, matched bool, changed <-chan struct{}, err error) {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.violation != "" {
		s.told = true
		return nil, false, nil, errors.New(s.violation + n.tail(&View{s}))
	}
	answer = q.Of(&View{s})
	seen.add(show(answer))
	matched, err = matcher.Match(answer)
	if err != nil {
		// Such as a field of something that is not there yet: it may come.
		matched, err = false, nil
	}
	return answer, matched, s.changed, err
}

// unmet is the error of a wait that was in vain.
func (n *Namespace) unmet(cause error, q Query, expected string, seen *states) error {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("waiting for %s: %w\nexpected: %s\nthe last states seen:\n%s%s", q.What, cause, expected, seen, n.tail(&View{s}))
}

// tail says what else is known: the events, what passed between the subject and the
// API server, and the faults.
func (n *Namespace) tail(v *View) string {
	text := "\nthe events:\n" + indent(strings.Join(v.events(), "\n"))
	if lines := n.world.witness.lately(n.Name); len(lines) > 0 {
		text += "\nwhat the subject was told and wrote last:\n" + indent(strings.Join(lines, "\n"))
	}
	if n.world.options.Profile != nil {
		text += fmt.Sprintf("\nfaults of the profile %s: %d in force", n.world.options.Profile.Name, len(n.heals))
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

func show(answer any) string {
	if stringer, ok := answer.(fmt.Stringer); ok {
		return stringer.String()
	}
	return fmt.Sprintf("%+v", answer)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
