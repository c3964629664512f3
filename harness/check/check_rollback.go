package check

import (
	"fmt"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// rollbackCheck demands that a controller changes a Deployment's template only for a requested
// rollback. It examines each update that changes the template or removes the rollback annotation.
//
// It skips a Deployment if an orphaned or terminating ReplicaSet makes it unclear which ReplicaSets
// belong to the Deployment.
var rollbackCheck = Check{
	ID:               "rollback",
	Guarantee:        "A controller changes a Deployment's template only for a requested rollback, to the template and the annotations of that revision, after it has created a ReplicaSet for the present template, and removes the rollback annotation with the same write. Without a rollback, it removes the annotation only if the revision does not exist or already has the template, and keeps all other annotations.",
	Contract:         "Deployment 18",
	Property:         Safety,
	Scope:            contractOf(kube.RollsOut),
	ExercisedWhen:    "The subject changes the template of a Deployment, or removes its rollback annotation.",
	AllowedBehaviors: []string{"lost-response"},
	New:              newRollbackChecker,
}

// rollbackChecker reports wrong changes of a Deployment's template, and wrong removals of its
// rollback annotation.
//
// The controller may change the template only if the Deployment requests a rollback. The new
// template must be that of the requested revision. The same write must remove the rollback
// annotation, because otherwise the next sync repeats the rollback. Without a rollback, a write may
// remove the annotation in two cases. The requested revision does not exist, or it has the current
// template. Such a write must keep all other annotations.
//
// A rollback gives the Deployment the annotations of the ReplicaSet. Both kinds of write keep the
// annotation in which kubectl stores the applied manifest.
//
// An update without a resourceVersion overwrites any version. The checker therefore compares such
// an update with the version in etcd.
type rollbackChecker struct{ findings }

func newRollbackChecker(Settings) Checker { return &rollbackChecker{} }

func (checker *rollbackChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != objects.DeploymentResource || r.Request.Subresource != "" || r.Request.Object == nil {
		return
	}
	from := objects.Cached[objects.Deployment](m.decoder, c.rollout.uid, r.Request.Object.Version)
	if r.Request.Object.Version == 0 {
		from = m.committed.deployments[c.rollout.uid]
	}
	to, err := m.decoder.DecodeDeployment(r.Request.Object)
	if from == nil || err != nil { // the old version is unknown, or the API server rejects a Deployment that cannot be decoded
		return
	}
	if !c.rollout.ownershipClear(c.rollout.from, m.processTime) {
		return // it is unclear which ReplicaSets, and so which revisions, belong to the Deployment
	}
	found, expected := "changed spec.template", ""
	switch {
	case !to.Template.Same(from.Template):
		expected = c.rollout.wrongRollback(from, to)
	case from.RollbackTo >= 0 && to.RollbackTo < 0:
		found, expected = "removed the annotation "+objects.RollbackAnnotation+" without a rollback", c.rollout.wrongRefusal(from)
		if expected == "" && !maps.Equal(from.Annotations, to.Annotations) {
			found, expected = "changed other annotations together with "+objects.RollbackAnnotation, "no change of other annotations"
		}
	default:
		return
	}
	if expected == "" && from.LastApplied != to.LastApplied {
		found, expected = "changed the annotation "+objects.LastAppliedAnnotation, "no change, because it belongs to kubectl"
	}
	checker.exercised++
	if expected != "" {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s %s", from, c.process.name, found), expected)
		})
	}
}

// wrongRollback checks a write that changes the template of a Deployment. The parameters from and
// to are the Deployment before and after the write. The result says what the check expected
// instead. It is "" if the write is a correct rollback.
func (r *rolloutState) wrongRollback(from, to *objects.Deployment) string {
	switch {
	case from.RollbackTo < 0:
		return "no change, because the Deployment has no rollback annotation"
	case to.RollbackTo >= 0:
		return "a write that also removes the rollback annotation"
	}
	if to.Template.Hash != "" && from.Template.Hash == "" {
		return "a template without the label " + objects.PodTemplateHashLabel
	}
	var named *objects.Owner
	for _, target := range r.rollbackTargets(from) {
		if target == nil || !target.Template.Same(to.Template) {
			continue
		}
		if named = target; maps.Equal(target.Annotations, to.Annotations) {
			return r.lostTemplate(from)
		}
	}
	if named != nil {
		return fmt.Sprintf("the annotations of ReplicaSet %s, in addition to its template", named.Name)
	}
	return fmt.Sprintf("the template of the requested revision %d", from.RollbackTo)
}

// lostTemplate returns what the check expected instead of a rollback that loses the template of the
// Deployment from. It is "" if a ReplicaSet has this template, so that users can return to it.
func (r *rolloutState) lostTemplate(from *objects.Deployment) string {
	for _, state := range r.replicaSets {
		for _, sets := range [][]*objects.Owner{state.value.cached, state.value.withOwnWrites} {
			if current, _ := splitByTemplate(from, sets); len(current) > 0 {
				return ""
			}
		}
	}
	return "first a ReplicaSet with the template that the rollback replaces, so that its revision exists"
}

// wrongRefusal checks a write that removes the rollback annotation without a rollback. The
// parameter from is the Deployment before the write. The result describes the rollback that the
// check expected. It is "" if the controller was right not to roll back.
func (r *rolloutState) wrongRefusal(from *objects.Deployment) string {
	var asked *objects.Owner
	for _, asked = range r.rollbackTargets(from) {
		if asked == nil || asked.Template.Same(from.Template) {
			return ""
		}
	}
	if asked == nil {
		return "" // the model has no cached state of the ReplicaSets
	}
	return fmt.Sprintf("a rollback to the template of ReplicaSet %s with revision %d", asked.Name, asked.Revision)
}

// rollbackTargets returns the ReplicaSets whose template the requested rollback may restore.
//
// The process may have acted on any of several cached states of the ReplicaSets. For each state,
// the result contains the ReplicaSets with the requested revision, or nil if there are none.
func (r *rolloutState) rollbackTargets(d *objects.Deployment) (all []*objects.Owner) {
	for _, state := range r.replicaSets {
		for _, sets := range [][]*objects.Owner{state.value.cached, state.value.withOwnWrites} {
			revision := d.RollbackTo
			if current, _ := splitByTemplate(d, sets); revision == 0 && len(current) == 0 && r.lostTemplate(d) == "" {
				continue // the controller first creates a ReplicaSet with the present template, so it has another state
			}
			if revision == 0 {
				revision = lastRevision(sets)
			}
			found := false
			for _, set := range sets {
				if set.Revision == revision {
					all, found = append(all, set), true
				}
			}
			if !found {
				all = append(all, nil)
			}
		}
	}
	return all
}

// lastRevision returns the second highest revision of the ReplicaSets. A rollback to revision 0
// restores the ReplicaSet with this revision. The result is 0 if there is no such revision.
func lastRevision(sets []*objects.Owner) (second int64) {
	first := int64(0)
	for _, set := range sets {
		if set.Revision >= first {
			first, second = set.Revision, first
		} else {
			second = max(second, set.Revision)
		}
	}
	return second
}
