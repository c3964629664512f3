package bench

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// TestStatistics requires the known interval of a small sample, and the slope of a power.
func TestStatistics(t *testing.T) {
	mean, half := meanAndInterval([]float64{1, 2, 3, 4})
	if mean != 2.5 || math.Abs(half-3.182*math.Sqrt(5.0/3/4)) > 1e-9 {
		t.Errorf("got %v ± %v", mean, half)
	}
	if _, half := meanAndInterval([]float64{1}); !math.IsInf(half, 1) {
		t.Errorf("one value has the interval ±%v; want infinity", half)
	}
	x, y := []float64{math.Log(100), math.Log(1000), math.Log(5000)}, []float64{}
	for _, v := range x {
		y = append(y, 3+1.5*v)
	}
	if got := slope(x, y); math.Abs(got-1.5) > 1e-9 {
		t.Errorf("got the slope %v; want 1.5", got)
	}
}

// TestCPUClock requires that the clock of this process advances by about the work that it does.
func TestCPUClock(t *testing.T) {
	before, err := cpuClock(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now < before+20*time.Millisecond; { // ends only if the clock advances
		if now, err = cpuClock(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if user, err := userTime(os.Getpid()); err != nil || user > before+time.Hour {
		t.Errorf("user time %v, %v", user, err)
	}
	if peak, err := peakMemory(os.Getpid(), nil); err != nil || peak < 1<<20 {
		t.Errorf("peak memory %v, %v", peak, err)
	}
}

func TestParse(t *testing.T) {
	values := parseMetrics("# TYPE go_memstats_mallocs_total counter\ngo_memstats_mallocs_total 1.5e+06\nwith_labels{a=\"b c\"} 7\n")
	if values["go_memstats_mallocs_total"] != 1.5e6 {
		t.Errorf("got %v", values)
	}
	if name, parent := parseStat("17 (a (strange) name) S 4 17 17"); name != "a (strange) name" || parent != 4 {
		t.Errorf("got %q, %d", name, parent)
	}
	family, err := descendants(os.Getpid())
	if err != nil || family[os.Getpid()] == "" {
		t.Errorf("got %v, %v; want this process", family, err)
	}
}

// TestTable requires that the table shows ratios, marks a missed goal, and lists requests of which
// ours sends more.
func TestTable(t *testing.T) {
	costOf := func(cpu time.Duration, creates int) cost {
		return cost{cpu: cpu, apiServer: time.Second, peak: 100, took: time.Second, traffic: traffic{requests: map[string]int{"create pods": creates, "update a": 5}}}
	}
	var results []result
	for _, pods := range []int{100, 1000} {
		r := result{load: ladder(pods)}
		for range 2 {
			var p pair
			for range r.load.phases {
				p.ours = append(p.ours, costOf(time.Duration(pods)*time.Millisecond, 8))
				p.base = append(p.base, costOf(2*time.Duration(pods)*time.Millisecond, 7))
			}
			r.pairs = append(r.pairs, p)
		}
		results = append(results, r)
	}
	text := table(results)
	for _, want := range []string{"0.50", "1.08*", "ladder-1000 up: create pods: ours 8, base 7", "slope of CPU in roll: ours 1.00, base 1.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("found no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "update a") {
		t.Errorf("found a kind of which both send the same number:\n%s", text)
	}
	lines := benchstat(results)
	if want := "BenchmarkControllers/load=ladder/size=100/phase=up/subject=ours 1 0.1 cpu-sec/op "; !strings.Contains(lines, want) || strings.Count(lines, "\n") != 3+2*2*4*2 {
		t.Errorf("found no %q, or not one line for each value in:\n%s", want, lines)
	}
}

// TestMeasure measures a small ladder. Each phase must have a cost in every metric that both subjects
// always have. It must also have the number of creates that the load needs.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and takes more than a minute")
	}
	costs, err := tryMeasure(t.Context(), t.TempDir(), ladder(8), subject.Ours)
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) != 4 {
		t.Fatalf("got the costs of %d phases; want 4", len(costs))
	}
	for i, p := range ladder(8).phases {
		c := &costs[i]
		if c.cpu <= 0 || c.user > c.cpu || c.allocs <= 0 || c.allocated <= 0 || c.peak < 1<<20 || c.events == 0 || c.took <= 0 || c.apiServer <= 0 {
			t.Errorf("phase %s: a value is missing or impossible: %+v", p.name, c)
		}
	}
	if up, roll := costs[0].requests["create pods"], costs[1].requests["create pods"]; up != 8 || roll != 8 {
		t.Errorf("got %d creates of pods in the phase up and %d in the phase roll; want 8 in each", up, roll)
	}
}
