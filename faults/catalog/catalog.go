// Package catalog contains the table of all fault types. Scenarios, `gauntlet list` and the
// generated reference use this table. The table is not in package faults, because the packages
// of the fault types import package faults.
package catalog

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/clocks"
	"github.com/kube-gauntlet/gauntlet/faults/controlplane"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	"github.com/kube-gauntlet/gauntlet/faults/ordering"
	"github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// All contains every fault type, in the order of docs/reference/faults.md.
var All = []faults.Type{
	requests.Error,
	requests.Reset,
	requests.Slow,
	requests.Hang,
	requests.SlowResponse,
	requests.Lost,
	watches.Delay,
	watches.Stall,
	watches.End,
	watches.Skip,
	watches.Bookmarks,
	watches.Stale,
	ordering.Random,
	pods.Churn,
	pods.Relabel,
	pods.Disown,
	admission.Pending,
	processes.Restart,
	processes.Crash,
	processes.Freeze,
	nodes.Cordon,
	nodes.Drain,
	nodes.Taint,
	nodes.NotReady,
	nodes.Stop,
	nodes.CutOff,
	nodes.Delete,
	controlplane.APIServer,
	controlplane.Etcd,
	controlplane.Compact,
	clocks.Skew,
	admission.Name,
	admission.Quota,
	admission.Policy,
	admission.Namespace,
	users.Edit,
}

// Find returns the fault type with the given name. If no fault type has this name, the error
// lists the known names.
func Find(name string) (faults.Type, error) {
	names := make([]string, 0, len(All))
	for _, faultType := range All {
		if faultType.Name == name {
			return faultType, nil
		}
		names = append(names, faultType.Name)
	}
	return faults.Type{}, fmt.Errorf("unknown fault type %q; expected one of %s%s", name, strings.Join(names, ", "), nearest.Suggestion(name, names))
}
