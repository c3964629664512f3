package check

// AllowedBehavior is a correct behavior of a controller that looks like a violation. Checks must
// not report this behavior.
type AllowedBehavior struct {
	// Slug is the unique name of the behavior, such as lost-response. Check.AllowedBehaviors and
	// comments refer to it.
	Slug string
	// Topic is the heading in docs/allowed-behaviors.md under which the behavior is listed.
	Topic string
	// Behavior says what a correct controller may do, such as send a write again after its
	// response was lost.
	Behavior string
	// Handling says how checks avoid reporting the behavior. Each text begins with the IDs of the
	// checks that it describes.
	Handling []string
}

// The topics of allowed behaviors. Each topic is a heading in docs/allowed-behaviors.md.
const (
	topicCounting  = "Pods and ReplicaSets"
	topicStatus    = "Status, events and revisions"
	topicEndpoints = "Endpoints"
	topicTime      = "Time"
)

// AllowedBehaviors lists all allowed behaviors, grouped by topic. The page
// docs/allowed-behaviors.md is generated from this table.
var AllowedBehaviors = []AllowedBehavior{
	{
		Slug: "terminating-pods-not-counted", Topic: topicCounting,
		Behavior: "Terminating pods do not count as replicas. The number of live pods may exceed replicas + maxSurge. ReplicaSets never delete failed pods.",
		Handling: []string{"max-surge, max-unavailable: compare each ReplicaSet's spec.replicas and status.availableReplicas, as delivered to the process. These checks do not count pods."},
	},
	{
		Slug: "external-disruptions", Topic: topicCounting,
		Behavior: "Evictions and users may reduce a Deployment below replicas - maxUnavailable. maxUnavailable limits only scale-downs by the controller, which decides from the status in its caches.",
		Handling: []string{"max-unavailable: checks only writes of the controller."},
	},
	{
		Slug: "lost-response", Topic: topicCounting,
		Behavior: "The API server may commit a write although its response is lost. After such a create, an owner has surplus pods until the controller deletes them.",
		Handling: []string{
			"all: accept a write if any state of the cache justifies it. States from before the version on which the write is based do not count.",
			"revisions: reports a second ReplicaSet for a template only if each of these states contains the first ReplicaSet.",
			"rollback: allows the controller to repeat a write without a response, based on the same version.",
			"expectations, not-above-desired, status: treat a create or delete of a pod as possibly failed if a fault breaks the connection of the process less than a second after the response.",
			"terminating-namespace: allows another create for each new pod whose create got no response, because the controller may take this pod for the pod of the refused create.",
		},
	},
	{
		Slug: "client-retries", Topic: topicCounting,
		Behavior: "client-go retries responses with status 429 or 5xx that have a Retry-After header, including creates. If the API server committed the first attempt, the retry creates a second pod with a generated name.",
		Handling: []string{"back-off, slow-start, expectations: count a request and its retries by client-go as one request."},
	},
	{
		Slug: "template-and-replicas-together", Topic: topicCounting,
		Behavior: "If one update changes the template and the replicas of a Deployment, the controller scales the old ReplicaSets first.",
		Handling: []string{
			"max-surge, max-unavailable, recreate: combine each recent version of the Deployment with each recent state of its ReplicaSets, because different watches deliver them.",
			"proportional-scaling: does not check the order of scaling while the controller may have acted on another number of replicas.",
		},
	},
	{
		Slug: "immediate-recreation", Topic: topicCounting,
		Behavior: "If pods fail soon after their start, the controller replaces them without back-off (kubernetes/kubernetes#131116).",
		Handling: []string{"back-off: a failed pod is a new event, after which the controller may create again."},
	},
	{
		Slug: "client-rate-limit", Topic: topicCounting,
		Behavior: "By default the client of kube-controller-manager is limited to 20 requests/s with a burst of 30. Creating 500 pods takes about 25 s.",
		Handling: []string{
			"slow-start, deployment-status: extend their time limits by the delay that the subject's rate limit may cause.",
			"status, deployment-status: a request may fail before the proxy receives it. The checks therefore accept a status if any state of the cache justifies it. States from before the version on which the status is based do not count.",
		},
	},
	{
		Slug: "expired-expectations", Topic: topicCounting,
		Behavior: "Expectations expire after 5 minutes. If the watch still lags, the controller may then create or delete further pods. It must not replace pods that its own successful creates returned (known upstream issue late-pods).",
		Handling: []string{
			"expectations, burst-limit: allow more calls after 5 minutes.",
			"not-above-desired: counts the pods in successful responses to the process's creates, until their watch events arrive. The process may create only the pods that are missing in addition to these.",
		},
	},
	{
		Slug: "terminating-namespace-creates", Topic: topicCounting,
		Behavior: "The controller ignores creates that the API server refuses because the namespace is terminating, and waits for the next event.",
		Handling: []string{
			"slow-start: does not count such a create as a failure.",
			"status: expects no ReplicaFailure after a 403 or 404, nor after a request without a response.",
			"terminating-namespace: allows one retry for a ReplicaSet or Endpoints after each new event, and three retries without an event.",
		},
	},
	{
		Slug: "own-writes-barrier", Topic: topicCounting,
		Behavior: "Since v1.36, the controller does not sync a ReplicaSet until its caches contain its own writes. A lagging watch therefore delays the sync.",
	},
	{
		Slug: "coarse-ranking", Topic: topicCounting,
		Behavior: "For a ReplicaSet or ReplicationController that no Deployment controls, the number of pods on a node does not matter. The controller determines the order once for each batch of deletes, and compares ages only by their power of two.",
		Handling: []string{"scale-down-order: compares ages only of pods whose owner has no controller, and only if one age is at least 2.5 times the other. It compares the numbers of pods on nodes only if no pod of the Deployment changed shortly before the scale-down."},
	},
	{
		Slug: "inactive-pods", Topic: topicCounting,
		Behavior: "The controller neither adopts nor releases inactive pods (terminating, Failed or Succeeded).",
		Handling: []string{"adopt-and-release: considers active pods only. The check requires that the controller tries to adopt a pod, even if the attempt fails."},
	},
	{
		Slug: "whole-second-timestamps", Topic: topicCounting,
		Behavior: "Timestamps in status have a resolution of one second. A pod may appear available up to 1 s early.",
		Handling: []string{
			"status: counts a pod as available from the beginning of the second in which it became ready.",
			"proportional-scaling: does not check which of two ReplicaSets is older if both were created in the same second.",
		},
	},
	{
		Slug: "delete-without-precondition", Topic: topicCounting,
		Behavior: "Upstream deletes pods without a precondition. The controller may therefore delete a pod that was relabeled or orphaned, if the watch event has not arrived.",
		Handling: []string{"ownership, expectations, not-below-desired: accept a delete that a recent cached version of the pod justifies."},
	},
	{
		Slug: "create-after-deletion", Topic: topicCounting,
		Behavior: "The controller may create pods for an owner that already has a deletionTimestamp, if the watch event has not arrived.",
		Handling: []string{"expectations, not-above-desired: allow creates until the deletionTimestamp was delivered to the process."},
	},
	{
		Slug: "overlapping-selectors", Topic: topicCounting,
		Behavior: "Selectors may overlap. Either of two owners may adopt an orphan that matches both.",
		Handling: []string{
			"status: accepts counts with and without orphans that match the selector.",
			"adopt-and-release: requires one attempt to adopt the orphan. Either owner may make the attempt.",
		},
	},
	{
		Slug: "cache-only-decisions", Topic: topicCounting,
		Behavior: "The Deployment controller decides from its caches alone. If ReplicaSet events are late, it may create a ReplicaSet for a new template before the ReplicaSet of the previous template is delivered. Both ReplicaSets together may exceed maxSurge.",
		Handling: []string{
			"max-surge: counts a new ReplicaSet only after its watch event has arrived.",
			"matches-template: accepts any recent template of the Deployment.",
		},
	},
	{
		Slug: "undeletable-pods", Topic: topicCounting,
		Behavior: "A ReplicaSet whose pods cannot be deleted has more available pods than its spec.replicas. If its spec.replicas is 0, upstream counts these pods as available and scales other ReplicaSets down further. Otherwise upstream scales no old ReplicaSet down until the pods are gone.",
		Handling: []string{
			"max-unavailable: counts all available pods of a ReplicaSet whose spec.replicas is 0, unless the write scales this ReplicaSet.",
			"deployment-status: allows a rollout with such a ReplicaSet to report a missed deadline.",
		},
	},
	{
		Slug: "writes-from-one-snapshot", Topic: topicCounting,
		Behavior: "In one sync, the Deployment controller writes several ReplicaSets from one read of its caches. The next write may be based on the response to the previous one.",
		Handling: []string{"max-surge, max-unavailable, proportional-scaling: the response to a write does not imply that the process has read newer versions of other ReplicaSets."},
	},
	{
		Slug: "partial-proportional-scaling", Topic: topicCounting,
		Behavior: "If proportional scaling fails part of the way, the next sync computes shares from ReplicaSets of which some have their new size.",
		Handling: []string{
			"proportional-scaling: computes shares from the actual sizes. If, since the last complete scaling, some ReplicaSets were scaled up and others down, the check accepts any size of the largest ReplicaSet, which gets the rest of the replicas.",
			"max-surge: computes two sums of spec.replicas, from the values delivered to the process and from those that the process wrote. The smaller sum counts.",
		},
	},
	{
		Slug: "replica-failure-message", Topic: topicStatus,
		Behavior: "The condition ReplicaFailure keeps its first message, and may change between True and absent several times.",
		Handling: []string{"status: reports ReplicaFailure only if it is new and nothing failed except deletes of pods that were gone. It does not read reason and message."},
	},
	{
		Slug: "observed-generation-order", Topic: topicStatus,
		Behavior: "observedGeneration may increase before the condition Progressing changes. While two processes are active, the observedGeneration of a ReplicaSet may decrease.",
		Handling: []string{
			"status: compares the writes of each process only with what was delivered to that process.",
			"deployment-status: compares observedGeneration with the version that the write is based on.",
		},
	},
	{
		Slug: "no-deadline-after-completion", Topic: topicStatus,
		Behavior: "The controller never reports ProgressDeadlineExceeded for a completed rollout.",
		Handling: []string{
			"deployment-status: expects no report about a completed rollout.",
			"rollout-complete: checks the condition Progressing of completed rollouts only.",
		},
	},
	{
		Slug: "revision-may-decrease", Topic: topicStatus,
		Behavior: "The revision annotation of a Deployment may decrease after a user deletes ReplicaSets. During a rollout, more old ReplicaSets than revisionHistoryLimit may exist.",
		Handling: []string{
			"revisions: compares the revision of a ReplicaSet only with its earlier revisions, and does not check the revision of the Deployment.",
			"rollout-complete: requires only that the new ReplicaSet has the highest revision.",
			"revision-history-limit: checks deletes, not the remaining ReplicaSets, until the rollout is complete.",
		},
	},
	{
		Slug: "deleted-annotations-remain", Topic: topicStatus,
		Behavior: "An annotation that is removed from a Deployment stays on its ReplicaSets.",
		Handling: []string{"rollout-complete: requires that the ReplicaSet has all annotations of the Deployment. The ReplicaSet may have others."},
	},
	{
		Slug: "events-not-reliable", Topic: topicStatus,
		Behavior: "Events are rate-limited, aggregated, asynchronous, and lost in a crash.",
		Handling: []string{
			"all: no check counts the events about an object.",
			"events: requires only that the subject sends one event with a reason after 3 responses that demand one.",
		},
	},
	{
		Slug: "missed-deadline-report", Topic: topicStatus,
		Behavior: "While a Deployment is being scaled, or after one of its requests failed, the controller may report a missed progress deadline late.",
		Handling: []string{"deployment-status: does not require the report in these cases."},
	},
	{
		Slug: "truncated-endpoints", Topic: topicEndpoints,
		Behavior: "Endpoints with more than 1000 addresses are truncated, and upstream writes them once in every sync.",
		Handling: []string{
			"no-writes-when-settled, needless-writes: ignore updates of truncated Endpoints.",
			"addresses: a pod may be missing from truncated Endpoints. But no ready pod may be missing while pods that are not ready are listed.",
		},
	},
	{
		Slug: "manual-endpoints-edits", Topic: topicEndpoints,
		Behavior: "A manual edit of Endpoints stays until the next event for its Service. Each controller start deletes Endpoints without a Service, unless they have the leader annotation.",
		Handling: []string{"orphan-endpoints: requires a delete only if the Endpoints existed when a process started, or when the process received the deletion of their Service."},
	},
	{
		Slug: "publish-not-ready-addresses", Topic: topicEndpoints,
		Behavior: "With publishNotReadyAddresses, Endpoints list pods that are terminating or not ready as addresses.",
		Handling: []string{"endpoints-exact, addresses: expect such pods in the Endpoints of these Services."},
	},
	{
		Slug: "trigger-time-annotation", Topic: topicEndpoints,
		Behavior: "The annotation endpoints.kubernetes.io/last-change-trigger-time may disappear or decrease after a restart. The batch period delays the effect of pod changes only.",
		Handling: []string{
			"endpoints-exact, needless-writes: do not read the annotation.",
			"addresses: reports only a time in another format, a time that is repeated although no pod has changed, and a time after the change of a pod's readiness that the write shows. After such a change it also reports a missing time, unless the process may have handled the change in an earlier sync.",
		},
	},
	{
		Slug: "service-in-cache", Topic: topicEndpoints,
		Behavior: "A Service protects its Endpoints from deletion only while the Service is in the cache of the process.",
		Handling: []string{"orphan-endpoints: accepts the delete if the Service was not in the cache during some part of the recent window."},
	},
	{
		Slug: "retry-delay", Topic: topicTime,
		Behavior: "After an outage of duration T, the next retry may come only after another T, because the back-off has doubled up to T. Retries share a token bucket of 10/s with a burst of 100. A new leader takes over after up to 17 s. The resync period is 12 to 24 hours.",
		Handling: []string{
			"converged: the settle bound of a scenario must leave time for the retry. For upstream, see the known upstream issue [long-back-off](known-upstream-issues.md#long-back-off).",
			"process-alive: a leader may exit if it could not renew its lease in time, also because it got no response, or got it late.",
			"lease-holder-writes: a leader may write for as long as its last renewal is valid, even if the lease names another holder.",
		},
	},
	{
		Slug: "scheduled-writes", Topic: topicTime,
		Behavior: "A controller may write because time has passed, although no object has changed. The CronJob controller creates Jobs by a schedule.",
		Handling: []string{"no-writes-when-settled: ignores writes of kinds that a controller with the trait acts-by-time writes."},
	},
	{
		Slug: "paused-process", Topic: topicTime,
		Behavior: "A paused process resumes with the caches that it had, however old they are. It may write without the lease until it detects the loss.",
		Handling: []string{
			"all: the clock of a process stops while the process is paused. It also stops for the duration of each stall of gauntlet or of the process.",
			"lease-holder-writes: if a pause of the machine outlasted the lease, allows writes after it for 1 s, or for the length of the pause if that is shorter.",
			"process-alive: accepts the exit of a leader that was paused beyond its renew deadline.",
			"status, deployment-status: a request may be delayed before the proxy receives it.",
		},
	},
}
