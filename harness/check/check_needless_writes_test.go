package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestNeedlessWrites(t *testing.T) {
	// sends records a status update that contains the version from of an object. The response
	// contains the version now.
	sends := func(h *historyBuilder, from, now *history.Object, code int) {
		step := h.request(history.Request{Verb: "update", Resource: from.Resource, Subresource: "status", Namespace: namespace, Name: from.Name, Object: from})
		step.made = now
		step.answered(code)
	}
	// republishes updates the Endpoints of a Service n times. Each update has a new
	// last-change-trigger-time; the function change may change more. The parameter pods is the
	// number of pods of the Service. The result is the last version of the Endpoints.
	republishes := func(h *historyBuilder, n, pods int, change func(*history.Object)) *history.Object {
		service := h.service("web", nil)
		var addresses []any
		for i := range pods {
			ip := fmt.Sprintf("10.1.%d.%d", i/256, i%256)
			addresses = append(addresses, at(h.podWithAddress(h.pod(nil, "web"), ip, true, nil), ip))
		}
		now := h.endpoints("web", subset(addresses[:min(pods, objects.AddressesMax)], nil))
		h.wait(3 * time.Second)
		for i := range n {
			next := *now
			next.Labels = maps.Clone(now.Labels)
			next.Annotations = map[string]string{objects.TriggerTimeAnnotation: time.Unix(int64(i), 0).Format(time.RFC3339)}
			change(&next)
			if n := next.Labels["n"]; n != "" {
				labeled := *service
				labeled.Labels = map[string]string{"n": n}
				h.deliver(h.commit(history.Modified, labeled))
			}
			step := h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: &next})
			now = h.commit(history.Modified, next)
			step.made = now
			step.answered(200)
			h.deliver(now)
		}
		return now
	}
	// reported delivers a ReplicaSet with a status that counts no pods, and returns this
	// version.
	reported := func(h *historyBuilder) *history.Object {
		deliveredReplicaSet(h, 1)
		rs := h.status("web", 0)
		h.deliver(rs)
		return rs
	}
	// terminating commits a version of an object that has a deletionTimestamp.
	terminating := func(h *historyBuilder, o *history.Object) *history.Object {
		now := *o
		now.Deleting = time.Unix(1, 0)
		return h.commit(history.Modified, now)
	}
	// deletes records a successful delete that does not change the object.
	deletes := func(h *historyBuilder, o *history.Object) {
		step := h.send("delete", "", o)
		step.made = o
		step.answered(200)
	}
	runTestCases(t, "needless-writes", []testCase{
		{name: "each update changes the object", want: Pass, build: func(h *historyBuilder) {
			rs := reported(h)
			for range 20 {
				next := h.status("web", 0)
				sends(h, rs, next, 200)
				rs = next
				h.deliver(rs)
			}
		}},
		{name: "6 updates change nothing", want: Fail, evidence: "sent 6 updates of replicasets.apps ns/web that changed nothing", build: func(h *historyBuilder) {
			rs := reported(h)
			for range 6 {
				sends(h, rs, rs, 200)
			}
		}},
		{name: "6 updates without a resource version change nothing", want: Fail, evidence: "sent 6 updates of replicasets.apps ns/web", build: func(h *historyBuilder) {
			rs := reported(h)
			unversioned := *rs
			unversioned.Version = 0
			for range 6 {
				sends(h, &unversioned, rs, 200)
			}
		}},
		{name: "5 updates change nothing", want: Pass, build: func(h *historyBuilder) {
			rs := reported(h)
			for range 5 {
				sends(h, rs, rs, 200)
			}
		}},
		{name: "sends a status again after a conflict", want: Pass, build: func(h *historyBuilder) {
			rs := reported(h)
			for range 20 {
				sends(h, rs, nil, 409)
				sends(h, rs, rs, 200)
			}
		}},
		{name: "writes a Deployment status after each failed create of a ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			d := h.deployment("web", 10, nil)
			for range 20 {
				h.createReplicaSet("web", "v1", 10).answered(403)
				step := h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: d})
				step.made = d
				step.answered(200)
			}
		}},
		{name: "6 updates of a Deployment change nothing", want: Fail, evidence: "sent 6 updates of deployments.apps ns/web", build: func(h *historyBuilder) {
			d := h.deployment("web", 10, nil)
			for range 6 {
				step := h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Subresource: "status", Namespace: namespace, Name: "web", Object: d})
				step.made = d
				step.answered(200)
			}
		}},
		{name: "6 updates of Endpoints change only the order of the addresses", want: Fail, evidence: "sent 6 updates of endpoints ns/web", build: func(h *historyBuilder) {
			republishes(h, 6, 3, func(e *history.Object) {
				var body struct {
					Subsets []map[string][]json.RawMessage
				}
				if err := json.Unmarshal(e.Body, &body); err != nil {
					panic(err)
				}
				slices.Reverse(body.Subsets[0]["addresses"])
				reversed, err := json.Marshal(map[string]any{"subsets": body.Subsets})
				if err != nil {
					panic(err)
				}
				e.Body = reversed
			})
		}},
		{name: "a restarted process counts from 0", want: Pass, build: func(h *historyBuilder) {
			rs := reported(h)
			for range 3 {
				for range 5 {
					sends(h, rs, rs, 200)
				}
				h.restart(h.subject)
			}
		}},
		{name: "6 updates of Endpoints change only the trigger time", want: Fail, evidence: "sent 6 updates of endpoints ns/web", build: func(h *historyBuilder) {
			republishes(h, 6, 1, func(*history.Object) {})
		}},
		{name: "updates change the labels of Endpoints", want: Pass, build: func(h *historyBuilder) {
			n := 0
			republishes(h, 20, 1, func(o *history.Object) {
				n++
				o.Labels["n"] = time.Duration(n).String()
			})
		}},
		{name: "repeats truncated Endpoints within a second (truncated-endpoints)", want: Pass, build: func(h *historyBuilder) {
			truncated := republishes(h, 1, objects.AddressesMax+1, func(o *history.Object) {
				o.Annotations = map[string]string{objects.OverCapacityAnnotation: "truncated"}
			})
			for range 6 {
				step := h.request(history.Request{Verb: "update", Resource: objects.EndpointsResource, Namespace: namespace, Name: "web", Object: truncated})
				step.made = truncated // the API server creates no version for an update without a change
				step.answered(200)
			}
		}},
		{name: "repeats truncated Endpoints (truncated-endpoints)", want: Pass, build: func(h *historyBuilder) {
			republishes(h, 20, objects.AddressesMax+1, func(o *history.Object) { o.Annotations[objects.OverCapacityAnnotation] = "truncated" })
		}},
		{name: "deletes a terminating object 6 times", want: Fail, evidence: "sent 6 deletes of replicasets.apps ns/web after it had received its deletionTimestamp", build: func(h *historyBuilder) {
			set := terminating(h, reported(h))
			h.deliver(set)
			for range 6 {
				deletes(h, set)
			}
		}},
		{name: "deletes a terminating object 5 times, and then its successor", want: Pass, build: func(h *historyBuilder) {
			set := reported(h)
			for _, uid := range []string{"first", "second"} {
				now := terminating(h, set)
				h.deliver(now)
				for range 5 {
					deletes(h, now)
				}
				h.remove(now)
				successor := *set
				successor.UID = types.UID(uid)
				set = h.commit(history.Added, successor)
				h.deliver(set)
			}
		}},
		{name: "deletes an object that is terminating, and has not received this", want: NotExercised, build: func(h *historyBuilder) {
			set := terminating(h, reported(h))
			for range 6 {
				h.send("delete", "", set).answered(200)
			}
		}},
		{name: "deletes a terminating object 6 times, and one delete changes it", want: Pass, build: func(h *historyBuilder) {
			set := terminating(h, reported(h))
			h.deliver(set)
			for range 5 {
				deletes(h, set)
			}
			step := h.send("delete", "", set)
			set = h.commit(history.Modified, *set)
			step.made = set
			step.answered(200)
		}},
		{name: "deletes of a terminating object fail", want: Pass, build: func(h *historyBuilder) {
			set := terminating(h, reported(h))
			h.deliver(set)
			for range 20 {
				h.send("delete", "", set).answered(500)
				h.wait(time.Second)
			}
		}},
	})
}
