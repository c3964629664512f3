package ordering

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// fixture is an injected random-order fault, in a bubble of testing/synctest.
type fixture struct {
	*random
	*historytest.Recording
	passed []string // the messages that have passed, in order
	ctx    context.Context
}

// inject injects a fault with the given parameters. The last test function heals it.
func inject(t *testing.T, params string, seed uint64) *fixture {
	t.Helper()
	fault, err := faulttest.Parse(Random, params)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{random: fault.(*random), Recording: &historytest.Recording{}, ctx: t.Context()}
	env := &faults.Env{
		Rand: rand.New(rand.NewPCG(seed, 0)), Clock: clock.RealClock{},
		Interceptor: interceptor.New(f.Recording, clock.RealClock{}), Report: faults.NewReporter(f.Recording, 0, Random.Name),
	}
	if err := f.Inject(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.heal(t) })
	return f
}

func (f *fixture) heal(t *testing.T) {
	t.Helper()
	if err := f.Heal(context.Background()); err != nil {
		t.Error(err)
	}
}

// send sends messages of one queue in the given order, each from a goroutine of its own.
func (f *fixture) send(queue string, numbers ...int) {
	for _, number := range numbers {
		go func() {
			f.wait(f.ctx, response(queue))
			f.mu.Lock()
			f.passed = append(f.passed, fmt.Sprintf("%s %d", queue, number))
			f.mu.Unlock()
		}()
		synctest.Wait() // until the message waits
	}
}

// response returns a message of a queue: a response to a create of the given resource.
func response(resource string) interceptor.Message {
	return interceptor.Message{Part: interceptor.ResponseMessage, Request: &history.Request{Subject: "subject-0", Verb: "create", Resource: resource}}
}

// TestRandomOrder checks that the messages of the queue with the higher priority pass first. The order
// within a queue must be kept, and the seeds must cause both orders of two queues.
func TestRandomOrder(t *testing.T) {
	first := map[string]int{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f := inject(t, "{changes: 0, interval: 100ms}", seed)
			began := time.Now()
			f.send("pods", 1, 2, 3)
			f.send("services", 1, 2, 3)
			<-time.After(time.Second)
			if took := time.Since(began); took != time.Second || len(f.passed) != 6 {
				t.Fatalf("seed %d: %d messages passed in %v, want 6", seed, len(f.passed), took)
			}
			a, b := strings.Fields(f.passed[0])[0], strings.Fields(f.passed[5])[0]
			want := []string{a + " 1", a + " 2", a + " 3", b + " 1", b + " 2", b + " 3"}
			if a == b || !slices.Equal(f.passed, want) {
				t.Errorf("seed %d: order %q, want one queue after the other", seed, f.passed)
			}
			first[a]++
			fired := len(f.Faults())
			if wantFired := map[string]int{"pods": 0, "services": 1}[a]; fired != wantFired {
				t.Errorf("seed %d: %d records of delayed queues, want %d", seed, fired, wantFired)
			}
		})
	}
	if len(first) != 2 {
		t.Errorf("first queues %v, want each queue first for some seeds", first)
	}
}

// TestChangeOfPriority checks that a queue gets the lowest priority at a change.
func TestChangeOfPriority(t *testing.T) {
	changed := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f := inject(t, "{changes: 1, among: 4, interval: 100ms}", seed)
			f.send("pods", 1, 2, 3)
			f.send("services", 1, 2, 3)
			<-time.After(time.Second)
			if a := strings.Fields(f.passed[0])[0]; !strings.HasPrefix(f.passed[2], a) && strings.HasPrefix(f.passed[5], a) {
				changed++
			}
		})
	}
	if changed == 0 {
		t.Error("no seed changed the priority of a queue between its messages")
	}
}

// TestPatience checks that a message passes when it has waited for the time patience. Messages of a queue
// with a higher priority wait at that time.
func TestPatience(t *testing.T) {
	starved := 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			f := inject(t, "{changes: 0, interval: 100ms, patience: 500ms}", seed)
			f.send("pods", 1)
			for number := range 10 {
				f.send("services", number)
			}
			<-time.After(2 * time.Second)
			if at := slices.Index(f.passed, "pods 1"); at != 0 && at != 4 {
				t.Errorf("seed %d: the message is number %d of %q, want it first, or after 500 ms", seed, at, f.passed)
			} else if at > 0 {
				starved++
			}
		})
	}
	if starved == 0 {
		t.Error("no seed gave the queue with ten messages the higher priority")
	}
}

// TestPassesAtOnce checks which messages the fault does not delay.
func TestPassesAtOnce(t *testing.T) {
	for _, test := range []struct {
		part     interceptor.MessagePart
		request  history.Request
		wantWait bool
	}{
		{interceptor.RequestMessage, history.Request{Verb: "create", Resource: "pods"}, true},
		{interceptor.EventMessage, history.Request{Verb: "watch", Resource: "pods"}, true},
		{interceptor.RequestMessage, history.Request{Verb: "watch", Resource: "pods"}, false},
		{interceptor.ResponseMessage, history.Request{Verb: "watch", Resource: "pods"}, false},
		{interceptor.RequestMessage, history.Request{Verb: "update", Resource: "leases.coordination.k8s.io"}, false},
		{interceptor.RequestMessage, history.Request{Verb: "create", Resource: "events"}, false},
		{interceptor.RequestMessage, history.Request{Path: "/healthz"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := inject(t, "{}", 1)
			began := time.Now()
			f.wait(t.Context(), interceptor.Message{Part: test.part, Request: &test.request})
			if waited := time.Since(began) > 0; waited != test.wantWait {
				t.Errorf("%s %+v waited: %v, want %v", test.part, test.request, waited, test.wantWait)
			}
		})
	}
}

// TestHealReleases checks that Heal lets all waiting messages pass, and that later messages pass at
// once.
func TestHealReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inject(t, "{interval: 1s}", 1)
		f.send("pods", 1, 2, 3)
		f.heal(t)
		f.send("pods", 4)
		synctest.Wait()
		if want := "passed on 0 messages in 1 queue, 0 of them before an older one"; len(f.passed) != 4 || f.Summary() != want {
			t.Errorf("%d messages passed, summary %q; want 4 and %q", len(f.passed), f.Summary(), want)
		}
	})
}

// TestCanceledMessage checks that a message whose request is canceled does not wait, and does not
// count.
func TestCanceledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := inject(t, "{interval: 1s}", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		f.wait(ctx, response("pods"))
		f.send("pods", 2)
		<-time.After(2 * time.Second)
		if want := "passed on 1 message in 1 queue, 0 of them before an older one"; f.Summary() != want {
			t.Errorf("summary %q, want %q", f.Summary(), want)
		}
	})
}

// TestParams checks which parameters the fault accepts.
func TestParams(t *testing.T) {
	faulttest.Params(t, Random, []faulttest.Case{
		{Text: "{}"},
		{Text: "{interval: 1s, changes: 1000, among: 1}"},
		{Text: "{interval: 0s}", Want: "s.yaml:1:12: random-order.interval: 0s is out of bounds; expected 1ms to 1s"},
		{Text: "{patience: 1h}", Want: "s.yaml:1:12: random-order.patience: 1h0m0s is out of bounds; expected 1ms to 10m0s"},
		{Text: "{changes: -1}", Want: "s.yaml:1:11: random-order.changes: -1 is out of bounds; expected 0 to 1000"},
		{Text: "{among: 0}", Want: "s.yaml:1:9: random-order.among: 0 is out of bounds; expected 1 to 1000000"},
	})
}
