// Package deploy holds the manifest that runs workload-controller-manager on a
// cluster. The rights that it needs there are in package rbac.
package deploy

import _ "embed"

// Manifest is daemonset.yaml.
//
//go:embed daemonset.yaml
var Manifest []byte
