package timeline

import "time"

// Align returns the times of two runs of one scenario that belong together: the
// beginnings, each step of the workload and each phase that both have, and the
// ends. Both rise, and are of one length.
func Align(a, b *Timeline) (ofA, ofB []time.Duration) {
	ofA, ofB = []time.Duration{0}, []time.Duration{0}
	theirs := map[any]time.Duration{}
	for _, l := range landmarks(b) {
		theirs[l.what] = l.at
	}
	for _, l := range landmarks(a) {
		last := len(ofA) - 1
		if at, ok := theirs[l.what]; ok && l.at > ofA[last] && at > ofB[last] {
			ofA, ofB = append(ofA, l.at), append(ofB, at)
		}
	}
	return ofA, ofB
}

// landmark is something that every run of a scenario comes to.
type landmark struct {
	what any // a step's name, a phase's name, or the end
	at   time.Duration
}

// end is the landmark behind all others.
type end struct{}

// landmarks are those of a run, in order; of what happens again the first.
func landmarks(t *Timeline) []landmark {
	var all []landmark
	seen := map[any]bool{}
	add := func(what any, at time.Duration) {
		if !seen[what] {
			seen[what] = true
			all = append(all, landmark{what, at})
		}
	}
	phase := 0
	phases := func(until time.Duration) {
		for ; phase < len(t.Phases) && t.Phases[phase].At <= until; phase++ {
			add(t.Phases[phase].Name, t.Phases[phase].At)
		}
	}
	for _, m := range t.Marks {
		if m.Kind == Step {
			phases(m.From)
			add(m.Action, m.From)
		}
	}
	phases(t.End)
	add(end{}, t.End)
	return all
}
