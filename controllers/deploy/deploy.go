// Package deploy embeds the manifest of the DaemonSet that runs workload-controller-manager.
// Package rbac embeds the RBAC objects that the DaemonSet needs.
package deploy

import _ "embed"

// Manifest is the content of daemonset.yaml, the DaemonSet that runs workload-controller-manager.
//
//go:embed daemonset.yaml
var Manifest []byte
