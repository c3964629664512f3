package apiserver

import (
	"context"
	"fmt"
	"net"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	netutils "k8s.io/utils/net"
)

// serviceCIDRs are the ranges of the cluster IPs. The first range determines the default IP family
// of Services. The embedded control plane has the same ranges.
var serviceCIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112"}

// serviceRanges allocates the cluster IPs and the node ports of Services. It remembers them in
// memory, not in etcd.
type serviceRanges struct {
	defaultFamily core.IPFamily
	addresses     map[core.IPFamily]ipallocator.Interface
	ports         portallocator.Interface
}

func newServiceRanges() (*serviceRanges, error) {
	s := &serviceRanges{addresses: map[core.IPFamily]ipallocator.Interface{}}
	for i, cidr := range serviceCIDRs {
		_, network, err := net.ParseCIDR(cidr)
		if err != nil {
			return nil, err
		}
		addresses, err := ipallocator.NewInMemory(network)
		if err != nil {
			return nil, err
		}
		s.addresses[addresses.IPFamily()] = addresses
		if i == 0 {
			s.defaultFamily = addresses.IPFamily()
		}
	}
	var err error
	s.ports, err = portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	return s, err
}

// newStores creates the registries of Services and of their status.
func (s *serviceRanges) newStores(options *storageOptions, endpoints servicestore.EndpointsStorage, pods servicestore.PodStorage) (*servicestore.REST, *servicestore.StatusREST, error) {
	services, status, _, err := servicestore.NewREST(options, s.defaultFamily, s.addresses, s.ports, endpoints, pods, nil)
	return services, status, err
}

// restore allocates the addresses and ports that the existing Services use. Otherwise, an API server
// that starts on the etcd of an earlier one could allocate them twice.
func (s *serviceRanges) restore(ctx context.Context, api clientset.Interface) error {
	services, err := api.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Services: %w", err)
	}
	for _, service := range services.Items {
		for _, address := range service.Spec.ClusterIPs {
			if address == core.ClusterIPNone {
				continue
			}
			ip, family := netutils.ParseIPSloppy(address), core.IPv4Protocol
			if netutils.IsIPv6(ip) {
				family = core.IPv6Protocol
			}
			if err := s.addresses[family].Allocate(ip); err != nil {
				return fmt.Errorf("cluster IP %s of Service %s/%s: %w", address, service.Namespace, service.Name, err)
			}
		}
		for _, port := range service.Spec.Ports {
			if port.NodePort == 0 || s.ports.Has(int(port.NodePort)) { // two protocols may share a node port
				continue
			}
			if err := s.ports.Allocate(int(port.NodePort)); err != nil {
				return fmt.Errorf("node port %d of Service %s/%s: %w", port.NodePort, service.Namespace, service.Name, err)
			}
		}
	}
	return nil
}
