package timeline

import "time"

// Align returns times of two runs of one scenario that correspond to each other. These are
// the times of the starts, the common steps and phases, and the ends. Both results are
// ascending and have the same length.
func Align(a, b *Timeline) (ofA, ofB []time.Duration) {
	ofA, ofB = []time.Duration{0}, []time.Duration{0}
	timesOfB := map[any]time.Duration{}
	for _, l := range landmarks(b) {
		timesOfB[l.what] = l.at
	}
	for _, l := range landmarks(a) {
		last := len(ofA) - 1
		if at, ok := timesOfB[l.what]; ok && l.at > ofA[last] && at > ofB[last] {
			ofA, ofB = append(ofA, l.at), append(ofB, at)
		}
	}
	return ofA, ofB
}

// landmark is a point that every run of a scenario reaches.
type landmark struct {
	what any // the name of a step or phase, or the end
	at   time.Duration
}

// end is the last landmark.
type end struct{}

// landmarks returns the landmarks of a run in order. If a landmark occurs several times,
// only the first occurrence counts.
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
