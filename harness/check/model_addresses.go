package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file says what the Endpoints of a Service must list. It knows nothing of
// how a controller arranges that: both sides are taken apart into single pairs
// of an address and a port, and the pairs are compared.

// covers reports whether it says all that another one says.
func (l listing) covers(other listing) bool {
	for p, ready := range other {
		if said, ok := l[p]; !ok || said != ready {
			return false
		}
	}
	return true
}

// count is how many addresses there are, as the limit counts them.
func (l listing) count() int {
	total, _ := l.size()
	return total
}

// String is how evidence says what is listed.
func (l listing) String() string {
	if len(l) == 0 {
		return "nothing"
	}
	var all []string
	for p, ready := range l {
		all = append(all, fmt.Sprintf("%s %s", map[bool]string{true: "ready", false: "not ready"}[ready], p))
	}
	slices.Sort(all)
	return first(all)
}

// addressesMax is how many addresses Endpoints hold at the most.
const addressesMax = 1000

// address is how a pod can be reached, as the truth has it.
type address struct {
	body []byte
	read *reachable // nil until it is asked for
	err  error
}

type reachable struct {
	Spec   corev1.PodSpec
	Status corev1.PodStatus
}

func (a *address) reachable() (*reachable, error) {
	if a.read == nil && a.err == nil {
		a.read = &reachable{}
		a.err = unmarshalSome(a.body, a.read)
		a.body = nil
	}
	return a.read, a.err
}

// listing is what Endpoints list: whether each pair is ready.
type listing map[pair]bool

// pair is one port at one address.
type pair struct {
	target
	port port
}

// target is an address and the pod behind it.
type target struct {
	ip, node, hostname string
	pod                string
	uid                types.UID
}

// port is a port as Endpoints have it; its zero value stands for no port at
// all, which only a headless Service lists.
type port struct {
	name, protocol, application string
	number                      int32
}

func (p pair) String() string {
	where := p.ip
	if p.port != (port{}) {
		where = fmt.Sprintf("%s:%d", p.ip, p.port.number)
	}
	return fmt.Sprintf("%s (pod %s)", where, p.pod)
}

// add enters a pair. What is listed twice is ready only if it is so both times.
func (l listing) add(p pair, ready bool) {
	if known, ok := l[p]; ok {
		ready = ready && known
	}
	l[p] = ready
}

// listed takes apart what Endpoints say.
func (e *endpoints) listed() (listing, error) {
	var body struct {
		Subsets []struct {
			Addresses, NotReadyAddresses []corev1.EndpointAddress
			Ports                        []corev1.EndpointPort
		}
	}
	if err := unmarshalSome(e.body, &body); err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	all := listing{}
	for i := range body.Subsets {
		subset := &body.Subsets[i]
		ports := []port{{}}
		if len(subset.Ports) > 0 {
			ports = nil
		}
		for _, p := range subset.Ports {
			ports = append(ports, port{p.Name, string(p.Protocol), text(p.AppProtocol), p.Port})
		}
		for _, p := range ports {
			for _, a := range subset.Addresses {
				all.add(pair{targetOf(a), p}, true)
			}
			for _, a := range subset.NotReadyAddresses {
				all.add(pair{targetOf(a), p}, false)
			}
		}
	}
	return all, nil
}

func targetOf(a corev1.EndpointAddress) target {
	t := target{ip: a.IP, node: text(a.NodeName), hostname: a.Hostname}
	if a.TargetRef != nil {
		t.pod, t.uid = a.TargetRef.Kind+" "+a.TargetRef.Namespace+"/"+a.TargetRef.Name, a.TargetRef.UID
	}
	return t
}

// wanted is what the Endpoints of a Service must list. Pods that are taken to run do so,
// though they have ended.
func (w *world) wanted(s *service, running map[types.UID]time.Duration) (listing, error) {
	all := listing{}
	for uid, p := range w.pods {
		if _, taken := running[uid]; taken && p.ended {
			alive := *p
			alive.ended = false
			p = &alive
		}
		if a := w.addresses[uid]; a != nil {
			if err := s.list(all, face{p, a}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// list adds what the Endpoints of the Service must list of a pod.
func (s *service) list(all listing, f face) error {
	publishAll := s.spec.PublishNotReadyAddresses
	if f.ended || f.terminating && !publishAll || f.Namespace != s.Namespace || !s.selector.Matches(f.labels) {
		return nil
	}
	facts, err := f.reachable()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Ref, err)
	}
	t := target{ip: facts.ip(s), node: facts.Spec.NodeName, pod: "Pod " + f.Namespace + "/" + f.Name, uid: f.UID}
	if t.ip == "" {
		return nil
	}
	if facts.Spec.Subdomain == s.Name {
		t.hostname = facts.Spec.Hostname
	}
	if len(s.spec.Ports) == 0 && s.headless() {
		all.add(pair{target: t}, f.ready || publishAll)
	}
	for i := range s.spec.Ports {
		if number := facts.port(&s.spec.Ports[i]); number != 0 {
			all.add(pair{t, portOf(&s.spec.Ports[i], number)}, f.ready || publishAll)
		}
	}
	return nil
}

func portOf(p *corev1.ServicePort, number int32) port {
	return port{p.Name, string(p.Protocol), text(p.AppProtocol), number}
}

// ip is the pod's address in the Service's first IP family, "" if it has none.
func (r *reachable) ip(s *service) string {
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

// port is the number that a Service's port has at a pod; 0: the pod has no such
// port.
func (r *reachable) port(p *corev1.ServicePort) int32 {
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

// difference says how one listing differs from what is wanted; "" if it does
// not. Where there is more than fits, which addresses are left out is open.
func difference(got, want listing) string {
	total, ready := want.size()
	fits := total <= addressesMax
	var missing, misjudged, extra []string
	for p, isReady := range want {
		said, ok := got[p]
		switch {
		case ok && said != isReady:
			misjudged = append(misjudged, p.String())
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
		return "lack " + first(missing)
	case len(misjudged) > 0:
		return "have the wrong readiness for " + first(misjudged)
	case len(extra) > 0:
		return "should not list " + first(extra)
	case fits:
		return ""
	}
	gotTotal, gotReady := got.size()
	if gotTotal != addressesMax || gotReady != min(ready, addressesMax) {
		return fmt.Sprintf("list %d addresses, %d of them ready, of %d, %d ready", gotTotal, gotReady, total, ready)
	}
	return ""
}

// first names the first, in order, and how many there are.
func first(names []string) string {
	slices.Sort(names)
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// size counts addresses as the limit does: ports that are open at the same
// addresses share a list, others have one each.
func (l listing) size() (total, ready int) {
	targets := map[port][]string{}
	readyAt := map[port]int{}
	for p, isReady := range l {
		targets[p.port] = append(targets[p.port], fmt.Sprintf("%s %s %t", p.ip, p.uid, isReady))
		if isReady {
			readyAt[p.port]++
		}
	}
	lists := map[string]port{}
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

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
