package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

func TestMatchesTemplateOfPods(t *testing.T) {
	// fullTemplate is a pod template that has a value in each field that a history records.
	fullTemplate := fields{
		"metadata": fields{
			"labels":      fields{"app": "web", "tier": "front"},
			"annotations": fields{"note": "n"},
			"finalizers":  []string{"example.com/hold"},
		},
		"spec": fields{"containers": []any{fields{"name": "main", "image": "app:1", "command": []string{"sleep"}}}},
	}
	right := func(owner *history.Object) history.Object {
		return history.Object{
			GenerateName: owner.Name + "-", Owners: controlledBy(owner), Finalizers: []string{"example.com/hold"},
			Labels: map[string]string{"app": "web", "tier": "front"}, Annotations: map[string]string{"note": "n"},
			Body: encoded(fields{"spec": fields{"containers": []any{fields{"name": "main", "image": "app:1"}}}}),
		}
	}
	creates := func(h *historyBuilder, o history.Object) {
		h.request(history.Request{Verb: "create", Resource: objects.PodResource, Namespace: namespace, Object: &o})
	}
	// except returns a function that builds a history in which a process creates a pod. The
	// function change makes a correct pod wrong.
	except := func(change func(*history.Object)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			rs := h.revise("web", "spec", fields{"template": fullTemplate})
			h.deliver(rs)
			pod := right(rs)
			pod.Labels = maps.Clone(pod.Labels)
			change(&pod)
			creates(h, pod)
		}
	}
	runTestCases(t, "matches-template", []testCase{
		{name: "pod as in the template", want: Pass, build: except(func(*history.Object) {})},
		{name: "another generateName", want: Fail, evidence: `with generateName "pod-"`, build: except(func(o *history.Object) { o.GenerateName = "pod-" })},
		{name: "a label is missing", want: Fail, evidence: "with labels map[app:web]", build: except(func(o *history.Object) { delete(o.Labels, "tier") })},
		{name: "an extra label", want: Fail, evidence: "with labels", build: except(func(o *history.Object) { o.Labels["x"] = "y" })},
		{name: "annotations are missing", want: Fail, evidence: "with annotations map[]", build: except(func(o *history.Object) { o.Annotations = nil })},
		{name: "a finalizer is missing", want: Fail, evidence: "with finalizers []", build: except(func(o *history.Object) { o.Finalizers = nil })},
		{name: "another image", want: Fail, evidence: "with containers [{main app:2}]", build: except(func(o *history.Object) {
			o.Body = encoded(fields{"spec": fields{"containers": []any{fields{"name": "main", "image": "app:2"}}}})
		})},
		{name: "an owner reference without controller=true", want: Fail, evidence: "with ownerReferences", build: except(func(o *history.Object) { o.Owners[0].Controller = false })},
		{name: "an owner reference with another kind", want: Fail, evidence: "with ownerReferences", build: except(func(o *history.Object) { o.Owners[0].Kind = "ReplicationController" })},
		{name: "two owner references", want: Fail, evidence: "with ownerReferences", build: except(func(o *history.Object) { o.Owners = append(o.Owners, o.Owners[0]) })},
		{name: "another namespace", want: Fail, evidence: "in namespace elsewhere", build: except(func(o *history.Object) { o.Namespace = "elsewhere" })},
		{name: "pod as in an earlier cached template", want: Pass, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			rs := h.revise("web", "spec", fields{"template": fullTemplate})
			h.deliver(rs)
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v9", "")}))
			creates(h, right(rs))
		}},
		{name: "pod as in a template that was not in the cache", want: Fail, evidence: "with labels", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			creates(h, right(h.revise("web", "spec", fields{"template": fullTemplate})))
		}},
	})
}

func TestMatchesTemplateOfReplicaSets(t *testing.T) {
	// except returns a function that builds a history in which a process creates a ReplicaSet.
	// The function change makes a correct ReplicaSet wrong.
	except := func(change func(*history.Object)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			d := *h.deployment("web", 10, nil)
			d.Annotations = map[string]string{"team": "paint", objects.LastAppliedAnnotation: "{}", objects.RevisionAnnotation: "7"}
			h.deliver(h.commit(history.Modified, d))
			h.wait(3 * time.Second)
			o := newReplicaSetOf("web", "v1", 10, 10)
			o.Annotations["team"] = "paint"
			o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
			change(&o)
			h.request(history.Request{Verb: "create", Resource: objects.ReplicaSetResource, Namespace: namespace, Object: &o})
		}
	}
	runTestCases(t, "matches-template", []testCase{
		{name: "ReplicaSet as in the template", want: Pass, build: except(func(*history.Object) {})},
		{name: "another template", want: Fail, evidence: "with template", build: except(func(o *history.Object) {
			o.Body = newReplicaSetOf("web", "v2", 10, 10).Body
		})},
		{name: "without pod-template-hash", want: Fail, evidence: `with label pod-template-hash=""`, build: except(func(o *history.Object) { delete(o.Labels, objects.PodTemplateHashLabel) })},
		{name: "another pod-template-hash than its pods", want: Fail, evidence: `with label pod-template-hash="v7", but "v1" in its template`, build: except(func(o *history.Object) {
			o.Labels[objects.PodTemplateHashLabel] = "v7"
		})},
		{name: "without an annotation of its Deployment", want: Fail, evidence: "with annotations map[], but its Deployment has map[team:paint]", build: except(func(o *history.Object) {
			delete(o.Annotations, "team")
		})},
		{name: "with an extra annotation", want: Fail, evidence: "with annotations map[a:b team:paint], but its Deployment", build: except(func(o *history.Object) {
			o.Annotations["a"] = "b"
		})},
		{name: "with kubectl's last-applied-configuration", want: Fail, evidence: "with annotation kubectl.kubernetes.io/last-applied-configuration", build: except(func(o *history.Object) {
			o.Annotations[objects.LastAppliedAnnotation] = "{}"
		})},
		{name: "name of another Deployment", want: Fail, evidence: `with name "db-v1"`, build: except(func(o *history.Object) { o.Name = "db-v1" })},
	})
}
