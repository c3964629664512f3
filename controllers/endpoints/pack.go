package endpoints

import (
	"cmp"
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// addressEntry is the Endpoints address of one pod, with the ports that the pod serves. The list
// of ports is empty only for a headless Service without ports.
type addressEntry struct {
	address address
	ready   bool
	ports   []portID
}

// portID is an Endpoints port in a form that can be a map key. The zero value is the key for
// addresses without ports.
type portID struct {
	name           string
	number         int32
	protocol       corev1.Protocol
	appProtocol    string
	hasAppProtocol bool
}

// portIDOf converts an Endpoints port to a portID, so that ports can be compared and can be map
// keys.
func portIDOf(p port) portID {
	return portID{p.Name, p.Port, p.Protocol, ptr.Deref(p.AppProtocol, ""), p.AppProtocol != nil}
}

// port converts a portID back to an Endpoints port, for the Endpoints object to write.
func (id portID) port() port {
	p := port{Name: id.name, Port: id.number, Protocol: id.protocol}
	if id.hasAppProtocol {
		p.AppProtocol = &id.appProtocol
	}
	return p
}

// compare orders ports by name, then by number, then by the other fields.
func (id portID) compare(other portID) int {
	return cmp.Or(
		cmp.Compare(id.name, other.name),
		cmp.Compare(id.number, other.number),
		cmp.Compare(id.protocol, other.protocol),
		cmp.Compare(id.appProtocol, other.appProtocol),
		compareBool(id.hasAppProtocol, other.hasAppProtocol),
	)
}

// compareBool orders false before true: it returns -1 if only b is true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// portHost is a host that serves a certain port, and says whether the host is ready. A host is an
// IP and a pod UID.
type portHost struct {
	host  int // index of the host in the list of all hosts; see the variable hosts in pack
	ready bool
}

// pack returns the entries as sorted subsets. The order of the entries does not affect the result.
//
// Ports with the same ready and not-ready addresses share a subset. A host is an IP and a pod UID.
// Each host appears once per port. A host is not ready if at least one of its entries is not
// ready.
func pack(entries []addressEntry) []subset {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b addressEntry) int { return compareAddresses(a.address, b.address) })
	var hosts []address
	hostsByPort := map[portID][]portHost{}
	for _, e := range entries {
		if len(hosts) == 0 || hostKeyOf(hosts[len(hosts)-1]) != hostKeyOf(e.address) {
			hosts = append(hosts, e.address)
		}
		host := len(hosts) - 1
		if len(e.ports) == 0 {
			hostsByPort[portID{}] = addHost(hostsByPort[portID{}], portHost{host, e.ready})
		}
		for _, id := range e.ports {
			hostsByPort[id] = addHost(hostsByPort[id], portHost{host, e.ready})
		}
	}
	return groupByHosts(hosts, hostsByPort)
}

// addHost returns the sorted list of the hosts of one port, extended by the host h. If the last
// element of the list is the same host, addHost merges the two. The merged host is ready if both
// are ready.
func addHost(hosts []portHost, h portHost) []portHost {
	if last := len(hosts) - 1; last >= 0 && hosts[last].host == h.host {
		hosts[last].ready = hosts[last].ready && h.ready
		return hosts
	}
	return append(hosts, h)
}

// groupByHosts returns one subset for each group of ports that have the same hosts. The map
// hostsByPort says which hosts serve each port. It contains indexes in the argument hosts, which
// lists the addresses of all hosts.
func groupByHosts(hosts []address, hostsByPort map[portID][]portHost) []subset {
	groups := map[string][]portID{}
	for id, portHosts := range hostsByPort {
		key := groupKey(portHosts)
		groups[key] = append(groups[key], id)
	}
	subsets := make([]subset, 0, len(groups))
	for _, ids := range groups {
		var s subset
		for _, h := range hostsByPort[ids[0]] {
			if h.ready {
				s.Addresses = append(s.Addresses, hosts[h.host])
			} else {
				s.NotReadyAddresses = append(s.NotReadyAddresses, hosts[h.host])
			}
		}
		slices.SortFunc(ids, portID.compare)
		for _, id := range ids {
			if id != (portID{}) {
				s.Ports = append(s.Ports, id.port())
			}
		}
		subsets = append(subsets, s)
	}
	// No two subsets have a port in common, so this order is unambiguous.
	slices.SortFunc(subsets, func(a, b subset) int {
		return slices.CompareFunc(a.Ports, b.Ports, func(a, b port) int { return portIDOf(a).compare(portIDOf(b)) })
	})
	return subsets
}

// groupKey returns a map key for a list of hosts. Two lists have the same key only if they are
// equal. With this key, groupByHosts finds the ports with equal lists, which share a subset.
func groupKey(hosts []portHost) string {
	key := make([]byte, 0, 2*len(hosts))
	for _, s := range hosts {
		code := uint64(s.host) << 1
		if s.ready {
			code |= 1
		}
		key = binary.AppendUvarint(key, code)
	}
	return string(key)
}

// unpack converts the subsets of an Endpoints object back to one entry for each address. Any client
// may have written the subsets. To normalize Endpoints before a comparison, pass the result to the
// function pack.
func unpack(subsets []subset) []addressEntry {
	var entries []addressEntry
	for i := range subsets {
		ports := make([]portID, len(subsets[i].Ports))
		for j, p := range subsets[i].Ports {
			ports[j] = portIDOf(p)
		}
		for _, a := range subsets[i].Addresses {
			entries = append(entries, addressEntry{a, true, ports})
		}
		for _, a := range subsets[i].NotReadyAddresses {
			entries = append(entries, addressEntry{a, false, ports})
		}
	}
	return entries
}

// hostKey identifies the host of an address: the IP and the UID of the pod. The IP alone is not
// enough, because pods with hostNetwork have the IP of their node.
type hostKey struct {
	ip  string
	pod types.UID
}

// hostKeyOf returns the IP and the pod UID of an address. With this key, the function pack finds
// the entries of one host.
func hostKeyOf(a address) hostKey {
	return hostKey{a.IP, targetRefOf(a).UID}
}

// targetRefOf returns the targetRef of an address without the resourceVersion. Addresses of
// different versions of one pod are therefore equal.
func targetRefOf(a address) corev1.ObjectReference {
	ref := ptr.Deref(a.TargetRef, corev1.ObjectReference{})
	ref.ResourceVersion = ""
	return ref
}

// compareAddresses orders addresses by IP, then by pod UID, and then by all other fields. If a host
// has several entries, the function pack therefore always keeps the same entry.
func compareAddresses(a, b address) int {
	x, y := targetRefOf(a), targetRefOf(b)
	return cmp.Or(
		cmp.Compare(a.IP, b.IP),
		cmp.Compare(x.UID, y.UID),
		cmp.Compare(a.Hostname, b.Hostname),
		cmp.Compare(ptr.Deref(a.NodeName, ""), ptr.Deref(b.NodeName, "")),
		cmp.Compare(x.Kind, y.Kind),
		cmp.Compare(x.Namespace, y.Namespace),
		cmp.Compare(x.Name, y.Name),
		cmp.Compare(x.APIVersion, y.APIVersion),
		cmp.Compare(x.FieldPath, y.FieldPath),
	)
}

// equalSubsets reports whether two lists of subsets are equal, so that no write is necessary. Both
// arguments must be results of the function pack.
func equalSubsets(a, b []subset) bool {
	equalAddresses := func(a, b address) bool { return compareAddresses(a, b) == 0 }
	return slices.EqualFunc(a, b, func(a, b subset) bool {
		return slices.EqualFunc(a.Addresses, b.Addresses, equalAddresses) &&
			slices.EqualFunc(a.NotReadyAddresses, b.NotReadyAddresses, equalAddresses) &&
			slices.EqualFunc(a.Ports, b.Ports, func(a, b port) bool { return portIDOf(a) == portIDOf(b) })
	})
}
