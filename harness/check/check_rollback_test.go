package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// applied requests a rollback to revision 1 of a Deployment with the annotation of kubectl.
func applied(requested func(*historyBuilder, string) *history.Object, h *historyBuilder) *history.Object {
	requested(h, "1")
	h.annotate(h.find("web"), objects.LastAppliedAnnotation, "{}")
	h.deliver(h.find("web"))
	return h.find("web")
}

// rollBackWith records a write of the process that gives a Deployment the template of a version, and
// these annotations.
func (h *historyBuilder) rollBackWith(d *history.Object, version string, annotations map[string]string) *requestStep {
	o := edited(*d, "spec", fields{"template": podTemplate(d.Name, version, "")})
	o.Annotations = annotations
	return h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Namespace: namespace, Name: o.Name, Object: &o})
}

// undoNew records that a Deployment with a requested rollback gets the new template v4. The process creates
// its ReplicaSet, and then rolls the Deployment back to a version.
func undoNew(h *historyBuilder, _ *history.Object, changedTo func(*historyBuilder, string) *history.Object, version string) {
	d := changedTo(h, "v4")
	created := h.createReplicaSet("web", "v4", 0)
	created.apply()
	created.answered(201)
	h.rollBack(d, version).answered(200)
}

func TestRollback(t *testing.T) {
	// rolledToV3 delivers a Deployment after rollouts from v1 to v2 and from v2 to v3.
	rolledToV3 := func(h *historyBuilder) {
		h.deployment("web", 10, rollingUpdate(2, 2))
		h.replicaSetOf("web", "v1", 0, 0)
		h.replicaSetOf("web", "v2", 0, 0)
		h.replicaSetOf("web", "v3", 10, 10)
		h.rollTo("web", "v3")
	}
	requested := func(h *historyBuilder, revision string) *history.Object {
		rolledToV3(h)
		h.annotate(h.find("web"), objects.RollbackAnnotation, revision)
		h.deliver(h.find("web"))
		return h.find("web")
	}
	changedTo := func(h *historyBuilder, version string) *history.Object {
		h.deliver(h.revise("web", "spec", fields{"template": podTemplate("web", version, "")}))
		return h.find("web")
	}
	runTestCases(t, "rollback", []testCase{
		{name: "rolls back to the requested revision", want: Pass, build: func(h *historyBuilder) {
			h.rollBack(requested(h, "1"), "v1").answered(200)
		}},
		{name: "rolls back to the last revision", want: Pass, build: func(h *historyBuilder) {
			h.rollBack(requested(h, "0"), "v2").answered(200)
		}},
		{name: "rolls back from a template without a ReplicaSet", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			requested(h, "1")
			h.rollBack(changedTo(h, "v4"), "v1").answered(200)
		}},
		{name: "rolls back from a template whose ReplicaSet it has just created", want: Pass, build: func(h *historyBuilder) {
			requested(h, "1")
			d := changedTo(h, "v4")
			created := h.createReplicaSet("web", "v4", 0)
			created.apply()
			created.answered(201)
			h.rollBack(d, "v1").answered(200)
		}},
		{name: "undoes a template whose ReplicaSet it has just created", want: Pass, build: func(h *historyBuilder) { undoNew(h, requested(h, "0"), changedTo, "v3") }},
		{name: "undoes such a template, one revision too far", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			undoNew(h, requested(h, "0"), changedTo, "v2")
		}},
		{name: "rolls back to another revision", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			h.rollBack(requested(h, "1"), "v2").answered(200)
		}},
		{name: "changes the template without a request", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			rolledToV3(h)
			h.rollBack(h.find("web"), "v2").answered(200)
		}},
		{name: "repeats a rollback from the version that requested it (lost-response)", want: Pass, build: func(h *historyBuilder) {
			d := requested(h, "0")
			h.rollBack(d, "v2").lost()
			h.rollBack(d, "v2").answered(409)
		}},
		{name: "repeats a rollback from the version after it (mutant D8)", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			d := requested(h, "0")
			h.deliver(h.commit(history.Modified, *h.rollBack(d, "v2").request.Object))
			h.rollBack(h.find("web"), "v3").answered(200)
		}},
		{name: "keeps the rollback annotation (mutant D8)", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			o := edited(*requested(h, "0"), "spec", fields{"template": podTemplate("web", "v2", "")})
			h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Namespace: namespace, Name: "web", Object: &o}).answered(200)
		}},
		{name: "removes the rollback annotation without a rollback", want: Fail, evidence: "removed the annotation deprecated.deployment.rollback.to without a rollback", build: func(h *historyBuilder) {
			h.rollBack(requested(h, "1"), "v3").answered(200)
		}},
		{name: "removes the rollback annotation because the revision has the template already", want: Pass, build: func(h *historyBuilder) {
			h.rollBack(requested(h, "3"), "v3").answered(200)
		}},
		{name: "repeats a rollback without a resource version", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			d := requested(h, "0")
			h.commit(history.Modified, *h.rollBack(d, "v2").request.Object)
			unversioned := *d
			unversioned.Version = 0
			h.rollBack(&unversioned, "v1").answered(200)
		}},
		{name: "removes the rollback annotation because the revision does not exist", want: Pass, build: func(h *historyBuilder) {
			h.rollBack(requested(h, "7"), "v3").answered(200)
		}},
		{name: "keeps the annotation of kubectl in a rollback", want: Pass, build: func(h *historyBuilder) {
			h.rollBackWith(applied(requested, h), "v1", map[string]string{objects.LastAppliedAnnotation: "{}"}).answered(200)
		}},
		{name: "removes the annotation of kubectl in a rollback", want: Fail, evidence: "changed the annotation kubectl.kubernetes.io/last-applied-configuration", build: func(h *historyBuilder) {
			h.rollBackWith(applied(requested, h), "v1", nil).answered(200)
		}},
		{name: "rolls back without the annotations of the ReplicaSet", want: Fail, evidence: "changed spec.template", build: func(h *historyBuilder) {
			requested(h, "1")
			h.annotate(h.find("web-v1"), "team", "paint")
			h.deliver(h.find("web-v1"))
			h.wait(3 * time.Second)
			h.rollBackWith(h.find("web"), "v1", nil).answered(200)
		}},
		{name: "rolls back with the annotations of the ReplicaSet", want: Pass, build: func(h *historyBuilder) {
			requested(h, "1")
			h.annotate(h.find("web-v1"), "team", "paint")
			h.deliver(h.find("web-v1"))
			h.wait(3 * time.Second)
			h.rollBackWith(h.find("web"), "v1", map[string]string{"team": "paint"}).answered(200)
		}},
		{name: "keeps other annotations when it refuses a rollback", want: Pass, build: func(h *historyBuilder) {
			requested(h, "7")
			h.annotate(h.find("web"), "team", "paint")
			h.deliver(h.find("web"))
			o := *h.find("web")
			o.Annotations = map[string]string{"team": "paint"}
			h.request(history.Request{Verb: "update", Resource: objects.DeploymentResource, Namespace: namespace, Name: "web", Object: &o}).answered(200)
		}},
		{name: "removes other annotations when it refuses a rollback", want: Fail, evidence: "changed other annotations", build: func(h *historyBuilder) {
			requested(h, "7")
			h.annotate(h.find("web"), "team", "paint")
			h.deliver(h.find("web"))
			h.rollBack(h.find("web"), "v3").answered(200)
		}},
	})
}
