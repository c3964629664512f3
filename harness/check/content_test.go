package check

import (
	"maps"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestContentOfPods(t *testing.T) {
	// fullTemplate is a template that says all that a history keeps of one.
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
	creates := func(s *story, o history.Object) {
		s.request(history.Request{Verb: "create", Resource: podResource, Namespace: namespace, Object: &o})
	}
	// but makes the right pod with something changed.
	but := func(change func(*history.Object)) func(*story) {
		return func(s *story) {
			told(s, 1)
			rs := s.revise("web", "spec", fields{"template": fullTemplate})
			s.deliver(rs)
			pod := right(rs)
			pod.Labels = maps.Clone(pod.Labels)
			change(&pod)
			creates(s, pod)
		}
	}
	judge(t, "matches-template", []tale{
		{name: "as the template says", want: Pass, tell: but(func(*history.Object) {})},
		{name: "another name", want: Fail, says: `named "pod-"`, tell: but(func(o *history.Object) { o.GenerateName = "pod-" })},
		{name: "a label missing", want: Fail, says: "with the labels map[app:web]", tell: but(func(o *history.Object) { delete(o.Labels, "tier") })},
		{name: "a label too many", want: Fail, says: "with the labels", tell: but(func(o *history.Object) { o.Labels["x"] = "y" })},
		{name: "no annotations", want: Fail, says: "with the annotations map[]", tell: but(func(o *history.Object) { o.Annotations = nil })},
		{name: "no finalizer", want: Fail, says: "with the finalizers []", tell: but(func(o *history.Object) { o.Finalizers = nil })},
		{name: "another image", want: Fail, says: "with the containers [{main app:2}]", tell: but(func(o *history.Object) {
			o.Body = encoded(fields{"spec": fields{"containers": []any{fields{"name": "main", "image": "app:2"}}}})
		})},
		{name: "an owner that does not control", want: Fail, says: "with the owners", tell: but(func(o *history.Object) { o.Owners[0].Controller = false })},
		{name: "the owner by another kind", want: Fail, says: "with the owners", tell: but(func(o *history.Object) { o.Owners[0].Kind = "ReplicationController" })},
		{name: "two owners", want: Fail, says: "with the owners", tell: but(func(o *history.Object) { o.Owners = append(o.Owners, o.Owners[0]) })},
		{name: "another namespace", want: Fail, says: "in namespace elsewhere", tell: but(func(o *history.Object) { o.Namespace = "elsewhere" })},
		{name: "as an earlier template said", want: Pass, tell: func(s *story) {
			told(s, 1)
			rs := s.revise("web", "spec", fields{"template": fullTemplate})
			s.deliver(rs)
			s.deliver(s.revise("web", "spec", fields{"template": podTemplate("web", "v9", "")}))
			creates(s, right(rs))
		}},
		{name: "as a template said that it was not shown", want: Fail, says: "with the labels", tell: func(s *story) {
			told(s, 1)
			creates(s, right(s.revise("web", "spec", fields{"template": fullTemplate})))
		}},
	})
}

func TestContentOfReplicaSets(t *testing.T) {
	// but makes the right ReplicaSet with something changed.
	but := func(change func(*history.Object)) func(*story) {
		return func(s *story) {
			d := *s.deployment("web", 10, nil)
			d.Annotations = map[string]string{"team": "paint", appliedAnnotation: "{}", revisionAnnotation: "7"}
			s.deliver(s.commit(history.Modified, d))
			s.wait(3 * time.Second)
			o := setOf("web", "v1", 10, 10)
			o.Annotations["team"] = "paint"
			o.Ref = history.Ref{Namespace: namespace, Name: o.Name}
			change(&o)
			s.request(history.Request{Verb: "create", Resource: setResource, Namespace: namespace, Object: &o})
		}
	}
	judge(t, "matches-template", []tale{
		{name: "as the template says", want: Pass, tell: but(func(*history.Object) {})},
		{name: "another template", want: Fail, says: "with the template", tell: but(func(o *history.Object) {
			o.Body = setOf("web", "v2", 10, 10).Body
		})},
		{name: "without a hash", want: Fail, says: `labelled pod-template-hash=""`, tell: but(func(o *history.Object) { delete(o.Labels, hashLabel) })},
		{name: "another hash than its pods", want: Fail, says: `labelled pod-template-hash="v7", whose pods are labelled "v1"`, tell: but(func(o *history.Object) {
			o.Labels[hashLabel] = "v7"
		})},
		{name: "without an annotation of its Deployment", want: Fail, says: "with the annotations map[] of its Deployment, not map[team:paint]", tell: but(func(o *history.Object) {
			delete(o.Annotations, "team")
		})},
		{name: "with another annotation", want: Fail, says: "with the annotations map[a:b team:paint] of its Deployment", tell: but(func(o *history.Object) {
			o.Annotations["a"] = "b"
		})},
		{name: "with what kubectl applied to its Deployment", want: Fail, says: "with the annotation kubectl.kubernetes.io/last-applied-configuration", tell: but(func(o *history.Object) {
			o.Annotations[appliedAnnotation] = "{}"
		})},
		{name: "another's name", want: Fail, says: `named "db-v1"`, tell: but(func(o *history.Object) { o.Name = "db-v1" })},
	})
}
