//go:build tools

package nodeimage

// These imports keep the containerd programs of a node and their dependencies in
// go.mod and go.sum.
import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
