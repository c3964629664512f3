package timeline

import (
	"maps"
	"slices"
	"time"
)

// eventRates collects the values of two charts: the request rate of the controllers under test, and
// watch event lag. The lag is the time from the commit of an object's version to the delivery of
// its watch event.
type eventRates struct {
	lags     map[string][]lagSample     // the lags of watch events, by resource
	requests map[string][]time.Duration // the times at which requests were sent, by the Kind of the mark, such as "write"
}

// lagSample is the time at which a watch event was delivered, and the watch event's lag. The lag
// is the time since the commit of the delivered version.
type lagSample struct{ at, lag time.Duration }

func newEventRates() *eventRates {
	return &eventRates{lags: map[string][]lagSample{}, requests: map[string][]time.Duration{}}
}

// delivered records a delivered watch event with its lag, which is the time since the commit of
// the delivered version.
func (p *eventRates) delivered(at time.Duration, resource string, lag time.Duration) {
	p.lags[resource] = append(p.lags[resource], lagSample{at, lag})
}

// answered records a request that got a response, for the chart of the request rate. The argument m
// is the request's mark on the timeline. The chart shows the request at the time at which it was
// sent.
func (p *eventRates) answered(m *Mark) {
	p.requests[m.Kind.String()] = append(p.requests[m.Kind.String()], m.From)
}

// maxSlices and minSlice limit the time slices of the charts of [eventRates]. A chart has one value
// for each time slice, and all slices have the same length.
const (
	maxSlices = 300                   // the maximum number of slices; a narrow screen has about as many pixels
	minSlice  = 50 * time.Millisecond // the minimum length of a slice
)

// charts returns a chart of the lag of watch events and a chart of the requests per second.
//
// The lag chart shows the longest lag in each time slice. The argument end is the time at which
// the run ended. A chart without values is omitted.
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

// sliced returns a line of a chart from one value for each time slice. The argument slice is the
// length of a time slice. The line omits a value that equals the previous value.
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
