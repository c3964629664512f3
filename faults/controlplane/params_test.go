package controlplane

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
)

func TestRestartParams(t *testing.T) {
	for _, faultType := range []string{"api-server-restart", "etcd-restart"} {
		t.Run(faultType, func(t *testing.T) {
			row := APIServer
			if faultType == Etcd.Name {
				row = Etcd
			}
			faulttest.Params(t, row, []faulttest.Case{
				{Text: "{}"},
				{Text: "downtime: 0s"},
				{Text: "downtime: 30s"},
				{Text: "downtime: 31s", Want: "s.yaml:1:11: " + faultType + ".downtime: 31s is out of bounds; expected 0s to 30s"},
				{Text: "downtime: -1s", Want: "s.yaml:1:11: " + faultType + ".downtime: -1s is out of bounds; expected 0s to 30s"},
			})
		})
	}
}

func TestCompactParams(t *testing.T) {
	faulttest.Params(t, Compact, []faulttest.Case{
		{Text: "{}"},
		{Text: "{every: 10ms, times: 3}"},
		{Text: "every: 1ms", Want: "s.yaml:1:8: etcd-compact.every: 1ms is out of bounds; expected 10ms to 1h0m0s"},
		{Text: "times: -1", Want: "s.yaml:1:8: etcd-compact.times: -1 is out of bounds; expected 0 to 1000000"},
	})
}
