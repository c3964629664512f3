package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file computes the addresses that the Endpoints of a Service must contain. It
// compares single pairs of address and port, so that the order and the grouping into
// subsets do not matter.

// addressesMax is the maximum number of addresses in one Endpoints object.
const addressesMax = 1000

// podAddress contains the addresses of a committed or cached pod. It decodes them when
// first used.
type podAddress struct {
	body    []byte
	decoded *podNetwork // nil until first used
	err     error
}

type podNetwork struct {
	Spec   corev1.PodSpec
	Status corev1.PodStatus
}

func (a *podAddress) network() (*podNetwork, error) {
	if a.decoded == nil && a.err == nil {
		a.decoded = &podNetwork{}
		a.err = unmarshalSome(a.body, a.decoded)
		a.body = nil
	}
	return a.decoded, a.err
}

// addressSet contains the pairs of address and port, and whether each is ready.
type addressSet map[addressAndPort]bool

// addressAndPort is one port at one address.
type addressAndPort struct {
	podTarget
	port endpointPort
}

// podTarget is an address and the pod behind it.
type podTarget struct {
	ip, node, hostname string
	pod                string
	uid                types.UID
}

// endpointPort is a port in Endpoints. The zero value means no port, which only headless
// Services may have.
type endpointPort struct {
	name, protocol, application string
	number                      int32
}

func (p addressAndPort) String() string {
	address := p.ip
	if p.port != (endpointPort{}) {
		address = fmt.Sprintf("%s:%d", p.ip, p.port.number)
	}
	return fmt.Sprintf("%s (%s)", address, cmp.Or(p.pod, "no targetRef"))
}

// add adds a pair. A pair that is listed twice is ready only if both entries are.
func (addresses addressSet) add(p addressAndPort, ready bool) {
	if readyBefore, ok := addresses[p]; ok {
		ready = ready && readyBefore
	}
	addresses[p] = ready
}

// decodeAddresses returns the pairs that the Endpoints contain.
func (e *endpoints) decodeAddresses() (addressSet, error) {
	var body struct {
		Subsets []struct {
			Addresses, NotReadyAddresses []corev1.EndpointAddress
			Ports                        []corev1.EndpointPort
		}
	}
	if err := unmarshalSome(e.body, &body); err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	all := addressSet{}
	for i := range body.Subsets {
		subset := &body.Subsets[i]
		ports := []endpointPort{{}}
		if len(subset.Ports) > 0 {
			ports = nil
		}
		for _, p := range subset.Ports {
			ports = append(ports, endpointPort{p.Name, string(p.Protocol), stringOrEmpty(p.AppProtocol), p.Port})
		}
		for _, p := range ports {
			for _, a := range subset.Addresses {
				all.add(addressAndPort{podTargetOf(a), p}, true)
			}
			for _, a := range subset.NotReadyAddresses {
				all.add(addressAndPort{podTargetOf(a), p}, false)
			}
		}
	}
	return all, nil
}

func podTargetOf(a corev1.EndpointAddress) podTarget {
	target := podTarget{ip: a.IP, node: stringOrEmpty(a.NodeName), hostname: a.Hostname}
	if a.TargetRef != nil {
		target.pod, target.uid = a.TargetRef.Kind+" "+a.TargetRef.Namespace+"/"+a.TargetRef.Name, a.TargetRef.UID
	}
	return target
}

// expectedAddresses returns the pairs that the Endpoints of a Service must contain. The
// pods in running count as running although they have failed or succeeded.
func (state *objectSet) expectedAddresses(s *service, running map[types.UID]time.Duration) (addressSet, error) {
	all := addressSet{}
	for uid, p := range state.pods {
		if _, taken := running[uid]; taken && p.ended {
			alive := *p
			alive.ended = false
			p = &alive
		}
		if a := state.podAddresses[uid]; a != nil {
			if err := s.addAddresses(all, podVersion{p, a}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// addAddresses adds the pairs that the Endpoints must contain for one pod.
func (s *service) addAddresses(all addressSet, version podVersion) error {
	publishAll := s.spec.PublishNotReadyAddresses
	if version.ended || version.terminating && !publishAll || version.Namespace != s.Namespace || !s.selector.Matches(version.labels) {
		return nil
	}
	network, err := version.network()
	if err != nil {
		return fmt.Errorf("%s: %w", version.Ref, err)
	}
	target := podTarget{ip: network.ip(s), node: network.Spec.NodeName, pod: "Pod " + version.Namespace + "/" + version.Name, uid: version.UID}
	if target.ip == "" {
		return nil
	}
	if network.Spec.Subdomain == s.Name {
		target.hostname = network.Spec.Hostname
	}
	if len(s.spec.Ports) == 0 && s.headless() {
		all.add(addressAndPort{podTarget: target}, version.ready || publishAll)
	}
	for i := range s.spec.Ports {
		if number := network.port(&s.spec.Ports[i]); number != 0 {
			all.add(addressAndPort{target, endpointPortOf(&s.spec.Ports[i], number)}, version.ready || publishAll)
		}
	}
	return nil
}

func endpointPortOf(p *corev1.ServicePort, number int32) endpointPort {
	return endpointPort{p.Name, string(p.Protocol), stringOrEmpty(p.AppProtocol), number}
}

// ip returns the pod's address in the Service's first IP family, or "".
func (r *podNetwork) ip(s *service) string {
	ips := r.Status.PodIPs
	if len(ips) == 0 && r.Status.PodIP != "" {
		ips = []corev1.PodIP{{IP: r.Status.PodIP}}
	}
	for _, each := range ips {
		parsed, err := netip.ParseAddr(each.IP)
		switch {
		case err != nil:
		case len(s.spec.IPFamilies) == 0, (s.spec.IPFamilies[0] == corev1.IPv6Protocol) == parsed.Is6():
			return each.IP
		}
	}
	return ""
}

// port returns the number of a Service's port at the pod; 0 if the pod has no such port.
func (r *podNetwork) port(p *corev1.ServicePort) int32 {
	if p.TargetPort.Type == intstr.Int {
		if p.TargetPort.IntVal == 0 {
			return p.Port
		}
		return p.TargetPort.IntVal
	}
	containers := slices.Clone(r.Spec.Containers)
	for _, c := range r.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // a sidecar
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, each := range c.Ports {
			if each.Name == p.TargetPort.StrVal && each.Protocol == p.Protocol {
				return each.ContainerPort
			}
		}
	}
	return 0
}

// describeDifference describes how Endpoints differ from the expected addresses, "" if
// they do not. If more addresses are expected than fit, the controller may choose which
// to list.
func describeDifference(got, want addressSet) string {
	total, ready := want.size()
	fits := total <= addressesMax
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
	gotTotal, gotReadyTotal := got.size()
	if gotTotal != addressesMax || gotReadyTotal != min(ready, addressesMax) {
		return fmt.Sprintf("list %d addresses (%d ready), expected %d (%d ready) of %d", gotTotal, gotReadyTotal, addressesMax, min(ready, addressesMax), total)
	}
	return ""
}

// firstAndCount returns the first name and the number of the others.
func firstAndCount(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// size counts addresses as the limit of Endpoints does. Ports that are open at the same
// addresses share a subset; other ports have one each.
func (addresses addressSet) size() (total, ready int) {
	targets := map[endpointPort][]string{}
	readyAt := map[endpointPort]int{}
	for p, isReady := range addresses {
		targets[p.port] = append(targets[p.port], fmt.Sprintf("%s %s %t", p.ip, p.uid, isReady))
		if isReady {
			readyAt[p.port]++
		}
	}
	lists := map[string]endpointPort{}
	for p, at := range targets {
		slices.Sort(at)
		lists[strings.Join(at, "\n")] = p
	}
	for _, p := range lists {
		total += len(targets[p])
		ready += readyAt[p]
	}
	return total, ready
}

func stringOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// covers reports whether the set contains every pair of another one, with the same
// readiness.
func (addresses addressSet) covers(other addressSet) bool {
	for p, ready := range other {
		if found, ok := addresses[p]; !ok || found != ready {
			return false
		}
	}
	return true
}

// count returns the number of addresses, as the limit counts them.
func (addresses addressSet) count() int {
	total, _ := addresses.size()
	return total
}

// String returns the set as evidence describes it.
func (addresses addressSet) String() string {
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
