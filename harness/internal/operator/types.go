package operator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typeChecks has checks by the Go type of values. They find only values that the API server refuses, but not all of
// them.
var typeChecks = map[reflect.Type]typeCheck{
	reflect.TypeFor[metav1.ObjectMeta]():                                checkOf(checkMetadata),
	reflect.TypeFor[metav1.LabelSelector]():                             checkOf(checkSelector),
	reflect.TypeFor[corev1.PodSpec]():                                   checkOf(checkPodSpec),
	reflect.TypeFor[corev1.Container]():                                 checkOf(checkContainer),
	reflect.TypeFor[corev1.ResourceRequirements]():                      checkOf(checkResources),
	reflect.TypeFor[corev1.Probe]():                                     checkOf(checkProbe),
	reflect.TypeFor[appsv1.DeploymentSpec]():                            checkOf(checkDeployment),
	reflect.TypeFor[appsv1.ReplicaSetSpec]():                            checkOf(checkReplicaSet),
	reflect.TypeFor[appsv1.StatefulSetSpec]():                           checkOf(checkStatefulSet),
	reflect.TypeFor[appsv1.DaemonSetSpec]():                             checkOf(checkDaemonSet),
	reflect.TypeFor[corev1.ReplicationControllerSpec]():                 checkOf(checkReplicationController),
	reflect.TypeFor[batchv1.JobSpec]():                                  checkOf(checkJob),
	reflect.TypeFor[batchv1.CronJobSpec]():                              checkOf(checkCronJob),
	reflect.TypeFor[corev1.PersistentVolumeClaimSpec]():                 checkOf(checkClaim),
	reflect.TypeFor[corev1.ServiceSpec]():                               checkOf(checkService),
	reflect.TypeFor[networkingv1.IngressSpec]():                         checkOf(checkIngress),
	reflect.TypeFor[networkingv1.HTTPIngressPath]():                     checkOf(checkIngressPath),
	reflect.TypeFor[networkingv1.IngressBackend]():                      checkOf(checkIngressBackend),
	reflect.TypeFor[networkingv1.NetworkPolicyPeer]():                   checkOf(checkNetworkPeer),
	reflect.TypeFor[networkingv1.NetworkPolicyPort]():                   checkOf(checkNetworkPort),
	reflect.TypeFor[networkingv1.IPBlock]():                             checkOf(checkIPBlock),
	reflect.TypeFor[rbacv1.PolicyRule]():                                checkOf(checkRule),
	reflect.TypeFor[rbacv1.Role]():                                      checkOf(checkRole),
	reflect.TypeFor[rbacv1.RoleBinding]():                               checkOf(checkRoleBinding),
	reflect.TypeFor[rbacv1.ClusterRoleBinding]():                        checkOf(checkClusterRoleBinding),
	reflect.TypeFor[rbacv1.Subject]():                                   checkOf(checkSubject),
	reflect.TypeFor[policyv1.PodDisruptionBudgetSpec]():                 checkOf(checkBudget),
	reflect.TypeFor[autoscalingv2.HorizontalPodAutoscalerSpec]():        checkOf(checkAutoscaler),
	reflect.TypeFor[schedulingv1.PriorityClass]():                       checkOf(checkPriorityClass),
	reflect.TypeFor[admissionv1.RuleWithOperations]():                   checkOf(checkWebhookRule),
	reflect.TypeFor[admissionv1.ValidatingAdmissionPolicySpec]():        checkOf(checkPolicy),
	reflect.TypeFor[corev1.Toleration]():                                checkOf(checkToleration),
	reflect.TypeFor[corev1.NodeSelectorRequirement]():                   checkOf(checkNodeRequirement),
	reflect.TypeFor[corev1.NodeSelector]():                              checkOf(checkNodeSelector),
	reflect.TypeFor[corev1.PodAffinityTerm]():                           checkOf(checkPodTerm),
	reflect.TypeFor[corev1.WeightedPodAffinityTerm]():                   checkOf(checkWeightedTerm),
	reflect.TypeFor[corev1.PreferredSchedulingTerm]():                   checkOf(checkPreferredTerm),
	reflect.TypeFor[corev1.LifecycleHandler]():                          checkOf(checkHandler),
	reflect.TypeFor[corev1.SecurityContext]():                           checkOf(checkSecurityContext),
	reflect.TypeFor[admissionv1.ValidatingAdmissionPolicyBindingSpec](): checkOf(checkPolicyBinding),
	reflect.TypeFor[metav1.OwnerReference]():                            checkOf(checkOwner),
	reflect.TypeFor[corev1.KeyToPath]():                                 checkOf(checkKeyToPath),
	reflect.TypeFor[corev1.HostPathVolumeSource]():                      checkOf(checkHostPath),
	reflect.TypeFor[corev1.SeccompProfile]():                            checkOf(checkSeccomp),
	reflect.TypeFor[corev1.TopologySpreadConstraint]():                  checkOf(checkSpread),
	reflect.TypeFor[corev1.ResourceQuotaSpec]():                         checkOf(checkQuota),
	reflect.TypeFor[corev1.ConfigMap]():                                 checkOf(checkConfigMap),
	reflect.TypeFor[corev1.Secret]():                                    checkOf(checkSecret),
}

// incompleteChecks has the checks for missing values that a run does not need. The API server refuses such an object,
// but an overlay of kustomize may add the value.
var incompleteChecks = map[reflect.Type]typeCheck{
	reflect.TypeFor[corev1.Container](): checkOf(func(at string, c *corev1.Container) error {
		return missing(c.Image == "", at+".image", "the image of the container")
	}),
	reflect.TypeFor[appsv1.DeploymentSpec]():     checkOf(func(at string, s *appsv1.DeploymentSpec) error { return missingSelector(at, s.Selector, s.Template) }),
	reflect.TypeFor[appsv1.ReplicaSetSpec]():     checkOf(func(at string, s *appsv1.ReplicaSetSpec) error { return missingSelector(at, s.Selector, s.Template) }),
	reflect.TypeFor[appsv1.StatefulSetSpec]():    checkOf(func(at string, s *appsv1.StatefulSetSpec) error { return missingSelector(at, s.Selector, s.Template) }),
	reflect.TypeFor[appsv1.DaemonSetSpec]():      checkOf(func(at string, s *appsv1.DaemonSetSpec) error { return missingSelector(at, s.Selector, s.Template) }),
	reflect.TypeFor[rbacv1.ClusterRoleBinding](): checkOf(missingNamespace),
}

// permissionChecks has the checks for names in roles that the API server accepts, but that permit nothing.
var permissionChecks = map[reflect.Type]typeCheck{
	reflect.TypeFor[rbacv1.PolicyRule](): checkOf(checkRuleNames),
}

// missing returns an error about a missing value at a path.
func missing(isMissing bool, at, expected string) error {
	if !isMissing {
		return nil
	}
	return wrong(at, nil, expected)
}

// missingSelector returns an error if a workload has no selector.
func missingSelector(at string, selector *metav1.LabelSelector, template corev1.PodTemplateSpec) error {
	example := "{matchLabels: {app: web}}"
	for _, key := range slices.Sorted(maps.Keys(template.Labels)) {
		example = fmt.Sprintf("{matchLabels: {%s: %s}}", key, template.Labels[key])
	}
	return missing(selector == nil, at+".selector", "labels of the template such as "+example)
}

// missingNamespace returns an error about a subject of a ClusterRoleBinding that lacks its namespace.
func missingNamespace(_ string, b *rbacv1.ClusterRoleBinding) error {
	for i, s := range b.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
			return wrong(fmt.Sprintf("subjects[%d].namespace", i), nil, "the namespace of the ServiceAccount "+s.Name)
		}
	}
	return nil
}

var knownOperators = texts(corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)

var knownAccessModes = texts(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)

// knownValues has the values that the API server accepts for types of texts.
var knownValues = map[reflect.Type][]string{
	reflect.TypeFor[corev1.PullPolicy]():                       texts(corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent),
	reflect.TypeFor[corev1.RestartPolicy]():                    texts(corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever),
	reflect.TypeFor[corev1.DNSPolicy]():                        texts(corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone),
	reflect.TypeFor[corev1.Protocol]():                         texts(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
	reflect.TypeFor[corev1.URIScheme]():                        texts(corev1.URISchemeHTTP, corev1.URISchemeHTTPS),
	reflect.TypeFor[corev1.NodeSelectorOperator]():             knownOperators,
	reflect.TypeFor[corev1.TolerationOperator]():               {"Exists", "Equal", "Lt", "Gt"},
	reflect.TypeFor[corev1.TaintEffect]():                      texts(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
	reflect.TypeFor[corev1.PersistentVolumeAccessMode]():       knownAccessModes,
	reflect.TypeFor[corev1.PersistentVolumeMode]():             texts(corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock),
	reflect.TypeFor[corev1.PreemptionPolicy]():                 texts(corev1.PreemptLowerPriority, corev1.PreemptNever),
	reflect.TypeFor[corev1.PersistentVolumeReclaimPolicy]():    texts(corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle),
	reflect.TypeFor[autoscalingv2.MetricSourceType]():          texts(autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType),
	reflect.TypeFor[autoscalingv2.MetricTargetType]():          texts(autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType),
	reflect.TypeFor[corev1.SeccompProfileType]():               texts(corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined),
	reflect.TypeFor[corev1.AppArmorProfileType]():              texts(corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeUnconfined),
	reflect.TypeFor[corev1.UnsatisfiableConstraintAction]():    texts(corev1.DoNotSchedule, corev1.ScheduleAnyway),
	reflect.TypeFor[corev1.NodeInclusionPolicy]():              texts(corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore),
	reflect.TypeFor[corev1.MountPropagationMode]():             texts(corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional),
	reflect.TypeFor[corev1.TerminationMessagePolicy]():         texts(corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError),
	reflect.TypeFor[corev1.PodFSGroupChangePolicy]():           texts(corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways),
	reflect.TypeFor[corev1.ProcMountType]():                    texts(corev1.DefaultProcMount, corev1.UnmaskedProcMount),
	reflect.TypeFor[corev1.OSName]():                           texts(corev1.Linux, corev1.Windows),
	reflect.TypeFor[corev1.HostPathType]():                     texts(corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev),
	reflect.TypeFor[corev1.ServiceInternalTrafficPolicy]():     texts(corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal),
	reflect.TypeFor[admissionv1.FailurePolicyType]():           texts(admissionv1.Fail, admissionv1.Ignore),
	reflect.TypeFor[admissionv1.ValidationAction]():            texts(admissionv1.Deny, admissionv1.Warn, admissionv1.Audit),
	reflect.TypeFor[admissionv1.ParameterNotFoundActionType](): texts(admissionv1.AllowAction, admissionv1.DenyAction),
	reflect.TypeFor[policyv1.UnhealthyPodEvictionPolicyType](): texts(policyv1.IfHealthyBudget, policyv1.AlwaysAllow),
	reflect.TypeFor[corev1.ServiceType]():                      texts(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName),
	reflect.TypeFor[corev1.ServiceAffinity]():                  texts(corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP),
	reflect.TypeFor[corev1.ServiceExternalTrafficPolicy]():     texts(corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal),
	reflect.TypeFor[corev1.IPFamilyPolicy]():                   texts(corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack),
	reflect.TypeFor[corev1.IPFamily]():                         texts(corev1.IPv4Protocol, corev1.IPv6Protocol),
	reflect.TypeFor[appsv1.DeploymentStrategyType]():           texts(appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType),
	reflect.TypeFor[appsv1.StatefulSetUpdateStrategyType]():    texts(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType),
	reflect.TypeFor[appsv1.PodManagementPolicyType]():          texts(appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
	reflect.TypeFor[appsv1.DaemonSetUpdateStrategyType]():      texts(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType),
	reflect.TypeFor[batchv1.ConcurrencyPolicy]():               texts(batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
	reflect.TypeFor[batchv1.CompletionMode]():                  texts(batchv1.NonIndexedCompletion, batchv1.IndexedCompletion),
	reflect.TypeFor[admissionv1.MatchPolicyType]():             texts(admissionv1.Exact, admissionv1.Equivalent),
	reflect.TypeFor[admissionv1.ScopeType]():                   texts(admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope),
	reflect.TypeFor[admissionv1.ReinvocationPolicyType]():      texts(admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy),
	reflect.TypeFor[networkingv1.PathType]():                   texts(networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific),
	reflect.TypeFor[networkingv1.PolicyType]():                 texts(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress),
}
