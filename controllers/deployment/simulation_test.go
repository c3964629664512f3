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

// world is a Deployment whose user changes their mind, whose ReplicaSets follow
// when they like, whose caches lag, and whose API server fails. It watches the
// controller's every write.
type world struct {
	*rig
	t *rapid.T
	// unknown is set while a write has taken effect that the controller has no
	// answer to, and does not see: nobody can add up what nobody knows.
	unknown bool
	wishes  int
	before  map[string]*appsv1.ReplicaSet
	// seen and seenSets are what the caches showed when the sync began.
	seen     *appsv1.Deployment
	seenSets map[string]*appsv1.ReplicaSet
}

// TestWorld checks after every write that the controller has kept its limits by
// its own hand and by what it could see, and that all comes to rest as wanted
// once nothing changes or fails any more.
func TestWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{rig: newRig(t, newDeployment(rapid.Int32Range(0, 8).Draw(rt, "replicas"), image("v1"), fences(1, 1), deadline(600))), t: rt}
		w.wrote = w.check
		w.remember()
		rt.Repeat(map[string]func(*rapid.T){
			"":                  func(*rapid.T) {},
			"sync":              func(*rapid.T) { w.try() },
			"sync twice":        func(*rapid.T) { w.try(); w.try() },
			"sync under fault":  w.fail,
			"sync, answer lost": w.lose,
			"lag":               func(t *rapid.T) { w.lag = rapid.Bool().Draw(t, "lag") },
			"see Deployments":   func(*rapid.T) { w.deliverDeployments() },
			"see ReplicaSets":   func(*rapid.T) { w.deliverSets(); w.unknown = false },
			"ReplicaSets move":  w.move,
			"the user acts":     w.use,
		})
		w.rest()
	})
}

func (w *world) try() {
	object, _, _ := w.Controller.deployments.GetByKey(key)
	w.seen, w.seenSets = object.(*appsv1.Deployment), map[string]*appsv1.ReplicaSet{}
	for _, object := range w.replicaSets.List() {
		set := object.(*appsv1.ReplicaSet)
		w.seenSets[set.Name] = set
	}
	_ = w.sync(w.t.Context(), key) // may fail: it is retried
}

// fail lets any call of a sync fail before it takes effect.
func (w *world) fail(t *rapid.T) {
	for _, call := range w.likely() {
		if rapid.Bool().Draw(t, call) {
			w.answers[call] = []error{apierrors.NewInternalError(fmt.Errorf("chaos"))}
		}
	}
	w.try()
	clear(w.answers)
}

// lose lets calls of a sync take effect, and their answers be lost.
func (w *world) lose(t *rapid.T) {
	for _, call := range w.likely() {
		w.lost[call] = rapid.Bool().Draw(t, call)
	}
	w.try()
	clear(w.lost)
}

func (w *world) likely() []string {
	calls := []string{writeStatus, writeSpec, creates(w.deployment())}
	for _, set := range oldestFirst(w.all()) {
		calls = append(calls, "update replicasets "+set.Name, "delete replicasets "+set.Name)
	}
	return calls
}

func (w *world) all() []*appsv1.ReplicaSet {
	var all []*appsv1.ReplicaSet
	for _, set := range w.sets {
		all = append(all, set)
	}
	return oldestFirst(all)
}

// move lets one ReplicaSet have the pods that it asks for, some of them
// available.
func (w *world) move(t *rapid.T) {
	if len(w.sets) == 0 {
		t.Skip("there is none")
	}
	set := rapid.SampledFrom(w.all()).Draw(t, "set").DeepCopy()
	n := *set.Spec.Replicas
	available := rapid.Int32Range(min(n, set.Status.AvailableReplicas), n).Draw(t, "available")
	if rapid.IntRange(0, 4).Draw(t, "luck") == 0 {
		available = 0 // a bad day
	}
	having(n)(set)
	set.Status.AvailableReplicas, set.Status.ReadyReplicas = available, available
	w.store(set)
	if !w.lag {
		w.deliver()
	}
	w.remember()
}

// use changes the spec in one way.
func (w *world) use(t *rapid.T) {
	d := w.deployment().DeepCopy()
	switch rapid.IntRange(0, 7).Draw(t, "act") {
	case 0, 1:
		image(fmt.Sprintf("v%d", rapid.IntRange(1, 4).Draw(t, "image")))(d)
	case 2:
		scaled(rapid.Int32Range(0, 8).Draw(t, "replicas"))(d)
	case 3:
		d.Spec.Paused = !d.Spec.Paused
	case 4:
		fences(rapid.Int32Range(0, 3).Draw(t, "surge"), rapid.Int32Range(0, 3).Draw(t, "unavailable"))(d)
		d.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	case 5:
		asRecreate(d)
	case 6:
		annotated(appsv1.DeprecatedRollbackTo, fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "revision")))(d)
		w.wishes++
	case 7:
		historyLimit(rapid.Int32Range(0, 2).Draw(t, "history"))(d)
	}
	d.Generation++
	w.version++
	d.ResourceVersion = fmt.Sprint(w.version)
	w.deployments[d.Name] = d
	if !w.lag {
		w.deliver()
	}
}

func (w *world) remember() {
	w.before = map[string]*appsv1.ReplicaSet{}
	for name, set := range w.sets {
		w.before[name] = set
	}
}

// check is told of each write after it has taken effect and before any cache
// shows it.
func (w *world) check(call string) {
	defer w.remember()
	if w.lost[call] {
		w.unknown = w.unknown || strings.Contains(call, " replicasets ")
	}
	if count := w.deployment().Status.CollisionCount; count != nil {
		w.t.Fatalf("%d collisions, though nobody else names ReplicaSets so", *count)
	}
	name := call[strings.LastIndex(call, " ")+1:]
	was, is := w.before[name], w.sets[name]
	if !strings.Contains(call, " replicasets ") || is == nil {
		return
	}
	if was == nil {
		w.checkCreated(is)
	} else if before, _ := revisionOf(was.Annotations); before > w.revision(is) {
		w.t.Fatalf("the revision of %s falls from %d to %d", name, before, w.revision(is))
	}
	if !w.unknown {
		w.checkSize(w.seen, was, is)
	}
}

func (w *world) revision(set *appsv1.ReplicaSet) int64 {
	revision, _ := revisionOf(set.Annotations)
	return revision
}

func (w *world) checkCreated(created *appsv1.ReplicaSet) {
	for name, set := range w.sets {
		if name != created.Name && templatehash.Equal(&set.Spec.Template, &created.Spec.Template) {
			w.t.Fatalf("%s and %s have one template", name, created.Name)
		}
	}
}

// checkSize judges a change of size by the Deployment as the controller sees it.
func (w *world) checkSize(d *appsv1.Deployment, was, is *appsv1.ReplicaSet) {
	l, err := limitsOf(d)
	if err != nil {
		w.t.Fatal(err)
	}
	var from, to, total, available int32
	if was != nil {
		from = *was.Spec.Replicas
	}
	to = *is.Spec.Replicas
	for name, set := range w.sets {
		total += *set.Spec.Replicas
		available += w.counted(name, *set.Spec.Replicas)
	}
	if to > from && int(total) > l.maxReplicas() {
		w.t.Fatalf("%s goes up from %d to %d: %d in all, at most %d", is.Name, from, to, total, l.maxReplicas())
	}
	current := templatehash.Equal(&d.Spec.Template, &is.Spec.Template)
	if recreates(d) && !d.Spec.Paused && current && to > from && int(total) > int(to) && from == 0 {
		w.t.Fatalf("%s starts with %d beside others: %d in all", is.Name, to, total)
	}
	if rolls(d) && !d.Spec.Paused && to < from && !w.rescaling(d, l) {
		lost := w.counted(is.Name, from) - w.counted(is.Name, to)
		if lost > 0 && int(available) < l.minAvailable() {
			w.t.Fatalf("%s goes down from %d to %d: %d available are left, the least is %d", is.Name, from, to, available, l.minAvailable())
		}
	}
}

// counted is how many of replicas the controller saw to be available.
func (w *world) counted(name string, replicas int32) int32 {
	set := w.seenSets[name]
	if set == nil {
		return 0
	}
	return min(set.Status.AvailableReplicas, replicas)
}

// rescaling reports whether a write may belong to a change of scale.
func (w *world) rescaling(d *appsv1.Deployment, l limits) bool {
	for _, set := range w.before {
		if s := sizeOf(set); s.replicas > 0 && s.desiredReplicas != l.replicas {
			return true
		}
	}
	return ptr.Deref(d.Spec.Replicas, 1) == 0
}

// rest lets everything heal, and waits for what was promised.
func (w *world) rest() {
	w.lag, w.unknown = false, false
	w.wrote = func(string) {}
	w.edit(func(d *appsv1.Deployment) { d.Spec.Paused = false })
	settle(w.t, w.rig)
	d := w.deployment()
	l, err := limitsOf(d)
	if err != nil {
		w.t.Fatal(err)
	}
	if !complete(d, l, &d.Status) {
		w.t.Fatalf("at rest, and not complete: %+v", d.Status)
	}
	for name, set := range w.sets {
		want := int32(0)
		if templatehash.Equal(&d.Spec.Template, &set.Spec.Template) {
			want = int32(l.replicas)
			if highest := nextRevision(w.all()) - 1; w.revision(set) != highest || d.Annotations[revisionAnnotation] != fmt.Sprint(highest) {
				w.t.Fatalf("revision %d, the highest is %d, the Deployment says %s", w.revision(set), highest, d.Annotations[revisionAnnotation])
			}
		}
		if *set.Spec.Replicas != want {
			w.t.Fatalf("%s has %d replicas, want %d", name, *set.Spec.Replicas, want)
		}
	}
	if limit := d.Spec.RevisionHistoryLimit; limit != nil && len(w.sets)-1 > int(*limit) {
		w.t.Fatalf("%d ReplicaSets, at most %d are to be kept", len(w.sets), *limit+1)
	}
	if c := findCondition(d.Status.Conditions, appsv1.DeploymentProgressing); c == nil || c.Reason != reasonNewReplicaSetAvailable {
		w.t.Fatalf("at rest, and progressing: %v", c)
	}
	if _, wished := rollbackTo(d.Annotations); wished || countRollbacks(w.rig) > w.wishes {
		w.t.Fatalf("%d rollbacks told of %d wishes, one still open: %t", countRollbacks(w.rig), w.wishes, wished)
	}
}
