package expectations

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
)

var (
	owner     = ownership.ID{Key: "ns/a", UID: "1"}
	recreated = ownership.ID{Key: "ns/a", UID: "2"}
	start     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestSatisfied(t *testing.T) {
	type tracker = *Tracker
	tests := []struct {
		name  string
		do    func(tracker, *clocktesting.FakePassiveClock)
		asked ownership.ID
		want  bool
	}{
		{"no expectations", func(tracker, *clocktesting.FakePassiveClock) {}, owner, true},
		{"create unanswered", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
		}, owner, false},
		{"create succeeded, not observed", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Created(owner, "p", "7")
		}, owner, false},
		{"create succeeded, then observed", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Created(owner, "p", "7")
			e.CreationObserved(owner, "p")
		}, owner, true},
		{"observed before the response", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.CreationObserved(owner, "p")
			e.Created(owner, "p", "7")
		}, owner, true},
		{"observed twice counts once", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 2)
			e.Created(owner, "p", "7")
			e.Created(owner, "q", "8")
			e.CreationObserved(owner, "p")
			e.CreationObserved(owner, "p")
		}, owner, false},
		{"failed create", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 3)
			e.CreationsFailed(owner, 3)
		}, owner, true},
		{"create with a lost response does not satisfy another", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 2)
			e.CreationsFailed(owner, 1)
			e.Created(owner, "p", "7")
			e.CreationObserved(owner, "lost")
		}, owner, false},
		{"early observation of a lost create does not satisfy another", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 2)
			e.CreationObserved(owner, "lost")
			e.CreationsFailed(owner, 1)
			e.Created(owner, "p", "7")
		}, owner, false},
		{"created and deleted within one relist", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Created(owner, "p", "5") // the cache has reached resourceVersion 5
		}, owner, true},
		{"created and observed only as deleted", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Created(owner, "p", "7")
			e.DeletionObserved(owner, "p")
		}, owner, true},
		{"delete not observed", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectDeletions(owner, []types.UID{"p", "q"})
			e.DeletionObserved(owner, "p")
			e.DeletionObserved(owner, "p")
			e.DeletionObserved(owner, "unknown")
		}, owner, false},
		{"deletes observed", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectDeletions(owner, []types.UID{"p", "q"})
			e.DeletionObserved(owner, "p")
			e.DeletionObserved(owner, "q")
		}, owner, true},
		{"creates do not satisfy deletes", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectDeletions(owner, []types.UID{"p"})
			e.CreationObserved(owner, "p")
		}, owner, false},
		{"just before the timeout", func(e tracker, c *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			c.SetTime(start.Add(Timeout - 1))
		}, owner, false},
		{"at the timeout", func(e tracker, c *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			c.SetTime(start.Add(Timeout))
		}, owner, true},
		{"recreated owner starts without expectations", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
		}, recreated, true},
		{"observations of a recreated owner do not count", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Created(owner, "p", "7")
			e.CreationObserved(recreated, "p")
		}, owner, false},
		{"forgotten with the owner", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Forget(owner)
		}, owner, true},
		{"kept when a recreated owner is forgotten", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.Forget(recreated)
		}, owner, false},
		{"forgotten with the key", func(e tracker, _ *clocktesting.FakePassiveClock) {
			e.ExpectCreations(owner, 1)
			e.ForgetKey(owner.Key)
		}, owner, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			tracker := New(clock, func(version string) bool { return version <= "5" })
			test.do(tracker, clock)
			if got := tracker.Satisfied(test.asked); got != test.want {
				t.Errorf("Satisfied = %t, want %t", got, test.want)
			}
		})
	}
}

func TestUnmet(t *testing.T) {
	for _, test := range []struct {
		name     string
		version  string // resourceVersion of the create response
		after    time.Duration
		observed bool
		want     bool
	}{
		{"just before the timeout", "7", Timeout - 1, false, true},
		{"at the timeout", "7", Timeout, false, true},
		{"observed in time", "7", Timeout, true, false},
		{"in the cache in time", "5", Timeout, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			tracker := New(clock, func(version string) bool { return version <= "5" })
			tracker.ExpectCreations(owner, 1)
			tracker.Created(owner, "p", test.version)
			clock.SetTime(start.Add(test.after))
			if test.observed {
				tracker.CreationObserved(owner, "p")
			}
			if got := tracker.Unmet(owner); got != test.want {
				t.Errorf("Unmet = %t, want %t", got, test.want)
			}
			if tracker.Unmet(recreated) {
				t.Error("expectations of a recreated owner are unmet")
			}
		})
	}
}

func TestRemaining(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	tracker := New(clock, func(string) bool { return false })
	tracker.ExpectCreations(owner, 1)
	clock.SetTime(start.Add(2 * time.Minute))
	if got, want := tracker.Remaining(owner), 3*time.Minute; got != want {
		t.Errorf("Remaining = %s, want %s", got, want)
	}
}

// TestCreationsInAnyOrder checks creates whose responses and events arrive in any order, and
// whose events may be repeated. The expectations must be satisfied as soon as each create has
// failed or was observed, and not earlier.
func TestCreationsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		tracker := New(clocktesting.NewFakePassiveClock(start), func(string) bool { return false })
		tracker.ExpectCreations(owner, n)
		failed, answered, observed := map[int]bool{}, map[int]bool{}, map[int]bool{}
		done := 0
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "create")
			uid := types.UID(strconv.Itoa(i))
			switch rapid.SampledFrom([]string{"answer", "fail", "observe"}).Draw(t, "step") {
			case "answer":
				if !answered[i] && !failed[i] {
					answered[i] = true
					tracker.Created(owner, uid, "1")
				}
			case "fail": // the create may have succeeded on the server, so an event may follow
				if !answered[i] && !failed[i] {
					failed[i] = true
					tracker.CreationsFailed(owner, 1)
				}
			case "observe":
				observed[i] = true
				tracker.CreationObserved(owner, uid)
			}
		}
		for i := range n {
			if failed[i] || answered[i] && observed[i] {
				done++
			}
		}
		if got, want := tracker.Satisfied(owner), done == n; got != want {
			t.Fatalf("Satisfied = %t with %d of %d creates done", got, done, n)
		}
	})
}
