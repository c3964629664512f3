package operator

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkToleration returns an error about a toleration whose fields contradict each other.
func checkToleration(at string, t *corev1.Toleration) error {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case exists && t.Value != "":
		return wrong(at+".value", t.Value, "no value for the operator Exists")
	case t.Key == "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual):
		return wrong(at+".key", nil, "the key of a taint, or the operator Exists")
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return wrong(at+".effect", t.Effect, "NoExecute, because only this effect has tolerationSeconds")
	}
	return nil
}

// checkNodeRequirement returns an error about a requirement for nodes.
func checkNodeRequirement(at string, r *corev1.NodeSelectorRequirement) error {
	none := r.Operator == corev1.NodeSelectorOpExists || r.Operator == corev1.NodeSelectorOpDoesNotExist
	one := r.Operator == corev1.NodeSelectorOpGt || r.Operator == corev1.NodeSelectorOpLt
	switch {
	case r.Key == "":
		return wrong(at+".key", nil, "the key of a label of nodes")
	case r.Operator == "":
		return wrong(at+".operator", nil, nearest.List(knownOperators, "or"))
	case !slices.Contains(knownOperators, string(r.Operator)):
		return wrong(at+".operator", r.Operator, oneOf(knownOperators, string(r.Operator)))
	case none && len(r.Values) > 0:
		return wrong(at+".values", r.Values, "no values for the operator "+string(r.Operator))
	case one && len(r.Values) != 1:
		return wrong(at+".values", r.Values, "one value for the operator "+string(r.Operator))
	case !none && len(r.Values) == 0:
		return wrong(at+".values", nil, "at least one value for the operator "+string(r.Operator))
	}
	return nil
}

// checkNodeSelector returns an error if a selector of nodes has no terms.
func checkNodeSelector(at string, s *corev1.NodeSelector) error {
	return missing(len(s.NodeSelectorTerms) == 0, at+".nodeSelectorTerms", "at least one term")
}

func checkPodTerm(at string, t *corev1.PodAffinityTerm) error {
	return missing(t.TopologyKey == "", at+".topologyKey", "the label of nodes, such as kubernetes.io/hostname")
}

func checkWeightedTerm(at string, t *corev1.WeightedPodAffinityTerm) error {
	return checkWeight(at, t.Weight)
}

func checkPreferredTerm(at string, t *corev1.PreferredSchedulingTerm) error {
	return checkWeight(at, t.Weight)
}

// checkWeight returns an error about the weight of a preference of the scheduler.
func checkWeight(at string, weight int32) error {
	if weight < 1 || weight > 100 {
		return wrong(at+".weight", weight, "1 to 100")
	}
	return nil
}

// checkHandler returns an error about the hook of a container before its end or after its start.
func checkHandler(at string, h *corev1.LifecycleHandler) error {
	if handlers := sourcesOf(*h); len(handlers) != 1 {
		return fmt.Errorf("%s: found %s; expected one of exec, httpGet, sleep and tcpSocket", at, cmp.Or(nearest.List(handlers, "and"), "no handler"))
	}
	return nil
}

// checkSecurityContext returns an error about privileges of a container that contradict each other.
func checkSecurityContext(at string, c *corev1.SecurityContext) error {
	if c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
		return nil
	}
	if isTrue(c.Privileged) {
		return wrong(at+".allowPrivilegeEscalation", false, "true or no such field, because privileged is true")
	}
	if c.Capabilities != nil && slices.Contains(c.Capabilities.Add, "CAP_SYS_ADMIN") {
		return wrong(at+".allowPrivilegeEscalation", false, "true or no such field, because capabilities.add has CAP_SYS_ADMIN")
	}
	return nil
}

// checkMode returns an error about the mode of the files of a volume. The mode may be missing.
func checkMode(at string, mode *int32) error {
	const most = 0o777
	if mode == nil || *mode >= 0 && *mode <= most {
		return nil
	}
	return wrong(at, *mode, fmt.Sprintf("an octal number with a leading 0, such as 0644, or at most %d, which is 0777", most))
}
