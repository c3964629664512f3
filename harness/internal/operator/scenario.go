package operator

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// fieldPattern matches the path of a field at the beginning of an error about an object, such as "spec.ports[0].port: ".
var fieldPattern = regexp.MustCompile(`^([a-zA-Z][\w.\[\]-]*): (.*)$`)

// CheckScenario returns an error with each manifest in the workload that the API server would refuse. It knows the
// kinds of Kubernetes.
func CheckScenario(s *scenario.Scenario) error {
	var errs []error
	for i, step := range s.Workload {
		create, ok := step.Operation.(*scenario.Create)
		if !ok || create.Manifest == nil || s.Invalid(fmt.Sprintf("workload[%d].create", i)) {
			continue
		}
		object, err := workload.Manifest(create)
		if err == nil {
			err = refused(object)
		}
		if err == nil {
			continue
		}
		path := fmt.Sprintf("workload[%d].create.manifest", i)
		if match := fieldPattern.FindStringSubmatch(err.Error()); match != nil {
			path, err = path+"."+match[1], errors.New(match[2])
		}
		errs = append(errs, s.Errorf(path, "%w", err))
	}
	return scenario.JoinErrors(errs...)
}
