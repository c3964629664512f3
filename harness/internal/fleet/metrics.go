package fleet

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Metrics has the Prometheus metrics of a worker, which is the program in each pod of a campaign. A
// nil *Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	seconds  prometheus.Histogram
	planned  prometheus.Gauge
}

// NewMetrics returns the metrics of a worker (the program in a pod) of the given campaign.
func NewMetrics(c *Campaign) *Metrics {
	labels := prometheus.Labels{"campaign": c.Name}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gauntlet_fleet_runs_total", ConstLabels: labels,
			Help: "Number of runs that ended, by subject and verdict.",
		}, []string{"subject", "verdict"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gauntlet_fleet_run_history_seconds", ConstLabels: labels,
			Help:    "Time from the first to the last record of a run.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8),
		}),
		planned: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gauntlet_fleet_planned_runs", ConstLabels: labels,
			Help: "Number of runs without a result when the pod started.",
		}),
	}
	m.registry.MustRegister(m.runs, m.seconds, m.planned)
	return m
}

// Handler returns an HTTP handler that serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// plan sets the metric that says how many runs this pod will make.
func (m *Metrics) plan(runs int) {
	if m != nil {
		m.planned.Set(float64(runs))
	}
}

// add counts a run that has ended, by its verdict and its subject, the controllers under test.
func (m *Metrics) add(run reports.Run) {
	if m != nil {
		m.runs.WithLabelValues(run.Subject, string(run.Verdict)).Inc()
		m.seconds.Observe(run.Duration.Seconds())
	}
}
