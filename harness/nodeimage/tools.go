//go:build tools

package nodeimage

// The commands of containerd that a node runs, imported so that go.mod pins them
// and go.sum covers everything they need.
import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
)
