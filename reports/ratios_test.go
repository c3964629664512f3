package reports

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/compare"
)

var ratios = []compare.Ratio{
	{Metric: "scale up to 1000 pods", Unit: "s", Subject: []float64{5.1, 5.3, 5.2, 5.0, 5.2}, Base: []float64{6.0, 6.2, 5.9, 6.1, 6.0}},
	{Metric: compare.EndpointsWrong, Unit: "s", Subject: []float64{0.5, 0.6, 0.5, 0.4, 0.5}, Base: []float64{1.5, 1.6, 1.4, 1.5, 1.7}},
	{Metric: compare.BytesReceived, Unit: "KiB", Subject: []float64{900, 901, 902, 903, 904}, Base: []float64{900, 901, 902, 903, 904}},
	{Metric: "CPU time", Unit: "s", Subject: []float64{2, 3, 2, 3, 2}, Base: []float64{2, 2, 3, 3, 2}},
	{Metric: "create pods", Subject: []float64{1000, 1000, 1000, 1000, 1000}, Base: []float64{1000, 1000, 1000, 1000, 1000}},
	{Metric: "patch pods", Subject: []float64{1, 1, 1, 1, 1}, Base: []float64{0, 0, 0, 0, 0}},
}

func TestRatios(t *testing.T) {
	var got bytes.Buffer
	if err := Ratios(&got, "ours", "upstream", ratios); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "ratios.txt"), got.String())
	few := compare.Ratio{Metric: "CPU time", Unit: "s", Subject: []float64{1, 1, 1}, Base: []float64{2, 2, 2}}
	if got := costsOf("ours", "upstream", []compare.Ratio{few}).Rows[0].Finding; got != "too few pairs (p=0.100)" {
		t.Errorf("of three pairs that all differ it is found: %s", got)
	}
	if err := Ratios(failingWriter{errors.New("disk full")}, "ours", "upstream", ratios); err == nil {
		t.Error("no error though the output is lost")
	}
}
