package timeline

import "time"

// Align returns matching points in time of two runs of one scenario. A page uses them to draw
// the two timelines side by side. The time ofA[i] in run a and the time ofB[i] in run b have the
// same meaning. For example, both are the start of step 3.
//
// The points are the start, the start of each step and phase that both runs have, and the end.
// The times increase in both lists. Align skips points for which this is not true, such as steps
// that began in different orders.
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

// landmark is an event by which Align matches two runs of one scenario. It is the start of a step
// or phase, or the end of the run.
type landmark struct {
	what any // the name of the step or of the phase, or a value of type end
	at   time.Duration
}

// end is the type of landmark.what for the end of a run. For a step or a phase, landmark.what is a
// name.
type end struct{}

// landmarks returns the starts of a run's steps and phases, and the run's end, sorted by time. If
// a step or phase starts several times, only its first start is a landmark.
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
