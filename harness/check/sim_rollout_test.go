package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// This file simulates the ReplicaSets and pods of one Deployment, on the simulated cluster of
// sim_cluster_test.go. The file sim_deployer_test.go simulates the Deployment controller.

// rolloutConditions are the parameters of a simulated run with a Deployment.
type rolloutConditions struct {
	conditions
	setLag                   time.Duration // the maximum delay of watch events of ReplicaSets
	recreate                 bool          // true for the strategy Recreate
	maxSurge, maxUnavailable int
	namesTaken               bool // true if orphaned ReplicaSets have some of the names that the controller would use
	deadline                 int  // progressDeadlineSeconds
	limit                    int  // revisionHistoryLimit
}

// rolloutSim is a simulated cluster with one Deployment.
type rolloutSim struct {
	*cluster
	setLag    time.Duration // the maximum delay of watch events of ReplicaSets
	decoder   *objects.Decoder
	objects   map[types.UID]*history.Object // the latest committed version of each object, by UID
	pods      int                           // the number of pods that were created
	scheduled map[types.UID]bool            // UIDs of the ReplicaSets whose sync is scheduled
	deployer  *deployer                     // the running Deployment controller
}

// rolloutResources are the resources that the Deployment controller watches.
var rolloutResources = []string{objects.DeploymentResource, objects.ReplicaSetResource, objects.PodResource}

// commit commits a version of an object, and sends the watch event to the controller. A new
// object gets a unique UID.
func (s *rolloutSim) commit(kind history.EventType, o history.Object) *history.Object {
	s.version++
	o.Version = s.version
	if kind == history.Added {
		o.UID = types.UID(fmt.Sprintf("%s-%d", o.Name, o.Version))
		o.Created = time.Unix(1e9, 0).Add(s.now).Truncate(time.Second)
	}
	if kind == history.Deleted {
		delete(s.objects, o.UID)
	} else {
		s.objects[o.UID] = &o
	}
	s.committed.send(s.cluster, s.upTo(3*time.Millisecond), func() {
		s.append(history.Record{Commit: &history.Commit{Type: kind, Object: o}})
	})
	if s.deployer != nil {
		s.deployer.sendEvent(kind, &o)
	}
	if o.Resource == objects.ReplicaSetResource && kind != history.Deleted {
		s.enqueueReplicaSet(o.UID)
	} else if ref := o.ControllerRef(); o.Resource == objects.PodResource && ref != nil {
		s.enqueueReplicaSet(ref.UID)
	}
	return &o
}

// edited returns a copy of an object with changed fields. The parameter part is "spec" or
// "status"; the fields in change replace those of that part.
func edited(o history.Object, part string, change fields) history.Object {
	body := map[string]fields{}
	if err := json.Unmarshal(o.Body, &body); err != nil {
		panic(err)
	}
	if body[part] == nil {
		body[part] = fields{}
	}
	maps.Copy(body[part], change)
	o.Body = encoded(body)
	return o
}

// revise changes fields of the Deployment's spec, as a user does.
func (s *rolloutSim) revise(change fields) {
	o := edited(*s.named(objects.DeploymentResource, "web"), "spec", change)
	o.Generation++
	s.commit(history.Modified, o)
}

// objectsOf returns the committed objects of a resource, sorted by UID. If controller is not
// empty, it returns only objects whose controllerRef contains this UID.
func (s *rolloutSim) objectsOf(resource string, controller types.UID) []*history.Object {
	var found []*history.Object
	for _, uid := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[uid]
		if ref := o.ControllerRef(); o.Resource == resource && (controller == "" || ref != nil && ref.UID == controller) {
			found = append(found, o)
		}
	}
	return found
}

// named returns the committed object with the given name, or nil if there is none.
func (s *rolloutSim) named(resource, name string) *history.Object {
	for _, o := range s.objects {
		if o.Resource == resource && o.Name == name {
			return o
		}
	}
	return nil
}

// enqueueReplicaSet schedules a sync of the ReplicaSet with this UID, unless a sync of it is
// already scheduled.
func (s *rolloutSim) enqueueReplicaSet(set types.UID) {
	if s.scheduled[set] {
		return
	}
	s.scheduled[set] = true
	s.after(s.upTo(60*time.Millisecond), func() {
		s.scheduled[set] = false
		if o := s.objects[set]; o != nil {
			s.syncReplicaSet(o)
		}
	})
}

// syncReplicaSet creates or deletes pods of a ReplicaSet and writes the ReplicaSet's status, as
// the ReplicaSet controller does.
func (s *rolloutSim) syncReplicaSet(o *history.Object) {
	set, err := s.decoder.Owner(objects.OwnerKindByResource(objects.ReplicaSetResource), o)
	if err != nil {
		panic(err)
	}
	live, ready := 0, 0
	for _, p := range s.objectsOf(objects.PodResource, o.UID) {
		pod, err := s.decoder.Pod(p)
		switch {
		case err != nil:
			panic(err)
		case !pod.Active:
		case live == set.Replicas:
			s.kill(p)
		default:
			live++
			if pod.Ready {
				ready++
			}
		}
	}
	for ; live < set.Replicas; live++ {
		s.addPod(o)
	}
	status := objects.OwnerStatus{Replicas: live, FullyLabeledReplicas: live, ReadyReplicas: ready, AvailableReplicas: ready, ObservedGeneration: o.Generation}
	if set.Status != status {
		s.commit(history.Modified, edited(*o, "status", fields{
			"replicas": live, "fullyLabeledReplicas": live, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": o.Generation,
		}))
	}
}

// addPod commits a new pod of a ReplicaSet. The pod becomes ready within 300 ms.
func (s *rolloutSim) addPod(set *history.Object) {
	s.pods++
	name := fmt.Sprintf("%s-%d", set.Name, s.pods)
	p := s.commit(history.Added, history.Object{
		Ref:    history.Ref{Resource: objects.PodResource, Namespace: namespace, Name: name},
		Labels: maps.Clone(set.Labels), Body: podBody("Running", false),
		Owners: []history.Owner{{Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: true}},
	})
	s.after(s.upTo(300*time.Millisecond), func() {
		if now := s.objects[p.UID]; now != nil && !now.Terminating() {
			ready := *now
			ready.Body = podBody("Running", true)
			s.commit(history.Modified, ready)
		}
	})
}

// kill commits a deletionTimestamp of a pod. It commits the pod's removal some time later.
func (s *rolloutSim) kill(p *history.Object) {
	if p.Terminating() {
		return
	}
	terminating := *p
	terminating.Deleting = time.Unix(1e9, 0)
	s.commit(history.Modified, terminating)
	s.after(s.upTo(s.grace), func() {
		if now := s.objects[p.UID]; now != nil {
			s.commit(history.Deleted, *now)
		}
	})
}

// disturb performs one random operation, as a user or a node does.
func (s *rolloutSim) disturb() {
	switch s.random.IntN(7) {
	case 0, 1:
		s.revise(fields{"template": podTemplate("web", fmt.Sprintf("v%d", 1+s.random.IntN(4)), "")})
	case 2:
		s.revise(fields{"replicas": s.random.IntN(s.replicas + 1)})
	case 3:
		o := *s.named(objects.DeploymentResource, "web")
		to := fmt.Sprint(s.random.IntN(4))
		o.Annotations = map[string]string{objects.RollbackAnnotation: to, "note": to}
		s.commit(history.Modified, o)
	case 4:
		s.revise(fields{"paused": s.random.IntN(2) == 0})
	default:
		if pods := s.objectsOf(objects.PodResource, ""); len(pods) > 0 {
			s.kill(pods[s.random.IntN(len(pods))])
		}
	}
}

// takeNames commits orphaned ReplicaSets. They have the names that the controller would give to
// the ReplicaSets for the given versions of the pod template.
func (s *rolloutSim) takeNames(versions ...string) {
	for _, version := range versions {
		o := newReplicaSetOf("web", version, 0, 0)
		o.Owners, o.Labels = nil, nil
		s.commit(history.Added, o)
	}
}

// simulateRollout runs a simulated Deployment controller until the phase end. The parameter r
// says which rules the controller breaks.
func simulateRollout(c rolloutConditions, r rolloutRules) *cluster {
	s := &rolloutSim{
		cluster: newCluster(c.conditions), setLag: c.setLag, decoder: objects.NewDecoder(),
		objects: map[types.UID]*history.Object{}, scheduled: map[types.UID]bool{},
	}
	strategy := rollingUpdate(c.maxSurge, c.maxUnavailable)
	if c.recreate {
		strategy = fields{"type": "Recreate"}
	}
	s.commit(history.Added, history.Object{
		Ref:        history.Ref{Resource: objects.DeploymentResource, Namespace: namespace, Name: "web"},
		Generation: 1,
		Body: encoded(fields{"spec": fields{
			"replicas": c.conditions.replicas, "strategy": strategy, "progressDeadlineSeconds": c.deadline, "revisionHistoryLimit": c.limit,
			"selector": fields{"matchLabels": fields{"app": "web"}}, "template": podTemplate("web", "v1", ""),
		}}),
	})
	if c.namesTaken {
		s.takeNames("v2", "v4", "v5")
	}
	s.run(10 * time.Millisecond)
	s.restart(r)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	const chaos = 12 * time.Second
	for range c.disturbances {
		s.after(s.upTo(chaos), s.disturb)
	}
	for range c.restarts {
		s.after(s.upTo(chaos), func() { s.restart(r) })
	}
	s.after(chaos-time.Millisecond, func() {
		s.revise(fields{"paused": false, "template": podTemplate("web", "v5", "")})
	})
	s.run(chaos)
	s.chaos = false
	for _, resource := range rolloutResources {
		s.deployer.feeds[resource].release(s.cluster)
	}
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseSettle}})
	s.settle(time.Minute)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseQuiet}})
	s.run(s.now + testSettings.Quiet)
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseEnd}})
	return s.cluster
}

func TestCorrectDeployerNeverFails(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ms := func(label string, limit int) time.Duration {
			return time.Duration(rapid.IntRange(0, limit).Draw(r, label)) * time.Millisecond
		}
		c := rolloutConditions{
			conditions: conditions{
				seed: rapid.Uint64().Draw(r, "seed"), podLag: ms("pod lag", 1500), ownerLag: ms("Deployment lag", 1500),
				grace: ms("grace", 2000), disturbances: rapid.IntRange(0, 30).Draw(r, "disturbances"), codes: anyCode,
				refused:  rapid.SampledFrom([]float64{0, 0, 0.1, 0.4}).Draw(r, "refused"),
				lost:     rapid.SampledFrom([]float64{0, 0, 0.05, 0.2}).Draw(r, "lost"),
				restarts: rapid.IntRange(0, 2).Draw(r, "restarts"),
				replicas: rapid.IntRange(1, 12).Draw(r, "replicas"),
			},
			setLag:     ms("ReplicaSet lag", 1500),
			recreate:   rapid.IntRange(0, 3).Draw(r, "recreate") == 0,
			namesTaken: rapid.Bool().Draw(r, "namesTaken"),
			limit:      rapid.SampledFrom([]int{0, 1, 3, 100}).Draw(r, "limit"),
			deadline:   rapid.SampledFrom([]int{1, 2, 600}).Draw(r, "deadline"),
			maxSurge:   rapid.IntRange(0, 5).Draw(r, "surge"), maxUnavailable: rapid.IntRange(0, 5).Draw(r, "unavailable"),
		}
		for _, result := range checkRun(t, simulateRollout(c, rolloutRules{})) {
			if result.Verdict == Fail || result.Verdict == Unknown {
				r.Errorf("%s: %s: %s %+v", result.Check, result.Verdict, result.Reason, result.Evidence)
			}
		}
	})
}

// TestBrokenDeployersAreDetected breaks one rule of the simulated Deployment controller at a
// time. The check of that rule must fail in enough runs.
func TestBrokenDeployersAreDetected(t *testing.T) {
	usual := rolloutConditions{
		conditions: conditions{podLag: 300 * time.Millisecond, ownerLag: 100 * time.Millisecond, grace: time.Second, replicas: 10, disturbances: 12},
		setLag:     200 * time.Millisecond, maxSurge: 3, maxUnavailable: 2, deadline: 2, limit: 1,
	}
	recreate := usual
	recreate.recreate = true
	scaled := usual
	scaled.disturbances, scaled.setLag, scaled.conditions.replicas = 40, 50*time.Millisecond, 20
	rolled := usual
	rolled.disturbances = 25
	losing := usual
	losing.lost, losing.setLag = 0.3, 2*time.Second
	for _, c := range []struct {
		name       string
		rules      rolloutRules
		conditions rolloutConditions
		check      string
		least      uint64 // in how many of the 10 runs the check must fail at least
	}{
		{"ignores maxSurge", rolloutRules{noSurge: true}, usual, "max-surge", 6},
		{"ignores maxUnavailable (D16)", rolloutRules{noUnavailable: true}, usual, "max-unavailable", 6},
		{"does not wait for old pods", rolloutRules{recreatesAtOnce: true}, recreate, "recreate", 5},
		{"creates a second ReplicaSet for a template (D25)", rolloutRules{createsDuplicate: true}, usual, "rollout-complete", 7},
		{"creates a second ReplicaSet for a template (D25), at the create", rolloutRules{createsDuplicate: true}, usual, "revisions", 2},
		{"handles its own ReplicaSet as a hash collision (D3)", rolloutRules{incrementsCollisions: true}, losing, "revisions", 8},
		{"reuses revisions", rolloutRules{reusesRevision: true}, usual, "revisions", 8},
		{"rolls back to an arbitrary revision (D8)", rolloutRules{rollsBackAnywhere: true}, usual, "rollback", 1},
		{"does not remove the rollback annotation (D8)", rolloutRules{keepsRollbackAnnotation: true}, usual, "rollback", 1},
		{"deletes old ReplicaSets too early", rolloutRules{deletesOldEarly: true}, usual, "revision-history-limit", 3},
		{"deletes the highest revisions first", rolloutRules{deletesNewestFirst: true}, usual, "revision-history-limit", 4},
		{"deletes no old ReplicaSets (D19)", rolloutRules{neverDeletesOld: true}, usual, "rollout-complete", 5},
		{"scales up an old ReplicaSet", rolloutRules{scalesUpOld: true}, usual, "proportional-scaling", 2},
		{"scales only the smallest ReplicaSet in proportion", rolloutRules{scalesOnlySmallest: true}, scaled, "proportional-scaling", 4},
		{"scales down the newest old ReplicaSet first", rolloutRules{scalesNewestFirst: true}, rolled, "proportional-scaling", 4},
		{"gives the rounding remainder to the smallest ReplicaSet", rolloutRules{remainderToSmallest: true}, scaled, "proportional-scaling", 2},
		{"reports negative unavailableReplicas (D20)", rolloutRules{reportsNegative: true}, usual, "deployment-status", 7},
		{"reports only the new ReplicaSet's available replicas", rolloutRules{reportsOnlyNewAvailable: true}, usual, "deployment-status", 8},
		{"always renews the condition Progressing", rolloutRules{reportsProgress: true}, usual, "deployment-status", 8},
		{"measures the deadline from the end of the previous rollout (D10)", rolloutRules{staleDeadline: true}, usual, "deployment-status", 3},
		{"creates ReplicaSets without the Deployment's annotations", rolloutRules{inheritsNothing: true}, usual, "matches-template", 5},
		{"does not copy the Deployment's annotations", rolloutRules{inheritsNothing: true}, usual, "rollout-complete", 4},
		{"never writes the status", rolloutRules{noStatus: true}, usual, "rollout-complete", 9},
		{"writes an unchanged status (E10)", rolloutRules{rewritesStatus: true}, usual, "no-writes-when-settled", 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireDetected(t, c.check, 10, c.least, func(seed uint64) *cluster {
				c.conditions.seed = seed
				return simulateRollout(c.conditions, c.rules)
			})
		})
	}
}
