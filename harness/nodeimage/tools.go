//go:build tools

package nodeimage

// Because of these imports, `go mod tidy` keeps the containerd programs of a node and their
// dependencies in go.mod.
import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
