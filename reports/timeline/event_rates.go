package timeline

import (
	"maps"
	"slices"
	"time"
)

// eventRates collects the lag of watch events and the number of requests of the subject.
// Its charts have one value for each time slice.
type eventRates struct {
	lags     map[string][]lagSample // by resource
	requests map[string][]time.Duration
}

type lagSample struct{ at, lag time.Duration }

func newEventRates() *eventRates {
	return &eventRates{lags: map[string][]lagSample{}, requests: map[string][]time.Duration{}}
}

// delivered records the lag of a delivery.
func (p *eventRates) delivered(at time.Duration, resource string, lag time.Duration) {
	p.lags[resource] = append(p.lags[resource], lagSample{at, lag})
}

// answered records a request with a response.
func (p *eventRates) answered(m *Mark) {
	p.requests[m.Kind.String()] = append(p.requests[m.Kind.String()], m.From)
}

// A run has at most maxSlices time slices, the resolution of a narrow screen. No slice is
// shorter than minSlice.
const (
	maxSlices = 300
	minSlice  = 50 * time.Millisecond
)

// charts returns the longest lag and the requests per second of each slice.
func (p *eventRates) charts(end time.Duration) []Chart {
	slice := max(end/maxSlices, minSlice)
	n := int(end/slice) + 1
	lag := Chart{Title: "Lag of watch events", Unit: "ms"}
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

// sliced returns a line with one value for each time slice. It omits repeated values.
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
