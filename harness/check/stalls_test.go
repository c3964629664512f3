package check

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestStalls requires that stalls extend the time limits of the checks. After a long stall, a
// violation proves nothing, so the verdict is unknown.
func TestStalls(t *testing.T) {
	for _, c := range []struct {
		name    string
		between func(h *historyBuilder) // what happens from the delivery of a failed pod to the status write that still counts this pod
		want    Verdict
		reason  string
	}{
		{"at once", func(h *historyBuilder) {}, Pass, ""},
		{"3 s later", func(h *historyBuilder) { h.wait(3 * time.Second) }, Fail, "wrote status.replicas 3, status.fullyLabeledReplicas 3, "},
		{"3 s later, with stalls of the machine", func(h *historyBuilder) {
			for range 6 {
				h.wait(100 * time.Millisecond)
				h.stall(400 * time.Millisecond)
			}
		}, Pass, ""},
		{"3 s later, with stalls of the process", func(h *historyBuilder) {
			for range 6 {
				h.wait(100 * time.Millisecond)
				h.starve(400 * time.Millisecond)
			}
		}, Pass, ""},
		{"3 s after the last of many stalls", func(h *historyBuilder) {
			for range 6 {
				h.stall(400 * time.Millisecond)
			}
			h.wait(3 * time.Second)
		}, Fail, "status.replicas 2, "},
		{"just after a short stall", func(h *historyBuilder) { h.wait(3 * time.Second); h.stall(500 * time.Millisecond) }, Fail,
			"according to the cache of the process; the subject or gauntlet got no CPU time for 500ms in the 2 s before this violation"},
		{"just after the process stalled", func(h *historyBuilder) { h.wait(3 * time.Second); h.starve(1300 * time.Millisecond) }, Fail,
			"got no CPU time for 1.3s in the 2 s before this violation"},
		{"just after a long stall", func(h *historyBuilder) { h.wait(3 * time.Second); h.stall(1300 * time.Millisecond) }, Unknown,
			"the machine stalled for 1.3s shortly before this violation, which therefore proves nothing: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistoryBuilder()
			pods := h.running(deliveredReplicaSet(h, 2), 3)
			h.wait(5 * time.Second)
			h.deliver(h.revise("web", "status", nil))
			failed := *pods[0]
			failed.Body = podBody("Failed", false)
			h.deliver(h.commit(history.Modified, failed))
			c.between(h)
			rs := h.revise("web", "status", nil)
			h.deliver(rs)
			h.updateStatus(rs, fields{"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1})
			got := verdictsWith(t, testSettings, h.end())["status"]
			if got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("got %s (%s), want %s (%s)", got.Verdict, got.Reason, c.want, c.reason)
			}
		})
	}
}

// TestClockOf requires that the clock of a process stops while the process is paused or stalled,
// and never goes backward.
func TestClockOf(t *testing.T) {
	m := newModel(testSettings)
	m.process("subject-0")
	at := func(now time.Duration, r history.Record, want time.Duration) {
		t.Helper()
		r.At = now * time.Second
		if err := m.observe(&r); err != nil {
			t.Fatal(err)
		}
		if got := m.clockOf("subject-0"); got != want*time.Second {
			t.Errorf("at %ds: the clock of the process shows %s, want %ds", now, got, want)
		}
	}
	process := func(event history.ProcessEvent) history.Record {
		return history.Record{Process: &history.Process{Name: "subject-0", Event: event}}
	}
	stall := func(name string, seconds time.Duration) history.Record {
		return history.Record{Stall: &history.Stall{Process: name, Duration: seconds * time.Second}}
	}
	at(10, history.Record{}, 10)
	at(15, stall("", 3), 12)
	at(16, stall("subject-1", 1), 13)
	at(17, stall("subject-0", 3), 13) // another record has shown the process at 13 s
	at(19, history.Record{}, 13)
	at(20, history.Record{}, 14)
	at(21, process(history.ProcessPaused), 15)
	at(25, stall("", 2), 15)
	at(31, process(history.ProcessResumed), 15)
	at(32, history.Record{}, 16)
}
