//go:build tools

package nodeimage

// These imports make `go mod tidy` keep containerd, which runs the containers of a node, in go.mod.
import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
