package timeline

import (
	"maps"
	"slices"
	"time"
)

// eventRates is how fast things went: how late the subject learned of versions, and
// how many requests it made. Both are drawn in slices of time.
type eventRates struct {
	lags     map[string][]lagSample // by resource
	requests map[string][]time.Duration
}

type lagSample struct{ at, lag time.Duration }

func newEventRates() *eventRates {
	return &eventRates{lags: map[string][]lagSample{}, requests: map[string][]time.Duration{}}
}

// delivered notes how late a version of a resource was handed over.
func (p *eventRates) delivered(at time.Duration, resource string, lag time.Duration) {
	p.lags[resource] = append(p.lags[resource], lagSample{at, lag})
}

// answered notes a request that has its answer.
func (p *eventRates) answered(m *Mark) {
	p.requests[m.Kind.String()] = append(p.requests[m.Kind.String()], m.From)
}

// maxSlices is into how many slices a run is cut: as many as a narrow screen
// tells apart. No slice is shorter than sliceMin.
const (
	maxSlices = 300
	minSlice  = 50 * time.Millisecond
)

// charts draws the longest lag of each slice, and the requests of each a second.
func (p *eventRates) charts(end time.Duration) []Chart {
	slice := max(end/maxSlices, minSlice)
	n := int(end/slice) + 1
	lag := Chart{Title: "How late watch events were", Unit: "ms"}
	for _, resource := range slices.Sorted(maps.Keys(p.lags)) {
		values := make([]float64, n)
		for _, s := range p.lags[resource] {
			i := int(s.at / slice)
			values[i] = max(values[i], float64(s.lag.Microseconds())/1000)
		}
		lag.Lines = append(lag.Lines, sliced(resource, slice, values))
	}
	rate := Chart{Title: "Requests of the subject", Unit: "/s"}
	for _, kind := range []Kind{Write, Refused, Read} {
		sent := p.requests[kind.String()]
		if len(sent) == 0 {
			continue
		}
		values := make([]float64, n)
		for _, at := range sent {
			values[int(at/slice)] += 1 / slice.Seconds()
		}
		rate.Lines = append(rate.Lines, sliced(kind.String(), slice, values))
	}
	return slices.DeleteFunc([]Chart{lag, rate}, func(c Chart) bool { return len(c.Lines) == 0 })
}

// sliced is the line of one value a slice, without those that change nothing.
func sliced(name string, slice time.Duration, values []float64) Line {
	line := Line{Name: name}
	for i, value := range values {
		if i > 0 && value == values[i-1] {
			continue
		}
		line.At, line.Values = append(line.At, time.Duration(i)*slice), append(line.Values, value)
	}
	return line
}
