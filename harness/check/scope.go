package check

import (
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// Scope says to which controllers a check applies. The zero value is the scope of a general
// check, which applies to every controller.
type Scope struct {
	// Traits lists traits of controllers, such as slow-start. The check applies to each controller
	// that has at least one of these traits. A general check has no traits.
	Traits []kube.Trait
}

// general is the scope of a check that applies to every controller.
var general = Scope{}

// contractOf returns the scope of a check that applies to every controller with at least one of
// the given traits.
func contractOf(traits ...kube.Trait) Scope { return Scope{Traits: traits} }

// General reports whether the check applies to every controller.
func (s Scope) General() bool { return len(s.Traits) == 0 }

// AppliesTo reports whether the check applies to at least one of the given controllers.
func (s Scope) AppliesTo(controllers []kube.Controller) bool {
	return s.General() || slices.ContainsFunc(controllers, func(c kube.Controller) bool {
		return slices.ContainsFunc(s.Traits, c.Has)
	})
}

// String formats the scope for lists of checks. The result is "General" or, for example,
// "Contract (trait slow-start)".
func (s Scope) String() string {
	if s.General() {
		return "General"
	}
	return "Contract (trait " + s.traits() + ")"
}

// traits returns the names of the traits as text, such as "owns-pods or rolls-out".
func (s Scope) traits() string {
	return nearest.List(s.Traits, "or")
}
