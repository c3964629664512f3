package generate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// users draw what they do next, and know what there is by then.
type users struct {
	*rand.Rand
	podsMax int // of all owners together
	free    []string
	objects []*object // that live, in the order of their making
	steps   []scenario.Step
}

// object is something that users made and have not deleted.
type object struct {
	scenario.Target
	create   *scenario.Create
	replicas int
	versions int // of its template so far
	paused   bool
}

// What a deed may fit.

func owner(o *object) bool      { return o.create.Replicas != nil }
func deployment(o *object) bool { return o.Kind == scenario.Deployment }
func service(o *object) bool    { return o.Kind == scenario.Service }
func pods(o *object) bool       { return o.Kind == scenario.Pod }

// plain is an owner of pods by their labels alone.
func plain(o *object) bool { return owner(o) && !deployment(o) }

func newUsers(r *rand.Rand, podsMax int) *users {
	u := &users{Rand: r, podsMax: podsMax, free: []string{"web", "api", "shop", "cart", "auth", "mail", "feed", "jobs", "logs", "maps", "docs", "ads"}}
	r.Shuffle(len(u.free), func(i, j int) { u.free[i], u.free[j] = u.free[j], u.free[i] })
	return u
}

// work draws a workload of about the given duration. It begins with owners, and
// in every other case ends with something new for each, whatever its back-off.
func (u *users) work(p Profile, duration time.Duration) []scenario.Step {
	for range p.owners.draw(u.Rand) {
		u.addOwner()
	}
	for at := time.Duration(0); ; {
		gap := faults.PickTime(u.Rand, 0, p.gap, 50*time.Millisecond)
		if at += gap; at > duration {
			break
		}
		before := len(u.steps)
		for len(u.steps) == before { // users can always scale
			u.draw().do(u)
		}
		u.steps[before].After = gap
	}
	if u.IntN(2) == 0 {
		for _, o := range u.living(owner) {
			u.wake(o)
		}
	}
	return u.steps
}

// draw draws a deed by the weights.
func (u *users) draw() deed {
	sum := 0
	for _, d := range deeds {
		sum += d.weight
	}
	left, i := u.IntN(sum), 0
	for left >= deeds[i].weight {
		left -= deeds[i].weight
		i++
	}
	return deeds[i]
}

// living are the objects that are fit, in the order of their making.
func (u *users) living(fit func(*object) bool) []*object {
	var found []*object
	for _, o := range u.objects {
		if fit(o) {
			found = append(found, o)
		}
	}
	return found
}

// pick draws an object that is fit, nil if there is none.
func (u *users) pick(fit func(*object) bool) *object {
	found := u.living(fit)
	if len(found) == 0 {
		return nil
	}
	return faults.Pick(u.Rand, found...)
}

// room is how many more pods owners may ask for.
func (u *users) room() int {
	room := u.podsMax
	for _, o := range u.objects {
		room -= o.replicas
	}
	return room
}

func (u *users) step(operation scenario.Operation) *scenario.Step {
	u.steps = append(u.steps, scenario.Step{Operation: operation})
	return &u.steps[len(u.steps)-1]
}

// make makes an object, of which there is a Create with target and labels.
func (u *users) make(create *scenario.Create) {
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

// end deletes an object, and returns the step.
func (u *users) end(o *object) *scenario.Step {
	u.objects = slices.DeleteFunc(u.objects, func(other *object) bool { return other == o })
	return u.step(u.deletion(o))
}

func (u *users) deletion(o *object) *scenario.Delete {
	propagation := faults.Pick(u.Rand, scenario.Background, scenario.Background, scenario.Foreground, scenario.Orphan)
	return &scenario.Delete{Target: o.Target, Propagation: propagation}
}

// await has the user wait, now and then, for what is to become of an owner. One
// that is paused may be stuck half way.
func (u *users) await(step *scenario.Step, o *object) {
	if u.IntN(8) > 0 || o.paused {
		return
	}
	untils := []scenario.Until{scenario.Scaled, scenario.Ready, scenario.Available}
	if deployment(o) {
		untils = append(untils, scenario.Complete)
	}
	step.Await = &scenario.Await{Target: o.Target, Until: faults.Pick(u.Rand, untils...), Within: 30 * time.Second}
}
