package apiserver

import (
	"github.com/emicklei/go-restful/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery"
)

// installDiscovery adds the discovery handlers that list the API groups and their versions. They
// serve the paths /api, /apis and /apis/GROUP. The method install adds the handlers that list
// resources.
func installDiscovery(container *restful.Container, groups []group) {
	addresses := discovery.DefaultAddresses{DefaultAddress: "apiserver"}
	container.Add(discovery.NewLegacyRootAPIHandler(addresses, codecs, "/api").WebService())
	named := discovery.NewRootAPIsHandler(addresses, codecs)
	for _, g := range groups {
		if g.version.Group == "" {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: g.version.String(), Version: g.version.Version}
		apiGroup := metav1.APIGroup{Name: g.version.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
		named.AddGroup(apiGroup)
		container.Add(discovery.NewAPIGroupHandler(codecs, apiGroup).WebService())
	}
	container.Add(named.WebService())
}
