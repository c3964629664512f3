// Package catalogue is the table of all kinds of faults: what scenarios may
// name, and what a list of faults shows. It is apart from package faults because
// the families import that one.
package catalog

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/clocks"
	"github.com/kube-gauntlet/gauntlet/faults/controlplane"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	"github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
)

// All is every kind of fault, in the order in which they are shown.
var All = []faults.Type{
	requests.Error,
	requests.Reset,
	requests.Slow,
	requests.Hang,
	requests.Lost,
	watches.Delay,
	watches.Stall,
	watches.End,
	watches.Bookmarks,
	watches.Stale,
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

// Find returns the kind of the given name. Its error names those that there are.
func Find(name string) (faults.Type, error) {
	names := make([]string, 0, len(All))
	for _, kind := range All {
		if kind.Name == name {
			return kind, nil
		}
		names = append(names, kind.Name)
	}
	return faults.Type{}, fmt.Errorf("unknown kind of fault %q; expected one of %s", name, strings.Join(names, ", "))
}
