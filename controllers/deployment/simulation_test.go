package deployment

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

// simulation runs a Deployment whose spec changes at random. Caches are stale, API requests
// fail, and responses are lost. The simulation checks every write of the controller.
type simulation struct {
	*fixture
	t *rapid.T
	// outcomeUnknown is true after a successful write with a lost response, until the cache
	// contains the write. The simulation does not check the limits during this time.
	outcomeUnknown   bool
	rollbackRequests int
	beforeWrite      map[string]*appsv1.ReplicaSet
	// cachedDeployment and cachedSets are the objects in the caches at the start of the sync.
	cachedDeployment *appsv1.Deployment
	cachedSets       map[string]*appsv1.ReplicaSet
}

// TestSimulation checks after every write that the controller keeps the limits, according to its
// caches. After the last change and the last failure, the rollout must complete.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sim := &simulation{fixture: newFixture(t, newDeployment(rapid.Int32Range(0, 8).Draw(rt, "replicas"), image("v1"), surgeAndUnavailable(1, 1), deadline(600))), t: rt}
		sim.onWrite = sim.checkWrite
		sim.recordSets()
		rt.Repeat(map[string]func(*rapid.T){
			"":                         func(*rapid.T) {},
			"sync":                     func(*rapid.T) { sim.syncOnce() },
			"sync twice":               func(*rapid.T) { sim.syncOnce(); sim.syncOnce() },
			"sync with errors":         sim.syncWithErrors,
			"sync with lost responses": sim.syncWithLostResponses,
			"make caches stale or not": func(t *rapid.T) { sim.cachesStale = rapid.Bool().Draw(t, "stale") },
			"deliver Deployments":      func(*rapid.T) { sim.deliverDeployments() },
			"deliver ReplicaSets":      func(*rapid.T) { sim.deliverSets(); sim.outcomeUnknown = false },
			"change pods":              sim.changePods,
			"change spec":              sim.changeSpec,
		})
		sim.settleAndCheck()
	})
}

func (sim *simulation) syncOnce() {
	object, _, _ := sim.Controller.deployments.GetByKey(key)
	sim.cachedDeployment, sim.cachedSets = object.(*appsv1.Deployment), map[string]*appsv1.ReplicaSet{}
	for _, object := range sim.replicaSets.List() {
		set := object.(*appsv1.ReplicaSet)
		sim.cachedSets[set.Name] = set
	}
	_ = sim.sync(sim.t.Context(), key) // ignore the error: the next sync retries
}

// syncWithErrors runs a sync in which each API request may fail and have no effect.
func (sim *simulation) syncWithErrors(t *rapid.T) {
	for _, call := range sim.possibleCalls() {
		if rapid.Bool().Draw(t, call) {
			sim.callErrors[call] = []error{apierrors.NewInternalError(fmt.Errorf("injected"))}
		}
	}
	sim.syncOnce()
	clear(sim.callErrors)
}

// syncWithLostResponses runs a sync in which each API request may succeed although it returns an
// error.
func (sim *simulation) syncWithLostResponses(t *rapid.T) {
	for _, call := range sim.possibleCalls() {
		sim.lostResponses[call] = rapid.Bool().Draw(t, call)
	}
	sim.syncOnce()
	clear(sim.lostResponses)
}

func (sim *simulation) possibleCalls() []string {
	calls := []string{writeStatus, writeSpec, createCall(sim.deployment())}
	for _, set := range oldestFirst(sim.allSets()) {
		calls = append(calls, "update replicasets "+set.Name, "delete replicasets "+set.Name)
	}
	return calls
}

func (sim *simulation) allSets() []*appsv1.ReplicaSet {
	var all []*appsv1.ReplicaSet
	for _, set := range sim.sets {
		all = append(all, set)
	}
	return oldestFirst(all)
}

// changePods gives one ReplicaSet all its pods, and makes some of the pods available.
func (sim *simulation) changePods(t *rapid.T) {
	if len(sim.sets) == 0 {
		t.Skip("no ReplicaSets")
	}
	set := rapid.SampledFrom(sim.allSets()).Draw(t, "set").DeepCopy()
	n := *set.Spec.Replicas
	available := rapid.Int32Range(min(n, set.Status.AvailableReplicas), n).Draw(t, "available")
	if rapid.IntRange(0, 4).Draw(t, "unavailable") == 0 {
		available = 0 // sometimes no pod is available
	}
	withAvailablePods(n)(set)
	set.Status.AvailableReplicas, set.Status.ReadyReplicas = available, available
	sim.store(set)
	if !sim.cachesStale {
		sim.deliver()
	}
	sim.recordSets()
}

// changeSpec makes one random change of the Deployment's spec.
func (sim *simulation) changeSpec(t *rapid.T) {
	d := sim.deployment().DeepCopy()
	switch rapid.IntRange(0, 7).Draw(t, "change") {
	case 0, 1:
		image(fmt.Sprintf("v%d", rapid.IntRange(1, 4).Draw(t, "image")))(d)
	case 2:
		scaled(rapid.Int32Range(0, 8).Draw(t, "replicas"))(d)
	case 3:
		d.Spec.Paused = !d.Spec.Paused
	case 4:
		surgeAndUnavailable(rapid.Int32Range(0, 3).Draw(t, "surge"), rapid.Int32Range(0, 3).Draw(t, "unavailable"))(d)
		d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	case 5:
		asRecreate(d)
	case 6:
		annotated(appsv1.DeprecatedRollbackTo, fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "revision")))(d)
		sim.rollbackRequests++
	case 7:
		historyLimit(rapid.Int32Range(0, 2).Draw(t, "history"))(d)
	}
	d.Generation++
	sim.version++
	d.ResourceVersion = fmt.Sprint(sim.version)
	sim.deployments[d.Name] = d
	if !sim.cachesStale {
		sim.deliver()
	}
}

func (sim *simulation) recordSets() {
	sim.beforeWrite = map[string]*appsv1.ReplicaSet{}
	for name, set := range sim.sets {
		sim.beforeWrite[name] = set
	}
}

// checkWrite checks a successful write of the controller. The caches do not contain the write
// yet.
func (sim *simulation) checkWrite(call string) {
	defer sim.recordSets()
	if sim.lostResponses[call] {
		sim.outcomeUnknown = sim.outcomeUnknown || strings.Contains(call, " replicasets ")
	}
	if count := sim.deployment().Status.CollisionCount; count != nil {
		sim.t.Fatalf("collisionCount %d, although no other object has such a name", *count)
	}
	name := call[strings.LastIndex(call, " ")+1:]
	was, is := sim.beforeWrite[name], sim.sets[name]
	if !strings.Contains(call, " replicasets ") || is == nil {
		return
	}
	if was == nil {
		sim.checkCreated(is)
	} else if before, _ := revisionOf(was.Annotations); before > sim.revision(is) {
		sim.t.Fatalf("the revision of %s decreases from %d to %d", name, before, sim.revision(is))
	}
	if !sim.outcomeUnknown {
		sim.checkSize(sim.cachedDeployment, was, is)
	}
}

func (sim *simulation) revision(set *appsv1.ReplicaSet) int64 {
	revision, _ := revisionOf(set.Annotations)
	return revision
}

func (sim *simulation) checkCreated(created *appsv1.ReplicaSet) {
	for name, set := range sim.sets {
		if name != created.Name && templatehash.Equal(&set.Spec.Template, &created.Spec.Template) {
			sim.t.Fatalf("%s and %s have the same template", name, created.Name)
		}
	}
}

// checkSize checks a change of a ReplicaSet's spec.replicas. The argument d is the Deployment in
// the cache.
func (sim *simulation) checkSize(d *appsv1.Deployment, was, is *appsv1.ReplicaSet) {
	l, err := limitsOf(d)
	if err != nil {
		sim.t.Fatal(err)
	}
	var from, to, total, available int32
	if was != nil {
		from = *was.Spec.Replicas
	}
	to = *is.Spec.Replicas
	for name, set := range sim.sets {
		total += *set.Spec.Replicas
		available += sim.cachedAvailable(name, *set.Spec.Replicas)
	}
	if to > from && int(total) > l.maxReplicas() {
		sim.t.Fatalf("%s scaled up from %d to %d: %d replicas in total, maxReplicas is %d", is.Name, from, to, total, l.maxReplicas())
	}
	current := templatehash.Equal(&d.Spec.Template, &is.Spec.Template)
	if recreates(d) && !d.Spec.Paused && current && to > from && int(total) > int(to) && from == 0 {
		sim.t.Fatalf("%s scaled up from 0 to %d with old replicas: %d replicas in total", is.Name, to, total)
	}
	if rolls(d) && !d.Spec.Paused && to < from && !sim.rescaling(d, l) {
		lost := sim.cachedAvailable(is.Name, from) - sim.cachedAvailable(is.Name, to)
		if lost > 0 && int(available) < l.minAvailable() {
			sim.t.Fatalf("%s scaled down from %d to %d: %d available left, minAvailable is %d", is.Name, from, to, available, l.minAvailable())
		}
	}
}

// cachedAvailable returns status.availableReplicas of the ReplicaSet in the cache, limited to
// replicas.
func (sim *simulation) cachedAvailable(name string, replicas int32) int32 {
	set := sim.cachedSets[name]
	if set == nil {
		return 0
	}
	return min(set.Status.AvailableReplicas, replicas)
}

// rescaling reports whether a write may be a reaction to a change of the Deployment's
// spec.replicas.
func (sim *simulation) rescaling(d *appsv1.Deployment, l limits) bool {
	for _, set := range sim.beforeWrite {
		if s := sizeOf(set); s.replicas > 0 && s.desiredReplicas != l.replicas {
			return true
		}
	}
	return ptr.Deref(d.Spec.Replicas, 1) == 0
}

// settleAndCheck ends all failures and runs syncs until nothing changes. It then checks that the
// rollout is complete.
func (sim *simulation) settleAndCheck() {
	sim.cachesStale, sim.outcomeUnknown = false, false
	sim.onWrite = func(string) {}
	sim.updateSpec(func(d *appsv1.Deployment) { d.Spec.Paused = false })
	settle(sim.t, sim.fixture)
	d := sim.deployment()
	l, err := limitsOf(d)
	if err != nil {
		sim.t.Fatal(err)
	}
	if !complete(d, l, &d.Status) {
		sim.t.Fatalf("settled, but the rollout is not complete: %+v", d.Status)
	}
	for name, set := range sim.sets {
		want := int32(0)
		if templatehash.Equal(&d.Spec.Template, &set.Spec.Template) {
			want = int32(l.replicas)
			if highest := nextRevision(sim.allSets()) - 1; sim.revision(set) != highest || d.Annotations[revisionAnnotation] != fmt.Sprint(highest) {
				sim.t.Fatalf("revision %d, want %d; the Deployment has %s", sim.revision(set), highest, d.Annotations[revisionAnnotation])
			}
		}
		if *set.Spec.Replicas != want {
			sim.t.Fatalf("%s has %d replicas, want %d", name, *set.Spec.Replicas, want)
		}
	}
	if limit := d.Spec.RevisionHistoryLimit; limit != nil && len(sim.sets)-1 > int(*limit) {
		sim.t.Fatalf("%d ReplicaSets, want at most %d", len(sim.sets), *limit+1)
	}
	if c := findCondition(d.Status.Conditions, appsv1.DeploymentProgressing); c == nil || c.Reason != reasonNewReplicaSetAvailable {
		sim.t.Fatalf("settled, but the condition Progressing is %v", c)
	}
	if _, requested := rollbackTo(d.Annotations); requested || countRollbacks(sim.fixture) > sim.rollbackRequests {
		sim.t.Fatalf("%d rollback events for %d requests, annotation present: %t", countRollbacks(sim.fixture), sim.rollbackRequests, requested)
	}
}
