package operator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones are known on machines without their files, as in API servers

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// checkPodsOf returns an error if the pods of a workload would not match its selector. It also returns an error
// if they would not restart their containers.
func checkPodsOf(at string, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) error {
	if selector == nil {
		return checkRestart(at+".template.spec", template.Spec.RestartPolicy, "", corev1.RestartPolicyAlways)
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return fmt.Errorf("%s.selector: found an empty selector; expected labels of the template, such as {matchLabels: {app: web}}", at)
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return checkSelector(at+".selector", selector)
	}
	if !compiled.Matches(labels.Set(template.Labels)) {
		return wrong(at+".template.metadata.labels", labels.Set(template.Labels).String(), "labels that "+at+".selector matches: "+compiled.String())
	}
	return checkRestart(at+".template.spec", template.Spec.RestartPolicy, "", corev1.RestartPolicyAlways)
}

// checkRestart returns an error if a pod has another restart policy than the accepted ones.
func checkRestart(at string, policy corev1.RestartPolicy, accepted ...corev1.RestartPolicy) error {
	if slices.Contains(accepted, policy) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(accepted), func(p corev1.RestartPolicy) bool { return p == "" })
	return wrong(at+".restartPolicy", policy, nearest.List(named, "or"))
}

func checkDeployment(at string, d *appsv1.DeploymentSpec) error {
	rolling := d.Strategy.RollingUpdate
	switch {
	case d.Strategy.Type == appsv1.RecreateDeploymentStrategyType && rolling != nil:
		return fmt.Errorf("%s.strategy.rollingUpdate: found the field with the type Recreate; expected the type RollingUpdate, or no such field", at)
	case rolling != nil && isZero(rolling.MaxSurge) && isZero(rolling.MaxUnavailable):
		return fmt.Errorf("%s.strategy.rollingUpdate: found 0 for maxSurge and maxUnavailable; expected at most one of them to be 0", at)
	}
	if deadline := d.ProgressDeadlineSeconds; deadline != nil && *deadline <= d.MinReadySeconds {
		return wrong(at+".progressDeadlineSeconds", *deadline, fmt.Sprintf("more than minReadySeconds, which is %d", d.MinReadySeconds))
	}
	if rolling != nil {
		at := at + ".strategy.rollingUpdate"
		if err := checkShare(at+".maxUnavailable", rolling.MaxUnavailable, 100); err != nil {
			return err
		}
		if err := checkShare(at+".maxSurge", rolling.MaxSurge, math.MaxInt32); err != nil {
			return err
		}
	}
	return checkPodsOf(at, d.Selector, &d.Template)
}

// isZero reports whether a number or percentage is set to 0.
func isZero(n *intstr.IntOrString) bool { return n != nil && (n.String() == "0" || n.String() == "0%") }

func checkReplicaSet(at string, s *appsv1.ReplicaSetSpec) error {
	return checkPodsOf(at, s.Selector, &s.Template)
}

func checkDaemonSet(at string, s *appsv1.DaemonSetSpec) error {
	return checkPodsOf(at, s.Selector, &s.Template)
}

// checkStatefulSet adds the claims to the volumes of the template, because containers may mount both.
func checkStatefulSet(at string, s *appsv1.StatefulSetSpec) error {
	for _, claim := range s.VolumeClaimTemplates {
		if !slices.ContainsFunc(s.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name }) {
			s.Template.Spec.Volumes = append(s.Template.Spec.Volumes, corev1.Volume{Name: claim.Name})
		}
	}
	return checkPodsOf(at, s.Selector, &s.Template)
}

func checkReplicationController(at string, s *corev1.ReplicationControllerSpec) error {
	if s.Template == nil {
		return wrong(at+".template", nil, "a template for pods")
	}
	selector := s.Selector
	if len(selector) == 0 {
		selector = s.Template.Labels // the default
	}
	return checkPodsOf(at, &metav1.LabelSelector{MatchLabels: selector}, s.Template)
}

func checkJob(at string, s *batchv1.JobSpec) error {
	if s.Selector != nil && (s.ManualSelector == nil || !*s.ManualSelector) {
		return fmt.Errorf("%s.selector: found a selector; expected none, because the API server generates it (or manualSelector: true)", at)
	}
	return checkRestart(at+".template.spec", s.Template.Spec.RestartPolicy, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
}

func checkCronJob(at string, s *batchv1.CronJobSpec) error {
	if err := checkSchedule(s.Schedule); err != nil {
		return fmt.Errorf("%s.schedule: found %.80q; expected %w", at, s.Schedule, err)
	}
	if s.TimeZone != nil {
		if _, err := time.LoadLocation(*s.TimeZone); err != nil || *s.TimeZone == "" || strings.EqualFold(*s.TimeZone, "Local") {
			return wrong(at+".timeZone", *s.TimeZone, "the name of a time zone such as Europe/Berlin or Etc/UTC")
		}
	}
	return nil
}

// cronFields are the fields of a schedule, with their lowest and highest numbers and the names of numbers.
var cronFields = []struct {
	name      string
	low, high int
	names     []string // of the numbers from low on
}{
	{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// cronMacros are the schedules that are one word. The macro @every has a duration, too.
var cronMacros = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// checkSchedule returns what was expected in place of the schedule of a CronJob. The result is nil for a valid one.
func checkSchedule(schedule string) error {
	if interval, ok := strings.CutPrefix(schedule, "@every "); ok {
		if _, err := time.ParseDuration(interval); err == nil {
			return nil
		}
		return fmt.Errorf("a duration after @every, such as @every 1h30m")
	}
	if slices.Contains(cronMacros, schedule) {
		return nil
	}
	if strings.HasPrefix(schedule, "@") {
		return fmt.Errorf("%s, or five fields%s", nearest.List(cronMacros, "or"), nearest.Suggestion(schedule, cronMacros))
	}
	if strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=") {
		return fmt.Errorf("five fields, and the time zone in the field timeZone")
	}
	fields := strings.Fields(schedule)
	if len(fields) != len(cronFields) {
		return fmt.Errorf("five fields for minute, hour, day of the month, month and day of the week, such as %q", "*/5 * * * *")
	}
	for i, field := range cronFields {
		for item := range strings.SplitSeq(fields[i], ",") {
			if !validCron(item, field.low, field.high, field.names) {
				return fmt.Errorf("numbers from %d to %d, or *, as the %s", field.low, field.high, field.name)
			}
		}
	}
	return nil
}

// validCron reports whether an item of a field such as 5, 1-5, */2 or mon-fri is valid.
func validCron(item string, low, high int, names []string) bool {
	interval, step, stepped := strings.Cut(item, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if interval == "*" || interval == "?" {
		return true
	}
	number := func(text string) int {
		if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
			return low + i
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high || text[0] == '+' {
			return -1
		}
		return n
	}
	first, last, ranged := strings.Cut(interval, "-")
	if !ranged {
		return number(first) >= 0
	}
	return number(first) >= 0 && number(last) >= number(first)
}

func checkBudget(at string, s *policyv1.PodDisruptionBudgetSpec) error {
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		return fmt.Errorf("%s: found minAvailable and maxUnavailable; expected one of them", at)
	}
	return firstError(
		func() error { return checkShare(at+".minAvailable", s.MinAvailable, 100) },
		func() error { return checkShare(at+".maxUnavailable", s.MaxUnavailable, 100) },
	)
}

// checkShare returns an error about a number of pods that is neither a whole number nor a percentage. The argument
// most is the largest percentage.
func checkShare(at string, share *intstr.IntOrString, most int) error {
	if share == nil || share.Type == intstr.Int {
		return nil
	}
	percent, isPercentage := strings.CutSuffix(share.StrVal, "%")
	n, err := strconv.Atoi(percent)
	switch {
	case err != nil || n < 0 || percent[0] == '+':
		return wrong(at, share.StrVal, "a whole number such as 1, or a percentage such as 25%")
	case !isPercentage:
		return wrong(at, share.StrVal, "a number without quotes, or a percentage such as 25%")
	case n > most:
		return wrong(at, share.StrVal, fmt.Sprintf("at most %d%%", most))
	}
	return nil
}

// checkQuota returns an error about a limit of a ResourceQuota.
func checkQuota(at string, s *corev1.ResourceQuotaSpec) error {
	for _, name := range slices.Sorted(maps.Keys(s.Hard)) {
		if quantity := s.Hard[name]; quantity.Sign() < 0 {
			return wrong(fmt.Sprintf("%s.hard.%s", at, name), quantity.String(), "a quantity of at least 0")
		}
	}
	return nil
}

func checkAutoscaler(at string, s *autoscalingv2.HorizontalPodAutoscalerSpec) error {
	switch {
	case s.MaxReplicas < 1:
		return wrong(at+".maxReplicas", s.MaxReplicas, "a number of at least 1")
	case s.MinReplicas != nil && *s.MinReplicas > s.MaxReplicas:
		return wrong(at+".minReplicas", *s.MinReplicas, fmt.Sprintf("at most maxReplicas, which is %d", s.MaxReplicas))
	case s.ScaleTargetRef.Kind == "" || s.ScaleTargetRef.Name == "":
		return fmt.Errorf("%s.scaleTargetRef: found the kind %q and the name %q; expected both", at, s.ScaleTargetRef.Kind, s.ScaleTargetRef.Name)
	}
	return nil
}

// checkPriorityClass returns an error about a value that only classes of Kubernetes may have.
func checkPriorityClass(_ string, c *schedulingv1.PriorityClass) error {
	const valueMax = 1_000_000_000
	if c.Value > valueMax && !strings.HasPrefix(c.Name, "system-") {
		return wrong("value", c.Value, fmt.Sprintf("at most %d", valueMax))
	}
	return nil
}

// checkClaim returns an error about a PersistentVolumeClaim, or about a template for such claims.
func checkClaim(at string, s *corev1.PersistentVolumeClaimSpec) error {
	storage, ok := s.Resources.Requests[corev1.ResourceStorage]
	switch {
	case len(s.AccessModes) == 0:
		return wrong(at+".accessModes", nil, "at least one of "+nearest.List(knownAccessModes, "and"))
	case !ok:
		for _, name := range slices.Sorted(maps.Keys(s.Resources.Requests)) {
			return wrong(at+".resources.requests", string(name), "storage")
		}
		return wrong(at+".resources.requests.storage", nil, "a quantity such as 1Gi")
	case storage.Sign() <= 0:
		return wrong(at+".resources.requests.storage", storage.String(), "a quantity greater than 0")
	}
	return nil
}
