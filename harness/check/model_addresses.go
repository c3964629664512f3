package check

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// This file computes the addresses that the Endpoints of a Service must contain. It compares
// sets of pairs of an address and a port. The order of addresses in Endpoints, and their
// grouping into subsets, therefore do not matter.

// expectedAddresses returns all combinations of IP address and port that the Endpoints of a Service
// must contain.
//
// It leaves out pods that have failed or succeeded. A pod whose UID is a key of the map running
// counts as if its containers still ran. The values of the map are not used. It returns an error if
// a pod cannot be decoded.
func (state *objectSet) expectedAddresses(s *objects.Service, running map[types.UID]time.Duration) (objects.AddressSet, error) {
	all := objects.AddressSet{}
	for uid, p := range state.pods {
		if _, taken := running[uid]; taken && p.Ended {
			alive := *p
			alive.Ended = false
			p = &alive
		}
		if a := state.podAddresses[uid]; a != nil {
			if err := addAddresses(s, all, podVersion{p, a}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// addAddresses adds all combinations of one pod's IP address with its ports to the set all. It adds
// nothing if the Service does not select the pod, or if the Endpoints must not list the pod. It
// returns an error if the pod cannot be decoded.
func addAddresses(s *objects.Service, all objects.AddressSet, version podVersion) error {
	publishAll := s.Spec.PublishNotReadyAddresses
	if version.Ended || version.Terminating && !publishAll || version.Namespace != s.Namespace || !s.Selector.Matches(version.Labels) {
		return nil
	}
	network, err := version.Network()
	if err != nil {
		return fmt.Errorf("decoding the addresses of %s: %w", podName(version.Pod), err)
	}
	target := objects.PodTarget{IP: network.IP(s), Node: network.Spec.NodeName, Pod: "Pod " + version.Namespace + "/" + version.Name, UID: version.UID}
	if target.IP == "" {
		return nil
	}
	if network.Spec.Subdomain == s.Name {
		target.Hostname = network.Spec.Hostname
	}
	if len(s.Spec.Ports) == 0 && s.Headless() {
		all.Add(objects.AddressAndPort{PodTarget: target}, version.Ready || publishAll)
	}
	for i := range s.Spec.Ports {
		if number := network.Port(&s.Spec.Ports[i]); number != 0 {
			all.Add(objects.AddressAndPort{PodTarget: target, Port: objects.EndpointPortOf(&s.Spec.Ports[i], number)}, version.Ready || publishAll)
		}
	}
	return nil
}

// describeDifference describes the first difference between the addresses that the Endpoints list
// and the expected addresses. The parameters got and want contain these two sets. An example of a
// result is "lack 10.0.0.7:80 (Pod default/web-1)". The result is "" if there is no difference.
//
// If more than AddressesMax addresses are expected, the controller may choose which ones to list.
// describeDifference then compares only how many addresses are listed, and how many of them are
// ready.
func describeDifference(got, want objects.AddressSet) string {
	total, ready := want.Size()
	fits := total <= objects.AddressesMax
	var missing, wrongReadiness, extra []string
	for p, isReady := range want {
		gotReady, ok := got[p]
		switch {
		case ok && gotReady != isReady:
			wrongReadiness = append(wrongReadiness, p.String())
		case !ok && fits:
			missing = append(missing, p.String())
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			extra = append(extra, p.String())
		}
	}
	switch {
	case len(missing) > 0:
		return "lack " + firstAndCount(missing)
	case len(wrongReadiness) > 0:
		return "have the wrong readiness for " + firstAndCount(wrongReadiness)
	case len(extra) > 0:
		return "should not list " + firstAndCount(extra)
	case fits:
		return ""
	}
	gotTotal, gotReadyTotal := got.Size()
	if gotTotal != objects.AddressesMax || gotReadyTotal != min(ready, objects.AddressesMax) {
		return fmt.Sprintf("list %d addresses (%d ready), expected %d (%d ready) of the %d addresses of the Service", gotTotal, gotReadyTotal, objects.AddressesMax, min(ready, objects.AddressesMax), total)
	}
	return ""
}

// firstAndCount shortens a list of names for the evidence of a violation, such as "web-a and 2
// more".
func firstAndCount(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// describeAddresses describes a set of addresses for the evidence of a violation. An example is
// "ready 10.0.0.7:80 (Pod default/web-1) and 2 more". For an empty set it returns "nothing".
func describeAddresses(addresses objects.AddressSet) string {
	if len(addresses) == 0 {
		return "nothing"
	}
	var all []string
	for p, ready := range addresses {
		all = append(all, fmt.Sprintf("%s %s", map[bool]string{true: "ready", false: "not ready"}[ready], p))
	}
	slices.Sort(all)
	return firstAndCount(all)
}
