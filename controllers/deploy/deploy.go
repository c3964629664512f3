// Package deploy embeds the manifest of the DaemonSet that runs workload-controller-manager.
// The RBAC objects of the DaemonSet are in package rbac.
package deploy

import _ "embed"

// Manifest is the content of daemonset.yaml.
//
//go:embed daemonset.yaml
var Manifest []byte
