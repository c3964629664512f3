package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestIntegrity requires that no check passes on a history with an impossible record, such as a
// response without its request. A violation before that record remains a violation.
func TestIntegrity(t *testing.T) {
	request := func(id uint64) history.Record {
		return history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: "get", Resource: replicaSets}}
	}
	watch := func(id uint64) history.Record {
		return history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: "watch", Resource: replicaSets}}
	}
	event := func(id uint64, subject, resource, ofObject string) history.Record {
		object := history.Object{Ref: history.Ref{Resource: ofObject, Name: "web"}}
		return history.Record{Delivery: &history.Delivery{ID: id, Subject: subject, Resource: resource, Type: history.Modified, Object: object}}
	}
	closed := history.Record{WatchClosed: &history.WatchClosed{ID: 99, Subject: "subject-0", Resource: replicaSets}}
	response := func(id uint64) history.Record {
		return history.Record{Response: &history.Response{ID: id, Code: 200}}
	}
	process := func(event history.ProcessEvent) history.Record {
		return history.Record{Process: &history.Process{Name: "subject-0", Event: event}}
	}
	step := func(index int, event history.StepEvent) history.Record {
		return history.Record{Step: &history.Step{Index: index, Event: event, Detail: "scale"}}
	}
	object := func(h *historyBuilder, change func(*history.Object)) {
		o := *h.find("web-1")
		change(&o)
		h.commit(history.Modified, o)
	}
	for _, c := range []struct {
		name   string
		build  func(h *historyBuilder)
		reason string // the expected text about the impossible record; "" if every record is possible
	}{
		{"a response without its request", func(h *historyBuilder) { h.append(response(99)) },
			"is a response of request 99, which the history does not contain"},
		{"a step in another namespace", func(h *historyBuilder) {
			h.append(history.Record{Step: &history.Step{Event: history.StepBegun, Object: &history.Ref{Resource: "pods", Namespace: "other", Name: "web"}}})
		}, "is a step with the object pods other/web, but the start record names the namespace "},
		{"a step on a cluster-scoped object", func(h *historyBuilder) {
			h.append(history.Record{Step: &history.Step{Event: history.StepBegun, Object: &history.Ref{Resource: "nodes", Name: "node-0"}}})
			h.append(history.Record{Step: &history.Step{Event: history.StepDone}})
		}, ""},
		{"a list without its request", func(h *historyBuilder) { h.append(history.Record{List: &history.List{ID: 99}}) }, "is a list of request 99"},
		{"a watch event without its request", func(h *historyBuilder) { h.append(history.Record{Delivery: &history.Delivery{ID: 99}}) }, "is a watch event of request 99"},
		{"the end of a watch without its request", func(h *historyBuilder) { h.append(history.Record{WatchClosed: &history.WatchClosed{ID: 99}}) }, "is the end of a watch of request 99"},
		{"a watch event of its watch", func(h *historyBuilder) {
			h.append(watch(99))
			h.append(event(99, "subject-0", replicaSets, replicaSets))
			h.append(closed)
		}, ""},
		{"a watch event after the end of the watch", func(h *historyBuilder) {
			h.append(watch(99))
			h.append(closed)
			h.append(event(99, "subject-0", replicaSets, replicaSets))
		}, "is a watch event of request 99, whose watch has ended"},
		{"a watch event of a get", func(h *historyBuilder) {
			h.append(request(99))
			h.append(event(99, "subject-0", replicaSets, replicaSets))
		}, `is a watch event of replicasets.apps for process "subject-0", but request 99 is a get of replicasets.apps by process "subject-0"`},
		{"a watch event for another process", func(h *historyBuilder) {
			h.append(watch(99))
			h.append(event(99, "subject-9", replicaSets, replicaSets))
		}, `for process "subject-9", but request 99 is a watch`},
		{"a watch event of another resource", func(h *historyBuilder) {
			h.append(watch(99))
			h.append(event(99, "subject-0", "services", "services"))
		}, "is a watch event of services for process"},
		{"a watch event with an object of another resource", func(h *historyBuilder) {
			h.append(watch(99))
			h.append(event(99, "subject-0", replicaSets, "services"))
		}, "is a watch event of replicasets.apps with an object of services"},
		{"a response with an object of another resource", func(h *historyBuilder) {
			h.append(request(99))
			h.append(history.Record{Response: &history.Response{ID: 99, Code: 200, Object: &history.Object{Ref: history.Ref{Resource: "services", Name: "web"}}}})
		}, "has an object of services, but request 99 is for replicasets.apps"},
		{"a fault at a request that does not exist", func(h *historyBuilder) {
			h.append(history.Record{Fault: &history.Fault{Index: 1, Name: "api-error", Event: history.FaultFired, Request: 99}})
		}, "is a fault of request 99, which the history does not contain"},
		{"a request of a process without records, such as a Go program", func(h *historyBuilder) {
			h.append(history.Record{Request: &history.Request{ID: 99, Subject: "subject-9", Verb: "get", Resource: replicaSets}})
		}, ""},
		{"a request before its process starts", func(h *historyBuilder) {
			h.append(history.Record{Request: &history.Request{ID: 99, Subject: "subject-9", Verb: "get", Resource: replicaSets}})
			h.append(history.Record{Process: &history.Process{Name: "subject-9", Event: history.ProcessStarted}})
			h.append(history.Record{Process: &history.Process{Name: "subject-9", Event: history.ProcessStopped}})
		}, ""},
		{"a record after the end", func(h *historyBuilder) {
			h.append(history.Record{End: &history.End{}})
			h.append(request(99))
		}, "comes after the end record"},
		{"a stall longer than the run", func(h *historyBuilder) {
			h.append(history.Record{Stall: &history.Stall{Duration: time.Hour}})
		}, "is a stall of 1h0m0s, but the run has lasted only "},
		{"a delay longer than the run", func(h *historyBuilder) {
			h.append(watch(99))
			late := event(99, "subject-0", replicaSets, replicaSets)
			late.Delivery.Held = time.Hour
			h.append(late)
		}, "is a watch event that faults delayed by 1h0m0s, but the run has lasted only "},
		{"an object that is created twice", func(h *historyBuilder) {
			pod := *h.find("web-1")
			pod.Version = h.version + 1
			h.appendOnly(history.Record{Commit: &history.Commit{Type: history.Added, Object: pod}})
		}, "pod ns/web-1 was created twice (records "},
		{"an unknown object that is modified", func(h *historyBuilder) {
			h.appendOnly(history.Record{Commit: &history.Commit{Type: history.Modified, Object: *foreign()}})
		}, "is a MODIFIED version of configmaps ns/foreign, which was not created before"},
		{"an unknown object that is deleted", func(h *historyBuilder) {
			h.appendOnly(history.Record{Commit: &history.Commit{Type: history.Deleted, Object: *foreign()}})
		}, "is a DELETED version of configmaps ns/foreign, which was not created before"},
		{"two requests with one ID", func(h *historyBuilder) { h.append(request(99)); h.append(request(99)) }, "is a second request with the ID 99"},
		{"two responses", func(h *historyBuilder) { h.append(request(99)); h.append(response(99)); h.append(response(99)) }, "is a second response to request 99"},
		{"a phase that begins twice", func(h *historyBuilder) {
			h.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
			h.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
		}, "is a second beginning of the phase chaos"},
		{"another phase before chaos", func(h *historyBuilder) {
			h.records = slices.DeleteFunc(h.records, func(r *history.Record) bool { return r.Phase != nil })
		}, "is the beginning of the phase end, but the phase chaos has not begun"},
		{"a process that starts twice", func(h *historyBuilder) { h.appendOnly(process(history.ProcessStarted)) }, "is the event started of process subject-0, which was running"},
		{"a process that starts again", func(h *historyBuilder) {
			h.appendOnly(process(history.ProcessStopped))
			h.appendOnly(process(history.ProcessStarted))
		}, ""},
		{"a process that never started", func(h *historyBuilder) {
			h.records = slices.DeleteFunc(h.records, func(r *history.Record) bool { return r.Process != nil })
			h.appendOnly(process(history.ProcessPaused))
		}, "is the event paused of process subject-0, which never started"},
		{"a step that begins twice", func(h *historyBuilder) {
			h.appendOnly(step(1, history.StepBegun))
			h.appendOnly(step(1, history.StepBegun))
		}, "is the beginning of step 1, but step 1 has not ended"},
		{"a step that ends without having begun", func(h *historyBuilder) { h.appendOnly(step(1, history.StepDone)) }, "is the event done of step 1 (scale), which has not begun"},
		{"a late step", func(h *historyBuilder) {
			h.appendOnly(step(1, history.StepBegun))
			h.appendOnly(step(1, history.StepLate))
			h.appendOnly(step(1, history.StepDone))
			h.appendOnly(step(2, history.StepBegun))
		}, ""},
		{"a fault that is healed before it is injected", func(h *historyBuilder) {
			h.appendOnly(history.Record{Fault: &history.Fault{Index: 1, Name: "crash", Event: history.FaultHealed}})
		}, "is the event healed of fault 1 (crash), which was not injected before"},
		{"a resourceVersion that goes back", func(h *historyBuilder) {
			pod := *h.find("web-1")
			pod.Version--
			h.appendOnly(history.Record{Commit: &history.Commit{Type: history.Modified, Object: pod}})
		}, "pod ns/web-1 changed its resourceVersion from "},
		{"a request without a response", func(h *historyBuilder) { h.append(request(99)) }, ""},
		{"a time that goes backward", func(h *historyBuilder) { h.wait(-time.Hour); h.append(request(99)) }, "has the later time"},
		{"a time far after the end", func(h *historyBuilder) {
			h.wait(24 * time.Hour)
			h.append(request(99))
			h.wait(-24 * time.Hour)
		}, "has the later time"},
		{"a pod that goes from Failed to Running", func(h *historyBuilder) {
			h.failPod(h.find("web-1"))
			object(h, func(o *history.Object) { o.Body = podBody("Running", true) })
		}, "pod ns/web-1 changed its phase from Failed to Running (records "},
		{"a pod that goes from Running to Pending", func(h *historyBuilder) {
			object(h, func(o *history.Object) { o.Body = podBody("Pending", true) })
		}, ""},
		{"another UID", func(h *historyBuilder) { object(h, func(o *history.Object) { o.UID = "other" }) }, "pod ns/web-1 changed its UID from web-1-uid to other without a deletion"},
		{"another UID after a deletion", func(h *historyBuilder) {
			pod := *h.find("web-1")
			h.commit(history.Deleted, pod)
			pod.UID = "other"
			h.commit(history.Added, pod)
		}, ""},
		{"a generation that goes back", func(h *historyBuilder) {
			object(h, func(o *history.Object) { o.Generation = 3 })
			object(h, func(o *history.Object) { o.Generation = 2 })
		}, "pod ns/web-1 changed its generation from 3 to the lower 2"},
		{"a deletionTimestamp that vanishes", func(h *historyBuilder) {
			h.terminate(h.find("web-1"))
			object(h, func(o *history.Object) { o.Deleting = time.Time{} })
		}, "pod ns/web-1 lost its deletionTimestamp"},
		{"a deletionTimestamp that becomes later", func(h *historyBuilder) {
			h.terminate(h.find("web-1"))
			object(h, func(o *history.Object) { o.Deleting = o.Deleting.Add(time.Second) })
		}, ""},
		{"a deletionTimestamp that becomes earlier", func(h *historyBuilder) {
			h.terminate(h.find("web-1"))
			object(h, func(o *history.Object) { o.Deleting = o.Deleting.Add(-time.Second) })
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, violation := range []bool{false, true} {
				h := newHistoryBuilder()
				rs := deliveredReplicaSet(h, 2)
				if violation {
					h.creates(rs, 2)
				}
				h.running(rs, 1)
				c.build(h)
				results, activity, err := Run(testSettings, h.end().all())
				if err != nil {
					t.Fatal(err)
				}
				if c.reason == "" && activity.Incomplete != "" || !strings.Contains(activity.Incomplete, c.reason) {
					t.Errorf("found %q, want %q", activity.Incomplete, c.reason)
				}
				for _, r := range results {
					if r.Check == "slow-start" && (r.Verdict == Fail) != violation {
						t.Errorf("slow-start: got %s (%s); violated before: %v", r.Verdict, r.Reason, violation)
					}
					if c.reason != "" && r.Verdict == Pass {
						t.Errorf("%s passed on a history that no run has", r.Check)
					}
				}
			}
		})
	}
}
