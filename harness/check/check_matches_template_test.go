package check

import (
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
	// right returns a correct request to create a pod.
	right := func(owner *history.Object) history.Request {
		return history.Request{
			Verb: "create", Resource: objects.PodResource, Namespace: namespace,
			Object: &history.Object{
				GenerateName: owner.Name + "-", Owners: controlledBy(owner), Finalizers: []string{"example.com/hold"},
				Labels: map[string]string{"app": "web", "tier": "front"}, Annotations: map[string]string{"note": "n"},
			},
			PodSpec: encoded(fullTemplate["spec"]),
		}
	}
	// except returns a function that builds a history in which a process creates a pod. The
	// function change makes a correct request wrong.
	except := func(change func(*history.Request)) func(*historyBuilder) {
		return func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			rs := h.revise("web", "spec", fields{"template": fullTemplate})
			h.deliver(rs)
			request := right(rs)
			change(&request)
			h.request(request)
		}
	}
	withSpec := func(spec fields) func(*historyBuilder) {
		return except(func(r *history.Request) { r.PodSpec = encoded(spec) })
	}
	container := fields{"name": "main", "image": "app:1", "command": []string{"sleep"}}
	runTestCases(t, "matches-template", []testCase{
		{name: "pod as in the template", want: Pass, build: except(func(*history.Request) {})},
		{name: "another generateName", want: Fail, evidence: `with generateName "pod-"`, build: except(func(r *history.Request) { r.Object.GenerateName = "pod-" })},
		{name: "a label is missing", want: Fail, evidence: "with labels map[app:web]", build: except(func(r *history.Request) { delete(r.Object.Labels, "tier") })},
		{name: "an extra label", want: Fail, evidence: "with labels", build: except(func(r *history.Request) { r.Object.Labels["x"] = "y" })},
		{name: "annotations are missing", want: Fail, evidence: "with annotations map[]", build: except(func(r *history.Request) { r.Object.Annotations = nil })},
		{name: "a finalizer is missing", want: Fail, evidence: "with finalizers []", build: except(func(r *history.Request) { r.Object.Finalizers = nil })},
		{name: "another image", want: Fail, evidence: `with spec.containers.main.image "app:2", not "app:1"`, build: withSpec(fields{"containers": []any{fields{"name": "main", "image": "app:2", "command": []string{"sleep"}}}})},
		{name: "without a command", want: Fail, evidence: "without spec.containers.main.command", build: withSpec(fields{"containers": []any{fields{"name": "main", "image": "app:1"}}})},
		{name: "an extra container", want: Fail, evidence: `with spec.containers.extra.image "app:1", which is not in the template`, build: withSpec(fields{"containers": []any{container, fields{"name": "extra", "image": "app:1"}}})},
		{name: "an extra node name", want: Fail, evidence: `with spec.nodeName "node-1", which is not in the template`, build: withSpec(fields{"nodeName": "node-1", "containers": []any{container}})},
		{name: "an empty field that the template lacks", want: Pass, build: withSpec(fields{"containers": []any{container}, "securityContext": fields{}, "volumes": []any{}})},
		{name: "an old history without the spec", want: Pass, build: except(func(r *history.Request) { r.PodSpec = nil })},
		{name: "an owner reference without controller=true", want: Fail, evidence: "with ownerReferences", build: except(func(r *history.Request) { r.Object.Owners[0].Controller = false })},
		{name: "an owner reference without blockOwnerDeletion", want: Fail, evidence: "with ownerReferences", build: except(func(r *history.Request) { r.Object.Owners[0].DoesNotBlock = true })},
		{name: "an owner reference with another kind", want: Fail, evidence: "with ownerReferences", build: except(func(r *history.Request) { r.Object.Owners[0].Kind = "ReplicationController" })},
		{name: "two owner references", want: Fail, evidence: "with ownerReferences", build: except(func(r *history.Request) { r.Object.Owners = append(r.Object.Owners, r.Object.Owners[0]) })},
		{name: "another namespace", want: Fail, evidence: "in namespace elsewhere", build: except(func(r *history.Request) { r.Object.Namespace = "elsewhere" })},
		{name: "pod as in an earlier cached template", want: Pass, build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			rs := h.revise("web", "spec", fields{"template": fullTemplate})
			h.deliver(rs)
			h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", "v9", "")}))
			h.request(right(rs))
		}},
		{name: "pod as in a template that was not in the cache", want: Fail, evidence: "with labels", build: func(h *historyBuilder) {
			deliveredReplicaSet(h, 1)
			h.request(right(h.revise("web", "spec", fields{"template": fullTemplate})))
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
		{name: "with another minReadySeconds", want: Fail, evidence: "with minReadySeconds 7, but its Deployment has 0", build: except(func(o *history.Object) {
			var body fields
			_ = objects.Unmarshal(o.Body, &body)
			body["spec"].(map[string]any)["minReadySeconds"] = 7
			o.Body = encoded(body)
		})},
		{name: "name of another Deployment", want: Fail, evidence: `with name "db-v1"`, build: except(func(o *history.Object) { o.Name = "db-v1" })},
	})
}
