// Package deploy embeds the manifest that runs workload-controller-manager as a
// DaemonSet. Package rbac has the RBAC objects.
package deploy

import _ "embed"

// Manifest is daemonset.yaml.
//
//go:embed daemonset.yaml
var Manifest []byte
