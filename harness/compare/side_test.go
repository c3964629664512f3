package compare

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// historyBuilder builds the history of a Deployment with its ReplicaSet and pods. The random
// suffixes of names derive from a seed.
type historyBuilder struct {
	seed    string
	records []*history.Record
}

func (t *historyBuilder) add(r history.Record) {
	r.Seq = int64(len(t.records) + 1)
	t.records = append(t.records, &r)
}

func (t *historyBuilder) all() iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range t.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (t *historyBuilder) commit(kind history.EventType, resource, name string, owner *history.Owner, body string) {
	o := history.Object{
		Ref:  history.Ref{Resource: resource, Namespace: "ns", Name: name, UID: types.UID(t.seed + resource + name), Version: history.Version(len(t.records))},
		Body: json.RawMessage(body),
	}
	if owner != nil {
		owner.Controller = true
		o.Owners = []history.Owner{*owner}
	}
	t.add(history.Record{Commit: &history.Commit{Type: kind, Object: o}})
}

// set adds a version of the ReplicaSet that belongs to the Deployment web and has the given image.
func (t *historyBuilder) set(image string, replicas int) {
	t.commit(history.Modified, replicaSets, "web-"+t.seed+image, &history.Owner{Kind: "Deployment", Name: "web"},
		fmt.Sprintf(`{"spec":{"replicas":%d,"template":{"metadata":{"labels":{"app":"web","pod-template-hash":%q}},"spec":{"image":%q}}}}`, replicas, t.seed, image))
}

func (t *historyBuilder) pod(name, image, body string) {
	t.commit(history.Modified, pods, "web-"+t.seed+image+"-"+name+t.seed, &history.Owner{Kind: "ReplicaSet", Name: "web-" + t.seed + image}, body)
	t.records[len(t.records)-1].Commit.Object.GenerateName = "web-" + t.seed + image + "-"
}

// rollout builds a complete run whose times and addresses depend on the seed.
func rollout(seed string) *historyBuilder {
	t := &historyBuilder{seed: seed}
	minute := fmt.Sprintf("2026-01-02T03:%02d:05Z", len(seed))
	t.commit(history.Added, deployments, "web", nil, fmt.Sprintf(
		`{"spec":{"replicas":2},"status":{"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","lastUpdateTime":%q,"message":"ReplicaSet \"web-%sv1\" has progressed."}]}}`, minute, seed))
	t.set("v1", 0)
	t.set("v1", 2)
	t.pod("a", "v1", fmt.Sprintf(`{"spec":{"nodeName":"node-%s"},"status":{"podIP":"10.0.0.%d","phase":"Running"}}`, seed, len(seed)))
	t.pod("b", "v1", fmt.Sprintf(`{"status":{"podIP":"10.0.1.%d","phase":"Running"}}`, len(seed)))
	t.commit(history.Added, "endpoints", "web", nil, fmt.Sprintf(`{"subsets":[{"addresses":[{"ip":"10.0.0.%d","targetRef":{"name":"web-%sv1-a%s","uid":%q}}]}]}`, len(seed), seed, seed, seed))
	return t
}

func (t *historyBuilder) side(test *testing.T, results ...check.Result) *Side {
	test.Helper()
	t.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	side, err := SideOf(t.all(), results)
	if err != nil {
		test.Fatal(err)
	}
	return side
}

// TestSame checks that two runs are equal if only random names, times and addresses differ.
func TestSame(t *testing.T) {
	a, b := rollout("x7").side(t), rollout("qrs").side(t)
	for _, d := range Differences(a, b) {
		t.Errorf("%s: %s", d.Classification, d)
	}
	if diff := Diff(a, b); diff != "" {
		t.Errorf("end states (-base +subject):\n%s", diff)
	}
	var names []string
	for name := range a.End {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) != 4 || !strings.HasPrefix(names[2], "pods of replicasets.apps web-<") || a.End[names[2]]["not ready"] != "2" {
		t.Errorf("objects %q, of the pods %q; want a Deployment, Endpoints, two pods and a ReplicaSet", names, a.End[names[2]])
	}
}

// TestDifferences checks that each possible difference between two runs gets the right
// classification.
func TestDifferences(t *testing.T) {
	for _, test := range []struct {
		name          string
		subject, base func(*historyBuilder)
		ours, theirs  check.Verdict
		want          []string
	}{
		{name: "a field", subject: func(x *historyBuilder) {
			x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":3}}`)
		},
			base: func(x *historyBuilder) {
				x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":2}}`)
			},
			want: []string{"undeclared: end state deployments.apps web, spec.replicas: 3; 2"}},
		{name: "a collision", base: func(x *historyBuilder) {
			x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":2},"status":{"collisionCount":1}}`)
		}, subject: func(x *historyBuilder) {
			x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":2}}`)
		},
			want: []string{"accepted: end state deployments.apps web, status.collisionCount: none; 1"}},
		{name: "an object", base: func(x *historyBuilder) { x.commit(history.Added, "services", "web", nil, ``) },
			want: []string{"undeclared: end state services web, the object: none; exists"}},
		{name: "an object that was deleted is no difference", base: func(x *historyBuilder) {
			x.commit(history.Added, "services", "web", nil, ``)
			x.commit(history.Deleted, "services", "web", nil, ``)
		}},
		{name: "a commit after the end is no difference", base: func(x *historyBuilder) {
			x.add(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
			x.commit(history.Added, "services", "web", nil, ``)
		}},
		{name: "how far it was scaled on the way", subject: func(x *historyBuilder) { x.set("v1", 5); x.set("v1", 2) }, base: func(x *historyBuilder) { x.set("v1", 4); x.set("v1", 2) },
			want: []string{"accepted: milestone replicasets.apps web-<>, sizes: 0, 5, 2; 0, 4, 2"}},
		{name: "the steps on the way to a size are not compared", subject: func(x *historyBuilder) { x.set("v1", 3); x.set("v1", 5) }, base: func(x *historyBuilder) { x.set("v1", 5) }},
		{name: "an event", subject: func(x *historyBuilder) { x.event("SuccessfulCreate") },
			want: []string{"undeclared: milestone ReplicaSet, events: SuccessfulCreate; none"}},
		{name: "an event of a write", base: func(x *historyBuilder) { x.event("ScalingReplicaSet") },
			want: []string{"undeclared: milestone ReplicaSet, events: none; ScalingReplicaSet"}},
		{name: "an event of a write whose answer was lost", base: func(x *historyBuilder) { x.event("ScalingReplicaSet") },
			subject: func(x *historyBuilder) { x.answered(history.Response{Reached: true, ServerCode: 200}) },
			want:    []string{"accepted: milestone ReplicaSet, events: none; ScalingReplicaSet"}},
		{name: "an event of a write whose answer was lost by the other", subject: func(x *historyBuilder) {
			x.event("ScalingReplicaSet")
			x.answered(history.Response{Reached: true, ServerCode: 200})
		}, want: []string{"undeclared: milestone ReplicaSet, events: ScalingReplicaSet; none"}},
		{name: "an event of a write that was refused", base: func(x *historyBuilder) { x.event("ScalingReplicaSet") },
			subject: func(x *historyBuilder) { x.answered(history.Response{Reached: true, ServerCode: 409, Code: 409}) },
			want:    []string{"undeclared: milestone ReplicaSet, events: none; ScalingReplicaSet"}},
		{name: "an event of a replica that ended", base: func(x *historyBuilder) { x.event("ScalingReplicaSet") },
			subject: func(x *historyBuilder) {
				x.add(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
			},
			want: []string{"accepted: milestone ReplicaSet, events: none; ScalingReplicaSet"}},
		{name: "an event behind one that got no answer", base: func(x *historyBuilder) { x.event("SuccessfulCreate") },
			subject: func(x *historyBuilder) { x.eventAnswered(history.Response{}) },
			want:    []string{"accepted: milestone ReplicaSet, events: none; SuccessfulCreate"}},
		{name: "an event after a retry that got a response", base: func(x *historyBuilder) { x.event("SuccessfulCreate") },
			subject: func(x *historyBuilder) {
				x.eventAnswered(history.Response{})
				x.eventAnswered(history.Response{Code: 201})
			},
			want: []string{"undeclared: milestone ReplicaSet, events: none; SuccessfulCreate"}},
		{name: "an event behind one that was refused", base: func(x *historyBuilder) { x.event("SuccessfulCreate") },
			subject: func(x *historyBuilder) { x.eventAnswered(history.Response{Code: 500}) },
			want:    []string{"undeclared: milestone ReplicaSet, events: none; SuccessfulCreate"}},
		{name: "an event behind one of the other's that got no answer", base: func(x *historyBuilder) {
			x.event("SuccessfulCreate")
			x.eventAnswered(history.Response{})
		}, want: []string{"undeclared: milestone ReplicaSet, events: none; SuccessfulCreate"}},
		{name: "sizes under a Deployment that is paused", subject: paused(3), base: paused(2),
			want: []string{
				"accepted: end state replicasets.apps web-<>, spec.replicas: 3; 2",
				"accepted: milestone replicasets.apps web-<>, sizes: 0, 3; 0, 2",
			}},
		{name: "pods under a Deployment that is paused", subject: paused(2), base: func(x *historyBuilder) { paused(2)(x); x.pod("c", "v1", "") },
			want: []string{"undeclared: end state pods of replicasets.apps web-<>, not ready: 2; 3"}},
		{name: "a condition of a ReplicaSet whose Deployment exists", base: func(x *historyBuilder) {
			x.commit(history.Modified, replicaSets, "web-qrsv1", &history.Owner{Kind: "Deployment", Name: "web"}, `{"spec":{"replicas":2},"status":{"conditions":[{"type":"Odd","status":"True"}]}}`)
			x.commit(history.Deleted, replicaSets, "web-qrsv1", nil, ``)
		}, subject: func(x *historyBuilder) { x.commit(history.Deleted, replicaSets, "web-x7v1", nil, ``) },
			want: []string{"undeclared: milestone replicasets.apps web-<>, conditions: none; Odd=True "}},
		{name: "pods of a set that a Deployment left", subject: deploymentDeleted(2), base: func(x *historyBuilder) { deploymentDeleted(2)(x); x.pod("c", "v1", "") },
			want: []string{"undeclared: end state pods of replicasets.apps web-<>, not ready: 2; 3"}},
		{name: "sizes under a Deployment of which one is paused", subject: paused(3), base: func(x *historyBuilder) { x.set("v1", 2) },
			want: []string{
				"undeclared: end state deployments.apps web, spec.paused: true; none",
				"undeclared: end state replicasets.apps web-<>, spec.replicas: 3; 2",
				"accepted: milestone replicasets.apps web-<>, sizes: 0, 3; 0, 2",
			}},
		{name: "the ReplicaSet of a deleted Deployment", subject: deploymentDeleted(3), base: deploymentDeleted(2),
			want: []string{
				"accepted: end state replicasets.apps web-<>, spec.replicas: 3; 2",
				"accepted: milestone replicasets.apps web-<>, sizes: 0, 3; 0, 2",
			}},
		{name: "the ReplicaSet of a Deployment that only one run deleted", subject: deploymentDeleted(3), base: func(x *historyBuilder) { x.set("v1", 2) },
			want: []string{
				"undeclared: end state deployments.apps web, the object: none; spec.replicas: 2",
				"undeclared: end state replicasets.apps web-<>, spec.replicas: 3; 2",
				"accepted: milestone replicasets.apps web-<>, sizes: 0, 3; 0, 2",
			}},
		{name: "a condition of a deleted Deployment", subject: deploymentDeleted(2), base: func(x *historyBuilder) {
			x.commit(history.Modified, deployments, "web", nil, `{"spec":{"replicas":2},"status":{"conditions":[{"type":"Odd","status":"True"}]}}`)
			deploymentDeleted(2)(x)
		}, want: []string{"accepted: milestone deployments.apps web, conditions: none; Odd=True "}},
		{name: "an annotation of how many there may be", subject: func(x *historyBuilder) { x.annotated("max-replicas", "3") }, base: func(x *historyBuilder) { x.annotated("max-replicas", "4") },
			want: []string{"undeclared: end state replicasets.apps web-<>, metadata.annotations.deployment.kubernetes.io/max-replicas: 3; 4"}},
		{name: "the message of a condition", subject: func(x *historyBuilder) { x.set("v2", 0); x.progressed("web-x7v1") }, base: func(x *historyBuilder) { x.set("v2", 0); x.progressed("web-qrsv2") },
			want: []string{"accepted: end state deployments.apps web, status.conditions[Progressing].message: web-<>; web-<>"}},
		{name: "the message of a condition from before there was a ReplicaSet", subject: func(x *historyBuilder) { x.progressed(`Deployment "web" is well`) }, base: func(x *historyBuilder) { x.progressed("web-qrsv1") },
			want: []string{`accepted: end state deployments.apps web, status.conditions[Progressing].message: Deployment "web" is well; web-<>`}},
		{name: "the message of a condition that is of no ReplicaSet", subject: func(x *historyBuilder) { x.progressed("fine") }, base: func(x *historyBuilder) { x.progressed("web-qrsv1") },
			want: []string{"undeclared: end state deployments.apps web, status.conditions[Progressing].message: fine; web-<>"}},
		{name: "a pause that one did not see", base: func(x *historyBuilder) {
			x.records[0].Commit.Object.Body = json.RawMessage(strings.Replace(string(x.records[0].Commit.Object.Body), `"conditions":[`, `"conditions":[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"},`, 1))
			x.progressed("web")
		}, subject: func(x *historyBuilder) { x.progressed("web") },
			want: []string{"accepted: milestone deployments.apps web, conditions: none; Progressing=Unknown DeploymentPaused"}},
		{name: "an event of a surplus", base: func(x *historyBuilder) { x.event("SuccessfulDelete") },
			want: []string{"accepted: milestone ReplicaSet, events: none; SuccessfulDelete"}},
		{name: "a pod of another owner", base: func(x *historyBuilder) {
			x.commit(history.Added, pods, "guarded", &history.Owner{Kind: "ConfigMap", Name: "foreign"}, ``)
		}, want: []string{"accepted: end state pods of configmaps foreign, not ready: none; 1"}},
		{name: "an orphan", base: func(x *historyBuilder) { x.commit(history.Added, pods, "alone", nil, ``) },
			want: []string{"undeclared: end state pods of no owner, not ready: none; 1"}},
		{name: "the size that a ReplicaSet was last scaled for", subject: func(x *historyBuilder) { x.sized(2, "3") }, base: func(x *historyBuilder) { x.sized(2, "4") },
			want: []string{"undeclared: end state replicasets.apps web-<>, metadata.annotations.deployment.kubernetes.io/desired-replicas: 3; 4"}},
		{name: "the size that an old ReplicaSet was last scaled for", subject: func(x *historyBuilder) { x.sized(0, "3") }, base: func(x *historyBuilder) { x.sized(0, "4") }},
		{name: "an event of a failure", base: func(x *historyBuilder) { x.event("FailedCreate") },
			want: []string{"accepted: milestone ReplicaSet, events: none; FailedCreate"}},
		{name: "a pod that failed", subject: func(x *historyBuilder) { x.pod("c", "v1", `{"status":{"phase":"Failed"}}`) },
			want: []string{"accepted: end state pods of replicasets.apps web-<>, failed or succeeded: 1; none"}},
		{name: "a pod too many", subject: func(x *historyBuilder) { x.pod("c", "v1", ``) },
			want: []string{"undeclared: end state pods of replicasets.apps web-<>, not ready: 3; 2"}},
		{name: "a template that only one has seen", subject: func(x *historyBuilder) { x.set("v2", 0) },
			want: []string{
				"accepted: end state replicasets.apps web-<>, the object: spec.replicas: 0; none",
				"accepted: milestone deployments.apps web, rollout: replicasets.apps web-<>, replicasets.apps web-<>; replicasets.apps web-<>",
				"accepted: milestone replicasets.apps web-<>, sizes: 0; none",
			}},
		{name: "only ours fails", ours: check.Fail, theirs: check.Pass, want: []string{"undeclared: verdict no-writes-when-settled, verdict: fail; pass"}},
		{name: "only the base fails", ours: check.Pass, theirs: check.Fail, want: []string{"undeclared: verdict no-writes-when-settled, verdict: pass; fail"}},
		{name: "both fail", ours: check.Fail, theirs: check.Fail, want: []string{"both wrong: verdict no-writes-when-settled, verdict: fail; fail"}},
		{name: "one was not exercised", ours: check.Pass, theirs: check.NotExercised, want: []string{"accepted: verdict no-writes-when-settled, verdict: pass; not-exercised"}},
		{name: "nothing is known of one", ours: check.Pass, theirs: check.Unknown, want: []string{"undeclared: verdict no-writes-when-settled, verdict: pass; unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			side := func(seed string, build func(*historyBuilder), verdict check.Verdict) *Side {
				x := rollout(seed)
				if build != nil {
					build(x)
				}
				return x.side(t, check.Result{Check: "no-writes-when-settled", Verdict: verdict})
			}
			var got []string
			for _, d := range Differences(side("x7", test.subject, test.ours), side("qrs", test.base, test.theirs)) {
				got = append(got, templatePattern.ReplaceAllString(string(d.Classification)+": "+d.String(), "<>"))
				if d.Classification != Undeclared && d.Classification != BothWrong && d.Reason == "" {
					t.Errorf("%s: no reason", d)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// paused returns a function that adds a paused Deployment and a ReplicaSet with the given number
// of replicas.
func paused(replicas int) func(*historyBuilder) {
	return func(x *historyBuilder) {
		last := x.records[0].Commit.Object
		last.Body = json.RawMessage(strings.Replace(string(last.Body), `"replicas":2`, `"replicas":2,"paused":true`, 1))
		x.add(history.Record{Commit: &history.Commit{Type: history.Modified, Object: last}})
		x.set("v1", replicas)
	}
}

// deploymentDeleted returns a function that deletes the Deployment. The Deployment's ReplicaSet
// remains, with the given number of replicas.
func deploymentDeleted(replicas int) func(*historyBuilder) {
	return func(x *historyBuilder) {
		x.commit(history.Deleted, deployments, "web", nil, ``)
		x.set("v1", replicas)
	}
}

// annotated adds a version of the ReplicaSet with one of the annotations that the Deployment
// controller writes.
func (t *historyBuilder) annotated(name, value string) {
	t.set("v1", 2)
	t.records[len(t.records)-1].Commit.Object.Annotations = map[string]string{"deployment.kubernetes.io/" + name: value}
}

// answered adds a request that writes a ReplicaSet, and the given response.
func (t *historyBuilder) answered(response history.Response) {
	t.asked("update", replicaSets, response)
}

// eventAnswered adds a request that patches an Event, and the given response.
func (t *historyBuilder) eventAnswered(response history.Response) {
	t.asked("patch", "events", response)
}

func (t *historyBuilder) asked(verb, resource string, response history.Response) {
	response.ID = uint64(len(t.records) + 1)
	t.add(history.Record{Request: &history.Request{ID: response.ID, Verb: verb, Resource: resource}})
	t.add(history.Record{Response: &response})
}

// progressed adds a version of the Deployment with the given message in the condition Progressing.
func (t *historyBuilder) progressed(message string) {
	t.commit(history.Modified, deployments, "web", nil, fmt.Sprintf(
		`{"spec":{"replicas":2},"status":{"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable","message":%q}]}}`, message))
}

// sized adds a version of the ReplicaSet whose annotations contain the Deployment's size.
func (t *historyBuilder) sized(replicas int, desired string) {
	t.set("v1", replicas)
	t.records[len(t.records)-1].Commit.Object.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": desired}
}

// templatePattern matches the short hash of a pod template in a stable name, such as <a1b2>.
var templatePattern = regexp.MustCompile(`<[0-9a-f]{4}>`)

func (t *historyBuilder) event(reason string) {
	t.add(history.Record{Request: &history.Request{Verb: "create", Resource: "events", Object: &history.Object{
		Body: json.RawMessage(fmt.Sprintf(`{"reason":%q,"involvedObject":{"kind":"ReplicaSet"}}`, reason)),
	}}})
}

// TestRolloutOrder checks that the stable names of ReplicaSets depend only on their pod templates.
// The order in which two runs created the ReplicaSets can then be compared.
func TestRolloutOrder(t *testing.T) {
	forth, back := rollout("x7"), rollout("qrs")
	for _, image := range []string{"v2", "v3"} {
		forth.set(image, 1)
	}
	for _, image := range []string{"v3", "v2"} {
		back.set(image, 1)
	}
	differences := Differences(forth.side(t), back.side(t))
	if len(differences) != 1 || differences[0].What != string(Rollout) || differences[0].Classification != Undeclared {
		t.Errorf("differences %v; want one of the rollout", differences)
	}
}

// TestDeliberate checks that the rules in Deliberate cover only differences of our controllers.
// The rules must not cover a check that our controllers fail.
func TestDeliberate(t *testing.T) {
	side := func(subject string, verdict check.Verdict) *Side {
		x := &historyBuilder{}
		x.add(history.Record{Start: &history.Start{Subject: subject}})
		return x.side(t, check.Result{Check: "rollout-complete", Verdict: verdict})
	}
	for _, test := range []struct {
		subject, base string
		ours, theirs  check.Verdict
		want          Classification
	}{
		{"ours", "upstream", check.Pass, check.Fail, Declared},
		{"ours", "upstream", check.Fail, check.Pass, Undeclared},
		{"ours", "upstream", check.Pass, check.Unknown, Undeclared},
		{"exec:./kcm", "upstream", check.Pass, check.Fail, Undeclared},
		{"ours", "ours", check.Pass, check.Fail, Undeclared},
	} {
		got := Differences(side(test.subject, test.ours), side(test.base, test.theirs))
		if len(got) != 1 || got[0].Classification != test.want {
			t.Errorf("%s on %s, %s on %s: %v; want one difference, %s", test.ours, test.subject, test.theirs, test.base, got, test.want)
		}
	}
	for _, rule := range Deliberate {
		known := slices.ContainsFunc(check.KnownIssues, func(w *check.KnownIssue) bool { return rule.Reason == w.String() })
		if rule.Issue == "" && !known {
			t.Errorf("%q is declared without an issue and is no known upstream issue", rule.Reason)
		}
	}
}

// TestEndpoints checks which differences of Endpoints are allowed. Endpoints may differ in the pods that users created,
// and upstream may delete Endpoints at its start.
func TestEndpoints(t *testing.T) {
	const address, ports = "addresses[ip: <ip>; targetRef.kind: Pod; targetRef.name: %s; targetRef.namespace: gauntlet]: 1 times; ", "ports[port: 80]: 1 times]"
	subset := func(pods ...string) map[string]string {
		text := "subsets["
		for _, name := range pods {
			text += fmt.Sprintf(address, name)
		}
		return map[string]string{text + ports: "1 times"}
	}
	const object, service = "endpoints gauntlet/web", "services gauntlet/web"
	manual, selecting := map[string]string{"spec.type": "ClusterIP"}, map[string]string{"spec.selector.app": "web"}
	for _, test := range []struct {
		name         string
		ours, theirs map[string]map[string]string
		want         Classification
	}{
		{"another pod of a user", map[string]map[string]string{object: subset("loose-0", "web-*")}, map[string]map[string]string{object: subset("loose-1", "loose-2", "web-*")}, Accepted},
		{"no pod of a user", map[string]map[string]string{object: subset("loose-0")}, map[string]map[string]string{object: {}}, Accepted},
		{"another generated pod", map[string]map[string]string{object: subset("loose-0", "web-*")}, map[string]map[string]string{object: subset("loose-0")}, Undeclared},
		{"deleted by upstream", map[string]map[string]string{object: {}, service: manual}, map[string]map[string]string{service: manual}, Declared},
		{"deleted by ours", map[string]map[string]string{service: manual}, map[string]map[string]string{object: {}, service: manual}, Undeclared},
		{"deleted, with a selector", map[string]map[string]string{object: {}, service: selecting}, map[string]map[string]string{service: selecting}, Undeclared},
	} {
		differences := Differences(&Side{Subject: "ours", End: test.ours, names: newNames(nil)}, &Side{Subject: "upstream", End: test.theirs, names: newNames(nil)})
		if len(differences) == 0 {
			t.Errorf("%s: found no difference; want %s", test.name, test.want)
		}
		for _, d := range differences {
			if d.Classification != test.want {
				t.Errorf("%s: got %s, want %s: %s", test.name, d.Classification, test.want, d)
			}
		}
	}
}

// TestKnownIssues checks that differences because of a known upstream issue are declared. These
// are the verdict, and the end states of the affected objects and their dependents. For the check
// status, only differences in an object's status are declared. Differences of other objects, or
// because of evidence in another verdict, are undeclared.
func TestKnownIssues(t *testing.T) {
	var (
		spec   = deployments + " web, spec.replicas"
		status = deployments + " web, status.replicas"
		pods   = "pods of replicasets.apps web-<>, not ready"
		made   = replicaSets + " web-<>, the object"
		other  = deployments + " shop, spec.replicas"
	)
	for _, w := range check.KnownIssues {
		for _, test := range []struct {
			name         string
			ours, theirs check.Verdict
			verdict      Classification // expected for the verdicts, if they differ
			excused      bool
		}{
			{"known", check.Pass, check.KnownUpstream, Declared, true},
			{"both have it", check.KnownUpstream, check.KnownUpstream, "", true},
			{"ours fails", check.Fail, check.KnownUpstream, Undeclared, true},
			{"looks like it", check.NotExercised, check.Unknown, Undeclared, false},
		} {
			t.Run(w.Slug+", "+test.name, func(t *testing.T) {
				want := map[string]Classification{spec: Undeclared, status: Undeclared, pods: Undeclared, made: Undeclared, other: Undeclared, deployments + " shop, status.replicas": Undeclared}
				if test.excused {
					want[status] = Declared
				}
				if test.excused && w.Check != "status" {
					want[spec], want[pods], want[made] = Declared, Declared, Declared
				}
				if test.verdict != "" {
					want[w.Check+", verdict"] = test.verdict
				}
				got := map[string]Classification{}
				mine := ending("x7", ours, 2, check.Result{Check: w.Check, Verdict: test.ours}, w)
				theirs := ending("qrs", "upstream", 3, check.Result{Check: w.Check, Verdict: test.theirs}, w)
				for _, d := range Differences(mine(t), theirs(t)) {
					if d.Aspect == Verdicts || d.Aspect == EndStates {
						got[templatePattern.ReplaceAllString(d.Object, "<>")+", "+d.What] = d.Classification
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("standings (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// ending returns a run of two Deployments with n replicas. One Deployment shows a known upstream
// issue. In a run of our controllers, this Deployment has one more ReplicaSet.
func ending(seed, subject string, n int, result check.Result, w *check.KnownIssue) func(*testing.T) *Side {
	x := rollout(seed)
	x.records = append([]*history.Record{{Start: &history.Start{Subject: subject}}}, x.records...)
	for _, name := range []string{"web", "shop"} {
		x.commit(history.Modified, deployments, name, nil, fmt.Sprintf(`{"spec":{"replicas":%d},"status":{"replicas":%d}}`, n, n))
	}
	for i := range n {
		x.pod(fmt.Sprint("more", i), "v1", "")
	}
	if subject == ours {
		x.set("v2", 1)
	}
	result.Evidence = []check.Evidence{{Object: &history.Ref{Resource: deployments, Namespace: "ns", Name: "web"}, KnownIssue: w.Slug}}
	return func(t *testing.T) *Side { return x.side(t, result) }
}

// TestIsOrIsOwnedBy checks that isOrIsOwnedBy finds an object's dependents, pods and Endpoints.
func TestIsOrIsOwnedBy(t *testing.T) {
	side := rollout("x7").side(t)
	template := templatePattern.FindString(strings.Join(slices.Collect(maps.Keys(side.End)), " "))
	for _, test := range []struct {
		name, resource, object string
		want                   bool
	}{
		{deployments + " web", deployments, "web", true},
		{replicaSets + " web-" + template, deployments, "web", true},
		{podsOf + replicaSets + " web-" + template, deployments, "web", true},
		{podsOf + replicaSets + " web-" + template, replicaSets, "web-x7v1", true},
		{"endpoints web", "services", "web", true},
		{"endpoints web", "endpoints", "web", true},
		{deployments + " web", replicaSets, "web-x7v1", false},
		{deployments + " web", deployments, "shop", false},
		{"endpoints web", "services", "shop", false},
		{"endpoints web", deployments, "web", false},
	} {
		if got := side.isOrIsOwnedBy(test.name, history.Ref{Resource: test.resource, Namespace: "ns", Name: test.object}, side); got != test.want {
			t.Errorf("%s is of %s %s: %v; want %v", test.name, test.resource, test.object, got, test.want)
		}
	}
}

// TestMaxPods checks when a different annotation max-replicas is declared. The annotation of our
// controllers must be correct, or the Deployment must not exist.
func TestMaxPods(t *testing.T) {
	side := func(subject, most, deployment string) *Side {
		x := rollout("x7")
		x.records = append([]*history.Record{{Start: &history.Start{Subject: subject}}}, x.records...)
		if deployment == "" {
			x.commit(history.Deleted, deployments, "web", nil, ``)
		} else {
			x.commit(history.Modified, deployments, "web", nil, deployment)
		}
		x.annotated("max-replicas", most)
		return x.side(t)
	}
	const percent = `{"spec":{"replicas":5,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%"}}}}`
	for _, test := range []struct {
		name, deployment, ours, base string
		want                         Classification
	}{
		{"the base's is stale", percent, "7", "4", Declared},
		{"ours is stale", percent, "4", "7", Undeclared},
		{"both are", percent, "4", "5", Undeclared},
		{"a number", `{"spec":{"replicas":5,"strategy":{"rollingUpdate":{"maxSurge":3}}}}`, "8", "7", Declared},
		{"no surge", `{"spec":{"replicas":5,"strategy":{"type":"Recreate"}}}`, "5", "7", Declared},
		{"the Deployment was deleted", "", "4", "7", Declared},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Differences(side("ours", test.ours, test.deployment), side("upstream", test.base, test.deployment))
			if len(got) != 1 || got[0].Classification != test.want {
				t.Errorf("%v; want one difference, %s", got, test.want)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	for in, want := range map[string]string{
		"":            "",
		"3":           "3",
		"0 1 2 3":     "0 3",
		"0 5 3 1 4 4": "0 5 1 4",
		"9 8 7":       "9 7",
	} {
		if got := strings.Join(Sizes.normalize(strings.Fields(in)), " "); got != want {
			t.Errorf("turns of %q: %q; want %q", in, got, want)
		}
	}
}

// database builds a complete run with a custom resource. The resource's object controls a
// StatefulSet and objects with random names.
func database(seed string) *historyBuilder {
	t := &historyBuilder{seed: seed}
	main := &history.Owner{Kind: "Database", Name: "main"}
	minute := fmt.Sprintf("2026-01-02T03:%02d:05Z", len(seed))
	t.commit(history.Added, "databases.example.com", "main", nil, fmt.Sprintf(
		`{"spec":{"replicas":2},"status":{"phase":"Running","observedGeneration":1,"conditions":[{"type":"Ready","status":"True","reason":"Up","lastTransitionTime":%q}]}}`, minute))
	t.commit(history.Added, "statefulsets.apps", "main-data", main, `{"spec":{"replicas":2}}`)
	for _, name := range []string{"main-data-0", "main-data-1"} {
		t.generated(pods, "main-data-", name, &history.Owner{Kind: "StatefulSet", Name: "main-data"}, ``)
	}
	t.commit(history.Added, "persistentvolumeclaims", "data-0", main, fmt.Sprintf(`{"spec":{"volumeName":"pvc-%s"},"status":{"phase":"Bound"}}`, seed))
	t.records[len(t.records)-1].Commit.Object.UID = types.UID(seed)
	t.records[len(t.records)-1].Commit.Object.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": seed}
	for _, name := range []string{"a", "b"} {
		t.generated("backups.example.com", "main-", "main-"+name+seed, main, fmt.Sprintf(`{"status":{"log":"main-%s%s is done"}}`, name, seed))
	}
	return t
}

// generated adds an object with the given generateName and name.
func (t *historyBuilder) generated(resource, generateName, name string, owner *history.Owner, body string) {
	t.commit(history.Added, resource, name, owner, body)
	t.records[len(t.records)-1].Commit.Object.GenerateName = generateName
}

// TestGenericObjects checks that custom resources and other Kinds without a contract are compared
// too: by stable names, with their conditions.
func TestGenericObjects(t *testing.T) {
	ready := func(status string) func(*historyBuilder) {
		return func(x *historyBuilder) {
			last := x.records[0].Commit.Object
			for _, s := range []string{status, "True"} {
				last.Body = json.RawMessage(fmt.Sprintf(`{"spec":{"replicas":2},"status":{"phase":"Running","observedGeneration":1,"conditions":[{"type":"Ready","status":%q,"reason":"Up"}]}}`, s))
				x.add(history.Record{Commit: &history.Commit{Type: history.Modified, Object: last}})
			}
			last.Body = x.records[0].Commit.Object.Body
			x.add(history.Record{Commit: &history.Commit{Type: history.Modified, Object: last}})
		}
	}
	thirdPod := func(x *historyBuilder) {
		x.generated(pods, "main-data-", "main-data-2", &history.Owner{Kind: "StatefulSet", Name: "main-data"}, ``)
	}
	for _, test := range []struct {
		name    string
		subject func(*historyBuilder)
		managed []string // resources that the subject reconciles in addition
		want    []string
	}{
		{name: "random names, times and pods are the same"},
		{name: "one more object with a random name", subject: func(x *historyBuilder) {
			x.generated("backups.example.com", "main-", "main-c"+x.seed, &history.Owner{Kind: "Database", Name: "main"}, ``)
		}, want: []string{"undeclared: end state backups.example.com main-#3, the object: exists; none"}},
		{name: "a random name without an owner", subject: func(x *historyBuilder) {
			x.generated("backups.example.com", "manual-", "manual-"+x.seed, nil, ``)
		}, want: []string{"undeclared: end state backups.example.com manual-#1, the object: exists; none"}},
		{name: "a field of a fixed name", subject: func(x *historyBuilder) {
			x.commit(history.Modified, "statefulsets.apps", "main-data", &history.Owner{Kind: "Database", Name: "main"}, `{"spec":{"replicas":3}}`)
		}, want: []string{"undeclared: end state statefulsets.apps main-data, spec.replicas: 3; 2"}},
		{name: "a condition that was not True", subject: ready("False"),
			want: []string{"accepted: milestone databases.example.com main, conditions: Ready=False Up; none"}},
		{name: "a condition that was True", subject: func(x *historyBuilder) {
			x.commit(history.Modified, "statefulsets.apps", "main-data", &history.Owner{Kind: "Database", Name: "main"}, `{"spec":{"replicas":2},"status":{"conditions":[{"type":"Odd","status":"True","reason":"Why"}]}}`)
			x.commit(history.Modified, "statefulsets.apps", "main-data", &history.Owner{Kind: "Database", Name: "main"}, `{"spec":{"replicas":2}}`)
		}, want: []string{"undeclared: milestone statefulsets.apps main-data, conditions: Odd=True Why; none"}},
		{name: "conditions of another shape", subject: func(x *historyBuilder) {
			x.commit(history.Added, "caches.example.com", "main", nil, `{"status":{"conditions":"fine"}}`)
		}, want: []string{"undeclared: end state caches.example.com main, the object: exists; none"}},
		{name: "a pod of an owner that the subject does not reconcile", subject: thirdPod,
			want: []string{"accepted: end state pods of statefulsets.apps main-data, not ready: 3; 2"}},
		{name: "a pod of an owner that the subject reconciles", subject: thirdPod, managed: []string{"statefulsets.apps"},
			want: []string{"undeclared: end state pods of statefulsets.apps main-data, not ready: 3; 2"}},
		{name: "events are no objects", subject: func(x *historyBuilder) { x.commit(history.Added, "events", "main.17", nil, ``) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := database("x7")
			if test.subject != nil {
				test.subject(x)
			}
			subject, base := x.side(t), database("qrs").side(t)
			subject.managed = append(subject.managed, test.managed...)
			var got []string
			for _, d := range Differences(subject, base) {
				got = append(got, string(d.Classification)+": "+d.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
	want := []string{"backups.example.com main-#1", "backups.example.com main-#2", "databases.example.com main", "persistentvolumeclaims data-0", "pods of statefulsets.apps main-data", "statefulsets.apps main-data"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(database("x7").side(t).End))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
