package generate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// users draws the steps of the workload in the role of users. It tracks which objects exist
// after the steps drawn so far, so that each new step is valid.
type users struct {
	*rand.Rand
	profile Profile
	free    []string  // unused names for objects with replicas
	objects []*object // objects that exist after the steps drawn so far, in the order of their creation
	steps   []scenario.Step
	// faults has the faults of the sequences drawn so far. Each fault begins at a step.
	faults    []scenario.Fault
	sequences []userSequence // the sequences that the workload may have between its other steps
	last      []lastChange   // the changes that the method finish may use to end the workload
	finishes  int            // the number of steps when the method finish was called; 0 if finish was not called
	// err joins the errors of faults of sequences whose parameters cannot be parsed.
	err error
}

// object is an object that the workload has created and not deleted. The fields have the values
// that they have after the steps drawn so far.
type object struct {
	scenario.Target
	create   *scenario.Create // the operation that created the object
	replicas int              // the last value of spec.replicas in a step; 0 for objects without replicas
	versions int              // number of versions of the pod template so far
	paused   bool
	changed  bool // true if a step has changed the spec of a Service
}

// These functions report whether an object is of the named type. In this package, an owner is an
// object with replicas.

func owner(o *object) bool      { return o.create.Replicas != nil }
func deployment(o *object) bool { return o.Kind == scenario.Deployment }
func service(o *object) bool    { return o.Kind == scenario.Service }
func pods(o *object) bool       { return o.Kind == scenario.Pod }

// plain reports whether an object is an owner that creates pods itself: a ReplicaSet or a
// ReplicationController.
func plain(o *object) bool { return owner(o) && !deployment(o) }

// newUsers returns a value of type users that has drawn no steps yet. The method workload then
// draws the steps of a workload. The workload may contain the given sequences. It may end with
// changes from the list last.
func newUsers(r *rand.Rand, profile Profile, sequences []userSequence, last []lastChange) *users {
	u := &users{Rand: r, profile: profile, sequences: sequences, last: last, free: []string{"web", "api", "shop", "cart", "auth", "mail", "feed", "jobs", "logs", "maps", "docs", "ads"}}
	r.Shuffle(len(u.free), func(i, j int) { u.free[i], u.free[j] = u.free[j], u.free[i] })
	return u
}

// workload draws a workload of about the given duration. The duration does not include the time
// that steps wait for conditions, or the pauses in a sequence. The first steps create objects with
// replicas, and Services for half of them.
//
// A workload ends in one of three ways. In half of the cases, faults change pods (see
// [users.finish]). In a quarter, users change a Service (see [users.changeService]). In the last
// quarter, users change a label of each object with replicas. The controller enqueues an object on
// the change of its label, even if the work queue key of the object is in back-off.
func (u *users) workload(duration time.Duration) []scenario.Step {
	for range u.profile.owners.draw(u.Rand) {
		u.addOwner()
		if u.IntN(2) == 0 {
			u.addService()
		}
	}
	pause := u.profile.duration / 4 // between two sequences
	next := faults.PickTime(u.Rand, 0, pause, timeStep)
	for at := time.Duration(0); ; {
		gap := u.gap()
		if at += gap; at > duration || len(u.steps) >= stepsMax {
			break
		}
		before := len(u.steps)
		if at >= next {
			u.sequence()
			next += pause
		}
		for len(u.steps) == before { // the loop ends, because the operation scale is always possible
			userOperations[weighted(u.Rand, userOperations, func(o userOperation) int { return o.weight })].do(u)
		}
		u.steps[before].After = gap
	}
	switch u.IntN(4) {
	case 0:
		for _, o := range u.existing(owner) {
			u.enqueue(o)
		}
	case 1, 2:
		u.finish()
	default:
		u.changeService()
	}
	return u.steps
}

// stepsMax is the number of steps after which the generator begins no sequence or operation. The
// last one may exceed it, and the end of the workload adds steps. The limit for a scenario is 1000
// steps.
const stepsMax = 950

// gap draws the pause between two steps of the workload. In a workload of hours, users act in bursts:
// most pauses are short, and few last many minutes.
func (u *users) gap() time.Duration {
	if !u.profile.long {
		return faults.PickTime(u.Rand, 0, u.profile.gap, 50*time.Millisecond)
	}
	switch draw := u.IntN(10); {
	case draw < 6:
		return faults.PickTime(u.Rand, 0, 2*time.Second, 50*time.Millisecond)
	case draw < 8:
		return faults.PickTime(u.Rand, 2*time.Second, time.Minute, time.Second)
	default:
		return faults.PickTime(u.Rand, time.Minute, u.profile.gap, time.Minute)
	}
}

// weighted draws the index of an item. The probability of each item is proportional to its weight.
func weighted[T any](r *rand.Rand, from []T, weight func(T) int) int {
	sum := 0
	for _, item := range from {
		sum += weight(item)
	}
	left, i := r.IntN(sum), 0
	for left >= weight(from[i]) {
		left -= weight(from[i])
		i++
	}
	return i
}

// existing returns the objects for which the function fit returns true, in the order of their
// creation.
func (u *users) existing(fit func(*object) bool) []*object {
	var found []*object
	for _, o := range u.objects {
		if fit(o) {
			found = append(found, o)
		}
	}
	return found
}

// pick draws an object for which the function fit returns true. It returns nil if no object fits.
func (u *users) pick(fit func(*object) bool) *object {
	found := u.existing(fit)
	if len(found) == 0 {
		return nil
	}
	return faults.Pick(u.Rand, found...)
}

// room returns how many replicas the workload can still add. This is the profile's limit for
// generated scenarios minus the replicas of all objects.
func (u *users) room() int {
	room := u.profile.pods
	for _, o := range u.objects {
		room -= o.replicas
	}
	return room
}

// step appends a step with an operation to the workload. It returns a pointer to the step.
func (u *users) step(operation scenario.Operation) *scenario.Step {
	u.steps = append(u.steps, scenario.Step{Operation: operation})
	return &u.steps[len(u.steps)-1]
}

// createObject appends a step that creates an object, and adds the object to the tracked
// objects.
func (u *users) createObject(create *scenario.Create) {
	create.Count = max(create.Count, 1)
	if create.Controller == "" {
		create.Controller = scenario.NoController
	}
	o := &object{Target: create.Target, create: create, versions: 1, paused: create.Paused}
	if create.Replicas != nil {
		o.replicas = *create.Replicas
	}
	u.objects = append(u.objects, o)
	u.step(create)
}

// deleteObject appends a step that deletes an object, and removes the object from the tracked
// objects. It returns a pointer to the step.
func (u *users) deleteObject(o *object) *scenario.Step {
	u.objects = slices.DeleteFunc(u.objects, func(other *object) bool { return other == o })
	return u.step(u.deletion(o))
}

// deletion returns a delete operation with a random propagation policy. For a Service, the policy is
// never foreground: the Service would exist for a while, and a later step may create it again.
func (u *users) deletion(o *object) *scenario.Delete {
	propagation := faults.Pick(u.Rand, scenario.Background, scenario.Foreground, scenario.Orphan)
	if service(o) && propagation == scenario.Foreground {
		propagation = scenario.Background
	}
	return &scenario.Delete{Target: o.Target, Propagation: propagation}
}

// await adds a wait for an object with replicas to a step, with a probability of 1/8. It never
// adds a wait for a paused Deployment, whose rollout may never complete. It adds none in a long
// profile, because faults can then delay the awaited state for longer than a wait may last.
func (u *users) await(step *scenario.Step, o *object) {
	if u.IntN(8) > 0 || o.paused || u.profile.long {
		return
	}
	untils := []scenario.Until{scenario.Scaled, scenario.Ready, scenario.Available}
	if deployment(o) {
		untils = append(untils, scenario.Complete)
	}
	step.Await = &scenario.Await{Target: o.Target, Until: faults.Pick(u.Rand, untils...), Within: 30 * time.Second}
}
