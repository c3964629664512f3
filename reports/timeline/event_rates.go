package timeline

import (
	"maps"
	"slices"
	"time"
)

// eventRates collects the values of two charts: the request rate of the subject, and the lag of
// watch events. The lag is the time from the commit of a version to its delivery.
type eventRates struct {
	lags     map[string][]lagSample     // the lags of deliveries, by resource
	requests map[string][]time.Duration // the times of requests, by the kind of the mark
}

// lagSample is the time at which a watch event was delivered, and its lag. The lag is the time
// since the commit of the delivered version.
type lagSample struct{ at, lag time.Duration }

func newEventRates() *eventRates {
	return &eventRates{lags: map[string][]lagSample{}, requests: map[string][]time.Duration{}}
}

// delivered records the lag of a watch event: the time from the commit of a version to its
// delivery.
func (p *eventRates) delivered(at time.Duration, resource string, lag time.Duration) {
	p.lags[resource] = append(p.lags[resource], lagSample{at, lag})
}

// answered records a request whose response is in the history. The chart shows the request at
// the time at which it was sent.
func (p *eventRates) answered(m *Mark) {
	p.requests[m.Kind.String()] = append(p.requests[m.Kind.String()], m.From)
}

// The charts of [eventRates] divide the run into time slices of equal length.
const (
	maxSlices = 300                   // maximum number of slices; a narrow screen has about as many pixels
	minSlice  = 50 * time.Millisecond // minimum length of a slice
)

// charts returns a chart of the lag of watch events and a chart of the requests per second.
//
// In each time slice, the lag chart shows the longest lag. The argument end is the time at
// which the run ended.
func (p *eventRates) charts(end time.Duration) []Chart {
	slice := max(end/maxSlices, minSlice)
	n := max(0, int(end/slice)) + 1
	index := func(at time.Duration) int { return min(max(0, int(at/slice)), n-1) } // a corrupt history may contain any time
	lag := Chart{Title: "Lag of watch events", Unit: "ms"}
	for _, resource := range slices.Sorted(maps.Keys(p.lags)) {
		values := make([]float64, n)
		for _, s := range p.lags[resource] {
			i := index(s.at)
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
			values[index(at)] += 1 / slice.Seconds()
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
