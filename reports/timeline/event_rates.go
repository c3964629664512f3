package timeline

import (
	"maps"
	"slices"
	"time"
)

// eventRates collects the lag of watch events and the times of requests of the subject, for the
// charts.
type eventRates struct {
	lags     map[string][]lagSample     // the lags of deliveries, by resource
	requests map[string][]time.Duration // the times of requests, by the kind of the mark
}

// lagSample is the time of a delivery and its lag.
type lagSample struct{ at, lag time.Duration }

func newEventRates() *eventRates {
	return &eventRates{lags: map[string][]lagSample{}, requests: map[string][]time.Duration{}}
}

// delivered records the lag of a delivery. The lag is the time since the commit of the version.
func (p *eventRates) delivered(at time.Duration, resource string, lag time.Duration) {
	p.lags[resource] = append(p.lags[resource], lagSample{at, lag})
}

// answered records the time of a request that got a response.
func (p *eventRates) answered(m *Mark) {
	p.requests[m.Kind.String()] = append(p.requests[m.Kind.String()], m.From)
}

// The charts of [eventRates] divide the run into time slices of equal length.
const (
	maxSlices = 300                   // maximum number of slices, about the width of a narrow screen in pixels
	minSlice  = 50 * time.Millisecond // minimum length of a slice
)

// charts returns a chart of the lag and a chart of the requests per second. The lag chart has
// the longest lag of each time slice. The argument end is the end of the run.
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

// sliced returns a line with one value for each time slice. It omits a value that equals the
// value before it.
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
